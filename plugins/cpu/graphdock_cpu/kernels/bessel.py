"""Modified Bessel functions of the first kind, scaled by ``exp(-|x|)``, and inverses of the error function, in float64.

M. Abramowitz and I. Stegun, "Handbook of Mathematical Functions" (1964): the power series 9.6.10 up to |x| = 20, whose terms
are all positive, and the asymptotic series 9.7.1 beyond. The quantiles of the normal distribution: M. J. Wichura, "Algorithm AS
241", Applied Statistics 37 (1988), pages 477-484, to about 16 digits.
"""

from __future__ import annotations

import math

import numpy as np

from graphdock_cpu.kernels.gamma import polynomial

__all__ = ["erfinv", "i0e", "i1e", "ndtri"]

_FAR = 20.0


def _power_series(order: int) -> list[float]:
    """Coefficients in powers of (x/2)^2, highest first."""
    return [1 / (math.factorial(k) * math.factorial(k + order)) for k in range(52)][::-1]


def _asymptotic(order: int) -> list[float]:
    """Coefficients in powers of 1/x, highest first."""
    terms = [1.0]
    for k in range(1, 26):
        terms.append(-terms[-1] * (4 * order * order - (2 * k - 1) ** 2) / (8 * k))
    return terms[::-1]


_NEAR = [_power_series(0), _power_series(1)]
_BEYOND = [_asymptotic(0), _asymptotic(1)]


def _scaled(x: np.ndarray, order: int) -> np.ndarray:
    """``exp(-x) I(x)`` for x from 0 on."""
    near, far = np.minimum(x, _FAR), np.maximum(x, _FAR)
    half = near / 2
    low = polynomial(_NEAR[order], half * half) * np.exp(-near)
    high = polynomial(_BEYOND[order], 1 / far) / np.sqrt(2 * math.pi * far)
    return np.where(x <= _FAR, low * half if order else low, high)


def i0e(x: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(x), np.nan, _scaled(np.abs(x), 0))


def i1e(x: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(x), np.nan, np.copysign(_scaled(np.abs(x), 1), x))


_CENTRE = (
    [2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457]
    + [13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608],
    [5226.495278852854561, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867]
    + [5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1.0],
)
_MIDDLE = (
    [7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258]
    + [3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734],
    [1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459]
    + [0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1.0],
)
_TAIL = (
    [2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386, 0.026532189526576123093]
    + [0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699, 6.6579046435011037772],
    [2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4]
    + [0.0148753612908506148525, 0.13692988092273580531, 0.59983220655588793769, 1.0],
)


def _quantile(centred: np.ndarray, tail: np.ndarray) -> np.ndarray:
    """The quantile of ``1/2 + centred``, given also as ``tail``, its distance to the nearer end of [0, 1]."""
    square = 0.180625 - np.minimum(np.abs(centred), 0.425) ** 2
    centre = centred * polynomial(_CENTRE[0], square) / polynomial(_CENTRE[1], square)
    root = np.sqrt(-np.log(np.clip(tail, 1e-320, 0.5)))
    near, far = np.minimum(root, 5) - 1.6, np.maximum(root, 5) - 5
    outer = np.where(
        root <= 5,
        polynomial(_MIDDLE[0], near) / polynomial(_MIDDLE[1], near),
        polynomial(_TAIL[0], far) / polynomial(_TAIL[1], far),
    )
    outer = np.copysign(np.where(tail == 0, np.inf, outer), centred)
    return np.where(np.abs(centred) <= 0.425, centre, np.where(tail >= 0, outer, np.nan))


def ndtri(p: np.ndarray) -> np.ndarray:
    """The quantile of the standard normal distribution; NaN outside of [0, 1]."""
    return _quantile(p - 0.5, np.minimum(p, 1 - p))


def erfinv(y: np.ndarray) -> np.ndarray:
    """The inverse of the error function; NaN outside of [-1, 1]."""
    return _quantile(y / 2, (1 - np.abs(y)) / 2) / math.sqrt(2)
