"""Oracles of specs/arithmetic.yaml, one element at a time with Python's own numbers."""

from __future__ import annotations

import cmath
import math
from typing import Any

import numpy as np

from graphdock_std.reference.math import _divide, per_element, wrap


def _truncated(a: Any, b: Any) -> Any:
    if isinstance(a, int):
        return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    quotient = _divide(a, b)
    return float(math.trunc(quotient)) if math.isfinite(quotient) else quotient


def _left(a: Any, b: Any) -> Any:
    """Remainder of truncated division: of C's fmod it is NaN beyond the numbers, and a itself of an infinite b."""
    if isinstance(a, int):
        return a - _truncated(a, b) * b if b else 0
    return math.fmod(a, b) if math.isfinite(a) and b else math.nan


def _log(a: Any) -> Any:
    if isinstance(a, complex):
        return cmath.log(a)
    return math.log(a) if a > 0 else -math.inf if a == 0 else math.nan


truncate_div = per_element(_truncated)
truncate_mod = per_element(_left)
xdivy = per_element(lambda a, b: 0.0 if a == 0 else _divide(a, b))
xlogy = per_element(lambda a, b: 0.0 if a == 0 else a * _log(b))
mul_no_nan = per_element(lambda a, b: 0.0 if b == 0 else a * b)


def next_after(x1: Any, x2: Any, **_: Any) -> np.ndarray:
    """By the order of the bits: a step of one for each number."""
    whole = np.dtype(x1.dtype.str.replace("f", "i"))
    shape = np.broadcast_shapes(x1.shape, x2.shape)
    out = np.empty(shape, x1.dtype)
    for at in np.ndindex(shape):
        a, b = (np.broadcast_to(v, shape)[at] for v in (x1, x2))
        if a == b or a != a or b != b:
            out[at] = a if a != a else b
        elif a == 0:
            out[at] = np.copysign(np.array(1, whole).view(x1.dtype), b)
        else:
            step = 1 if (b > a) == (a > 0) else -1
            out[at] = np.array(np.array(a).view(whole) + step, whole).view(x1.dtype)
    return out


def cross(a: Any, b: Any, **_: Any) -> np.ndarray:
    out = np.empty(a.shape, a.dtype)
    number: Any = int if a.dtype.kind in "iu" else float
    for at in np.ndindex(a.shape[:-1]):
        p, q = [number(v) for v in a[at]], [number(v) for v in b[at]]
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            out[(*at, i)] = wrap(p[j] * q[k] - p[k] * q[j], a.dtype)
    return out
