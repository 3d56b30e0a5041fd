"""erf and erfc in vectorised NumPy, to float64 accuracy, and erf to float32 accuracy.

W. J. Cody, "Rational Chebyshev approximations for the error function", Mathematics of Computation 23 (1969), pages
631-637. Three intervals of ``|x|``: up to 0.46875, up to 4, and beyond. erf needs no third: from 4 on ``1 - erf`` is
so small that the second approximation, kept in range, is exact enough. Relative error is below 1e-14 for erf, and
below 1e-12 for erfc as long as erfc is a normal number.

In float32 erf is ``tanh(y P(y^2))``: P is a polynomial of degree 6 fitted to ``atanh(erf(y)) / y``, each error weighted by what
tanh leaves of it, which takes a third of the passes of the rational forms. At most 4 units in the last place.

The input is taken in blocks, so that the working buffers stay in cache and no call allocates.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["BLOCK", "FLOAT_BLOCK", "FLOAT_ROWS", "ROWS", "erf", "erf_float", "erfc"]

#: Elements per block, and rows of that length in the working buffer.
BLOCK = 2048
ROWS = 6

#: The same of the float32 form, whose passes are few enough for longer blocks.
FLOAT_BLOCK = 16384
FLOAT_ROWS = 3

_SMALL = 0.46875

#: The float32 form: P, highest power first. From the limit on erf is 1; tanh of a smaller one would not reach it.
_FLOAT_P = tuple(
    np.float32(c)
    for c in (1.4185831e-07, -5.668574e-06, 8.7637876e-05, -6.197860e-04, -1.9182949e-04, 1.02769054e-01, 1.128379226)
)
_FLOAT_LIMIT = np.float32(4.2)

# Numerators and denominators, highest power first. Cody's denominators are monic.
_NEAR_TOP = (
    1.85777706184603153e-1,
    3.16112374387056560e0,
    1.13864154151050156e2,
    3.77485237685302021e2,
    3.20937758913846947e3,
)
_NEAR_BOTTOM = (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3)
_MIDDLE_TOP = (
    2.15311535474403846e-8,
    5.64188496988670089e-1,
    8.88314979438837594e0,
    6.61191906371416295e1,
    2.98635138197400131e2,
    8.81952221241769090e2,
    1.71204761263407058e3,
    2.05107837782607147e3,
    1.23033935479799725e3,
)
_MIDDLE_BOTTOM = (
    1.0,
    1.57449261107098347e1,
    1.17693950891312499e2,
    5.37181101862009858e2,
    1.62138957456669019e3,
    3.29079923573345963e3,
    4.36261909014324716e3,
    3.43936767414372164e3,
    1.23033935480374942e3,
)
_FAR_TOP = (
    1.63153871373020978e-2,
    3.05326634961232344e-1,
    3.60344899949804439e-1,
    1.25781726111229246e-1,
    1.60837851487422766e-2,
    6.58749161529837803e-4,
)
_FAR_BOTTOM = (
    1.0,
    2.56852019228982242e0,
    1.87295284992346725e0,
    5.27905102951428412e-1,
    6.05183413124413191e-2,
    2.33520497626869185e-3,
)
_INV_SQRT_PI = 0.56418958354775628695


def _horner(coefficients: tuple[float, ...], x: np.ndarray, out: np.ndarray) -> None:
    """A polynomial, highest power first, into ``out``, which is not ``x``."""
    np.multiply(x, coefficients[0], out)
    for c in coefficients[1:-1]:
        np.add(out, c, out)
        np.multiply(out, x, out)
    np.add(out, coefficients[-1], out)


def _near(x: np.ndarray, square: np.ndarray, out: np.ndarray, spare: np.ndarray) -> None:
    """erf for small arguments; ``square`` is overwritten."""
    np.multiply(x, x, square)
    _horner(_NEAR_TOP, square, out)
    _horner(_NEAR_BOTTOM, square, spare)
    np.divide(out, spare, out)
    np.multiply(out, x, out)


def _middle(y: np.ndarray, out: np.ndarray, spare: np.ndarray) -> None:
    """erfc for y in 0.46875 .. 4."""
    _horner(_MIDDLE_TOP, y, out)
    _horner(_MIDDLE_BOTTOM, y, spare)
    np.divide(out, spare, out)
    _times_gaussian(y, out, spare)


def _far(y: np.ndarray, out: np.ndarray, spare: np.ndarray, inverse: np.ndarray) -> None:
    """erfc for y above 4."""
    np.multiply(y, y, inverse)
    np.reciprocal(inverse, inverse)
    _horner(_FAR_TOP, inverse, out)
    _horner(_FAR_BOTTOM, inverse, spare)
    np.divide(out, spare, out)
    np.multiply(out, inverse, out)
    np.subtract(_INV_SQRT_PI, out, out)
    np.divide(out, y, out)
    _times_gaussian(y, out, spare)


def _times_gaussian(y: np.ndarray, out: np.ndarray, spare: np.ndarray) -> None:
    np.multiply(y, y, spare)
    np.negative(spare, spare)
    np.exp(spare, spare)
    np.multiply(out, spare, out)


def erf(x: np.ndarray, out: np.ndarray, work: np.ndarray, mask: np.ndarray) -> None:
    """erf of a contiguous floating array into a contiguous one; ``work`` is (ROWS, BLOCK) float64, ``mask`` BLOCK
    bools.
    """
    _blocks(x, out, work, mask, _erf_block)


def erf_float(x: np.ndarray, out: np.ndarray, work: np.ndarray) -> None:
    """erf of a contiguous array of float32 or less into one of the same dtype; ``work`` is (FLOAT_ROWS, n) float32, n at most
    FLOAT_BLOCK, by which the blocks go.
    """
    flat, result, block = x.reshape(-1), out.reshape(-1), work.shape[1]
    narrow = out.dtype != np.float32
    minimum, maximum, multiply, add, tanh = np.minimum, np.maximum, np.multiply, np.add, np.tanh
    first, second, last = _FLOAT_P[0], _FLOAT_P[1:-1], _FLOAT_P[-1]
    for start in range(0, flat.size, block):
        piece, target = flat[start : start + block], result[start : start + block]
        y, u, t = work[:, : piece.size]
        p = t if narrow else target
        minimum(piece, _FLOAT_LIMIT, out=y)
        maximum(y, -_FLOAT_LIMIT, out=y)
        multiply(y, y, u)
        multiply(u, first, p)
        for c in second:
            add(p, c, p)
            multiply(p, u, p)
        add(p, last, p)
        multiply(p, y, p)
        tanh(p, p)
        if narrow:
            np.copyto(target, p, "unsafe")


def erfc(x: np.ndarray, out: np.ndarray, work: np.ndarray, mask: np.ndarray) -> None:
    """1 - erf, without the cancellation; arguments as for :func:`erf`."""
    _blocks(x, out, work, mask, _erfc_block)


def _blocks(x: np.ndarray, out: np.ndarray, work: np.ndarray, mask: np.ndarray, block: Any) -> None:
    flat, result = x.reshape(-1), out.reshape(-1)
    for start in range(0, flat.size, BLOCK):
        piece = flat[start : start + BLOCK]
        rows = work[:, : piece.size]
        np.copyto(rows[0], piece)
        block(rows, mask[: piece.size])
        np.copyto(result[start : start + BLOCK], rows[1], "unsafe")


def _erf_block(rows: np.ndarray, mask: np.ndarray) -> None:
    """rows[0] is x; the result goes to rows[1]."""
    x, out, y, a, b, _ = rows
    np.absolute(x, y)
    np.minimum(y, 6.0, out=y)
    _middle(y, out, a)
    np.subtract(1.0, out, out)
    np.copysign(out, x, out)
    np.less_equal(y, _SMALL, mask)
    np.clip(x, -_SMALL, _SMALL, x)
    _near(x, y, a, b)
    np.copyto(out, a, where=mask)


def _erfc_block(rows: np.ndarray, mask: np.ndarray) -> None:
    x, out, y, a, b, c = rows
    np.absolute(x, y)
    np.minimum(y, 4.0, out=b)
    _middle(b, out, a)
    if not np.maximum.reduce(y) <= 4.0:  # a NaN must not skip it
        np.greater(y, 4.0, mask)
        np.clip(y, 4.0, 30.0, y)
        _far(y, a, b, c)
        np.copyto(out, a, where=mask)
    np.less(x, 0.0, mask)
    np.subtract(2.0, out, out, where=mask)
    np.absolute(x, y)
    np.less_equal(y, _SMALL, mask)
    np.clip(x, -_SMALL, _SMALL, x)
    _near(x, y, a, b)
    np.subtract(1.0, a, a)
    np.copyto(out, a, where=mask)
