"""Clebsch-Gordan coefficients, as the kernels take them."""

import functools
import math

import numpy as np


@functools.cache
def clebsch_gordan(l1, l2, l):
    """Coefficients C[m1, m2, m] = <l1 m1 l2 m2 | l m>, each index from -l upwards, by Racah's formula (1942)."""
    f = math.factorial
    out = np.zeros((2 * l1 + 1, 2 * l2 + 1, 2 * l + 1))
    scale = (2 * l + 1) * f(l + l1 - l2) * f(l - l1 + l2) * f(l1 + l2 - l) / f(l1 + l2 + l + 1)
    for m1 in range(-l1, l1 + 1):
        for m2 in range(-l2, l2 + 1):
            m = m1 + m2
            if abs(m) > l:
                continue
            root = math.sqrt(scale * f(l + m) * f(l - m) * f(l1 - m1) * f(l1 + m1) * f(l2 - m2) * f(l2 + m2))
            total = 0.0
            for k in range(l1 + l2 - l + 1):
                parts = (l1 - m1 - k, l2 + m2 - k, l - l2 + m1 + k, l - l1 - m2 + k)
                if min(parts) >= 0:
                    total += (-1) ** k / (f(k) * f(l1 + l2 - l - k) * math.prod(f(p) for p in parts))
            out[m1 + l1, m2 + l2, m + l] = root * total
    return out


def couplings(degree):
    """``(l1, l2, l, C)`` of every pair of parts and every part that they make."""
    degrees = range(degree + 1)
    return [
        (l1, l2, l, clebsch_gordan(l1, l2, l))
        for l1 in degrees
        for l2 in degrees
        for l in range(abs(l1 - l2), min(l1 + l2, degree) + 1)
    ]


def table(degree):
    """The coefficients that are not zero: rows of (l1, m1, l2, m2, l, m) as int32, and their values as float64."""
    found = [
        ((l1, m1, l2, m2, l, m), c[m1, m2, m])
        for l1, l2, l, c in couplings(degree)
        for m1, m2, m in zip(*np.nonzero(c), strict=True)
    ]
    places = np.array([place for place, _ in found], np.int32).reshape(-1, 6)
    return places, np.array([value for _, value in found])
