"""Oracles of specs/special.yaml, one element at a time: long sums, quadrature and bisection, where the kernels approximate."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from graphdock_std.reference.math import elementwise, per_element

lgamma = per_element(lambda v: math.inf if v <= 0 and v == math.floor(v) else math.lgamma(v))


def _digamma(x: float) -> float:
    """The recurrence up to 200, and Stirling's series there."""
    terms = []
    if x < -1e6:  # where poles are as dense as numbers
        return math.nan
    while x < 200:
        if x == 0:
            return math.nan
        terms.append(-1 / x)
        x += 1
    return math.fsum([*terms, math.log(x), -0.5 / x, -1 / (12 * x**2), 1 / (120 * x**4)])


digamma = per_element(_digamma)


def _zeta(x: float, q: float) -> float:
    """200 terms, and Euler and Maclaurin's sum for the rest."""
    end = q + 200
    rest = [
        end ** (1 - x) / (x - 1),
        0.5 * end**-x,
        x * end ** (-x - 1) / 12,
        -x * (x + 1) * (x + 2) * end ** (-x - 3) / 720,
    ]
    return math.fsum([(q + k) ** -x for k in range(200)] + rest)


zeta = per_element(_zeta)


def polygamma(a: Any, x: Any, **_: Any) -> np.ndarray:
    def one(n: float, v: float) -> float:
        if n < 0 or n != math.floor(n):
            return math.nan
        return _digamma(v) if n == 0 else (-1) ** (int(n) + 1) * math.factorial(int(n)) * _zeta(n + 1, v)

    return elementwise(one, a, x)


def _igamma(a: float, x: float) -> float:
    """The series of all positive terms, whatever the argument."""
    term = total = 1.0
    n = 0
    while term > 1e-18 * total:
        n += 1
        term *= x / (a + n)
        total += term
    return math.exp(a * math.log(x) - x - math.lgamma(a + 1)) * total


igamma = per_element(_igamma)
igammac = per_element(lambda s, v: 1 - _igamma(s, v))


def igamma_grad_a(a: Any, x: Any, **_: Any) -> np.ndarray:
    """Differences of fourth order."""

    def slope(s: float, v: float) -> float:
        h = 1e-3 * s
        near, far = (_igamma(s + d, v) - _igamma(s - d, v) for d in (h, 2 * h))
        return (8 * near - far) / (12 * h)

    return elementwise(slope, a, x)


def _betainc(a: float, b: float, x: float) -> float:
    """The hypergeometric series DLMF 8.17.8, of all positive terms."""
    term = total = 1.0
    n = 0
    while term > 1e-18 * total:
        term *= (a + b + n) / (a + 1 + n) * x
        total += term
        n += 1
    log = a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return math.exp(log) * total / a


betainc = per_element(_betainc)


def _bessel(order: int) -> Callable[[float], float]:
    """The integral of ``exp(x cos t - |x|) cos(order t)`` over half a turn, by the trapezoidal rule."""
    angles = [math.pi * (k + 0.5) / 200 for k in range(200)]
    return lambda x: (
        0.0
        if math.isinf(x) or (x == 0 and order)
        else math.fsum(math.exp(x * math.cos(t) - abs(x)) * math.cos(order * t) for t in angles) / 200
    )


bessel_i0e = per_element(_bessel(0))
bessel_i1e = per_element(_bessel(1))


def _inverse(function: Callable[[float], float], low: float, high: float) -> Callable[[float], float]:
    """Bisection of an increasing function."""

    def solve(y: float) -> float:
        a, b = low, high
        for _ in range(200):
            middle = (a + b) / 2
            a, b = (middle, b) if function(middle) < y else (a, middle)
        return (a + b) / 2

    return solve


ndtri = per_element(_inverse(lambda v: 0.5 * math.erfc(-v / math.sqrt(2)), -40, 40))
erfinv = per_element(_inverse(math.erf, -6, 6))
