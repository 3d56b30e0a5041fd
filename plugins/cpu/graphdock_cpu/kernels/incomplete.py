"""The derivative of the incomplete gamma function by its parameter in vectorised NumPy, in float64; SciPy has none.

NIST Digital Library of Mathematical Functions: the series 8.11.4 and the continued fraction 8.9.2 of the incomplete gamma
functions, the latter by W. J. Lentz's method (Applied Optics 15, 1976) as modified by I. J. Thompson and A. R. Barnett (Journal of
Computational Physics 64, 1986). The derivative follows each step of the series or the fraction. Near ``x = a`` both take as many
steps as ``sqrt(a)`` many times over; from ``a = 1e5`` on the uniform expansion 8.12.3 stands for them (N. M. Temme, SIAM Journal
on Mathematical Analysis 10, 1979).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import special

__all__ = ["igamma_grad_a"]

_EPSILON = 1e-16
_TINY = 1e-300
#: Terms after which what has not converged is left as it is.
_TERMS = 20000
#: From here on the uniform expansion; two terms of it leave less than 1e-13.
_LARGE = 1e5
#: Its first coefficient as a series in eta, and the derivative of that, highest power first.
_FIRST = [1 / 25515, -139 / 777600, 1 / 2835, 1 / 864, -2 / 135, 1 / 12, -1 / 3]
_SLOPE = np.polyder(_FIRST)


def _repeat(
    state: list[np.ndarray], step: Callable[[list[np.ndarray], int], tuple[list[np.ndarray], np.ndarray]]
) -> list[np.ndarray]:
    """Apply ``step(state, n) -> state, done`` to each element until it is done; those that are leave the arrays."""
    result = [s.copy() for s in state]
    live = np.arange(state[0].size)
    for n in range(1, _TERMS):
        if not live.size:
            break
        state, done = step(state, n)
        if done.any():
            for kept, value in zip(result, state, strict=True):
                kept[live[done]] = value[done]
            live, state = live[~done], [s[~done] for s in state]
    for kept, value in zip(result, state, strict=True):
        kept[live] = value
    return result


def _series(a: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``sum of x^n / ((a+1) ... (a+n))`` and its derivative by a."""

    def step(state: list[np.ndarray], n: int) -> tuple[list[np.ndarray], np.ndarray]:
        a, x, term, slope, total, slopes = state
        term = term * x / (a + n)
        slope = slope + 1 / (a + n)
        total, change = total + term, term * slope
        done = (term <= _EPSILON * total) & (change <= _EPSILON * (slopes + change))
        return [a, x, term, slope, total, slopes + change], done | ~np.isfinite(total)

    one, zero = np.ones_like(a), np.zeros_like(a)
    *_, total, slopes = _repeat([a, x, one, zero, one, zero], step)
    return total, -slopes


def _fraction(a: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``gamma(a, x) / (x^a e^-x)`` and its derivative by a."""

    def step(state: list[np.ndarray], n: int) -> tuple[list[np.ndarray], np.ndarray]:
        a, b, c, d, h, dc, dd, dh = state
        top = -n * (n - a)
        b = b + 2
        bottom = top * d + b
        slope = n * d + top * dd - 1
        c, dc = b + top / c, -1 + n / c - top * dc / (c * c)
        c = np.where(c == 0, _TINY, c)
        d = 1 / np.where(bottom == 0, _TINY, bottom)
        dd = -slope * d * d
        factor = c * d
        change = dc * d + c * dd
        h, dh = h * factor, dh * factor + h * change
        done = (np.abs(factor - 1) < _EPSILON * 2) & (np.abs(change * h) <= _EPSILON * 4 * (np.abs(dh) + np.abs(h)))
        return [a, b, c, d, h, dc, dd, dh], done | ~np.isfinite(h)

    b = x + 1 - a
    b = np.where(b == 0, _TINY, b)
    d = 1 / b
    start = [a, b, np.full_like(a, 1 / _TINY), d, d, np.zeros_like(a), d * d, d * d]
    result = _repeat(start, step)
    return result[4], result[7]


def _uniform(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """dP/da for large a."""
    mu = np.clip((x - a) / a, -0.9, 10.0)  # beyond, P is 0 or 1
    log = np.log1p(mu)
    close = np.abs(mu) < 0.02
    near, far = np.where(close, mu, 0.0), np.where(close, 0.02, mu)
    series = np.polyval([2 * (-1) ** k / (k + 2) for k in reversed(range(10))], near)
    ratio = np.where(close, np.sqrt(series), np.sqrt(2 * (far - np.log1p(far))) / np.abs(far))  # eta / mu
    eta = mu * ratio
    first = np.where(close, np.polyval(_FIRST, near * np.sqrt(series)), 1 / far - 1 / np.where(close, 1.0, eta))
    slope = np.polyval(_SLOPE, np.where(close, eta, 0.0))  # farther off the Gaussian is 0 beside it
    gaussian = np.exp(-a * eta * eta / 2) / np.sqrt(2 * math.pi * a)
    by_eta = np.where(mu == 0, 1.0, log / np.where(mu == 0, 1.0, eta))
    return -gaussian * (by_eta + log * first - first / (2 * a) - slope / (ratio * a))


def igamma_grad_a(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The derivative of P(a, x) by a; 0 where a or x is 0 or infinite, NaN where P is."""
    inner = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
    p = special.gammainc(a, x)
    result = np.where(np.isnan(p), np.nan, 0.0)
    large = inner & (a >= _LARGE)
    low = inner & ~large & ((x <= 1) | (x <= a + 1))
    high = inner & ~large & ~low
    s, t = a[low], x[low]
    total, change = _series(s, t)
    result[low] = p[low] * (np.log(t) - special.digamma(s + 1) + change / total)
    s, t = a[high], x[high]
    total, change = _fraction(s, t)
    result[high] = -special.gammaincc(s, t) * (np.log(t) - special.digamma(s) + change / total)
    result[large] = _uniform(a[large], x[large])
    return result
