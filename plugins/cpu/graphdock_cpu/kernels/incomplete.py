"""The incomplete gamma and beta functions in vectorised NumPy, in float64.

NIST Digital Library of Mathematical Functions: the series 8.11.4 and the continued fraction 8.9.2 of the incomplete gamma
functions, the continued fraction 8.17.22 of the incomplete beta function. Fractions are evaluated by W. J. Lentz's method (Applied
Optics 15, 1976) as modified by I. J. Thompson and A. R. Barnett (Journal of Computational Physics 64, 1986). The derivative by
``a`` follows each step of the series or the fraction. Near ``x = a`` both take as many steps as ``sqrt(a)`` many times over; from
``a = 1e5`` on the uniform expansion 8.12.3 stands for them (N. M. Temme, SIAM Journal on Mathematical Analysis 10, 1979).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from graphdock_cpu.kernels import special
from graphdock_cpu.kernels.gamma import digamma, lgamma, polynomial, stirling_rest

__all__ = ["betainc", "igamma", "igamma_grad_a", "igammac"]

_EPSILON = 1e-16
_TINY = 1e-300
#: Terms after which what has not converged is left as it is.
_TERMS = 20000
#: From here on the uniform expansion; two terms of it leave less than 1e-13.
_LARGE = 1e5
#: Its first two coefficients as series in eta, and the derivative of the first, highest power first.
_FIRST = [1 / 25515, -139 / 777600, 1 / 2835, 1 / 864, -2 / 135, 1 / 12, -1 / 3]
_SLOPE = [6 / 25515, -695 / 777600, 4 / 2835, 3 / 864, -4 / 135, 1 / 12]
_SECOND = [1 / 4860, -77 / 77760, 1 / 378, -1 / 288, -1 / 540]


def _prefix(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """``x^a e^-x / gamma(a + 1)``; for large a from its distance to the peak, where the plain formula loses digits."""
    large = a >= 8
    b, y = np.where(large, a, 8.0), np.where(large, x, 8.0)
    mu = (y - b) / b
    peak = np.exp(b * (np.log1p(mu) - mu) - stirling_rest(b)) / np.sqrt(2 * math.pi * b)
    far = np.exp(b * np.log(y) - y - lgamma(b + 1))
    near = np.abs(mu) < 0.5
    plain = np.exp(a * np.log(x) - x - lgamma(a + 1))
    return np.where(large, np.where(near, peak, far), plain)


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


def _erfc(z: np.ndarray) -> np.ndarray:
    out = np.empty_like(z)
    special.erfc(z, out, np.empty((special.ROWS, special.BLOCK)), np.empty(special.BLOCK, bool))
    return out


def _uniform(a: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``(P, Q, dP/da)`` for large a."""
    mu = np.clip((x - a) / a, -0.9, 10.0)  # beyond, P is 0 or 1
    log = np.log1p(mu)
    close = np.abs(mu) < 0.02
    near, far = np.where(close, mu, 0.0), np.where(close, 0.02, mu)
    series = polynomial([2 * (-1) ** k / (k + 2) for k in reversed(range(10))], near)
    ratio = np.where(close, np.sqrt(series), np.sqrt(2 * (far - np.log1p(far))) / np.abs(far))  # eta / mu
    eta = mu * ratio
    first = np.where(close, polynomial(_FIRST, near * np.sqrt(series)), 1 / far - 1 / np.where(close, 1.0, eta))
    slope = polynomial(_SLOPE, np.where(close, eta, 0.0))
    second = polynomial(_SECOND, np.where(close, eta, 0.0))  # farther off the Gaussian is 0 beside it
    z = eta * np.sqrt(a / 2)
    gaussian = np.exp(-z * z) / np.sqrt(2 * math.pi * a)
    rest = gaussian * (first + second / a)
    by_eta = np.where(mu == 0, 1.0, log / np.where(mu == 0, 1.0, eta))
    change = -gaussian * (by_eta + log * first - first / (2 * a) - slope / (ratio * a))
    return 0.5 * _erfc(-z) - rest, 0.5 * _erfc(z) + rest, change


def _parts(a: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """``(P, Q, dP/da, inner)``; inner says where a and x are positive and finite."""
    inner = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
    large = inner & (a >= _LARGE)
    low = inner & ~large & ((x <= 1) | (x <= a + 1))
    high = inner & ~large & ~low
    p, q, slope = np.full_like(a, np.nan), np.full_like(a, np.nan), np.full_like(a, np.nan)
    s, t = a[low], x[low]
    total, change = _series(s, t)
    factor = _prefix(s, t)
    p[low] = factor * total
    q[low] = 1 - p[low]
    slope[low] = p[low] * (np.log(t) - digamma(s + 1)) + factor * change
    s, t = a[high], x[high]
    total, change = _fraction(s, t)
    factor = _prefix(s, t) * s
    q[high] = factor * total
    p[high] = 1 - q[high]
    slope[high] = -(q[high] * (np.log(t) - digamma(s)) + factor * change)
    p[large], q[large], slope[large] = _uniform(a[large], x[large])
    return p, q, slope, inner


def _at_the_border(a: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """P where a or x is 0 or infinite, and where that is (else the value is NaN)."""
    value = np.where((x == 0) | np.isinf(a), 0.0, 1.0)
    known = (
        ((a > 0) & (x == 0)) | ((a > 0) & np.isposinf(x) & np.isfinite(a)) | (np.isposinf(a) & (x > 0) & np.isfinite(x))
    )
    return value, known | ((a == 0) & (x > 0))


def igamma(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """P(a, x), the lower incomplete gamma function divided by gamma(a); NaN for negative arguments."""
    p, _, _, inner = _parts(a, x)
    value, known = _at_the_border(a, x)
    return np.where(inner, p, np.where(known, value, np.nan))


def igammac(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Q(a, x) = 1 - P(a, x), without the cancellation."""
    _, q, _, inner = _parts(a, x)
    value, known = _at_the_border(a, x)
    return np.where(inner, q, np.where(known, 1 - value, np.nan))


def igamma_grad_a(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The derivative of P(a, x) by a."""
    _, _, slope, inner = _parts(a, x)
    _, known = _at_the_border(a, x)
    return np.where(inner, slope, np.where(known, 0.0, np.nan))


def _beta_fraction(a: np.ndarray, b: np.ndarray, x: np.ndarray) -> np.ndarray:
    def step(state: list[np.ndarray], n: int) -> tuple[list[np.ndarray], np.ndarray]:
        a, b, x, c, d, h = state
        even = n * (b - n) * x / ((a + 2 * n - 1) * (a + 2 * n))
        odd = -(a + n) * (a + b + n) * x / ((a + 2 * n) * (a + 2 * n + 1))
        for top in (even, odd):
            d = 1 + top * d
            d = 1 / np.where(np.abs(d) < _TINY, _TINY, d)
            c = 1 + top / c
            c = np.where(np.abs(c) < _TINY, _TINY, c)
            factor = c * d
            h = h * factor
        return [a, b, x, c, d, h], (np.abs(factor - 1) < _EPSILON * 3) | ~np.isfinite(h)

    d = 1 - (a + b) * x / (a + 1)
    d = 1 / np.where(np.abs(d) < _TINY, _TINY, d)
    return _repeat([a, b, x, np.ones_like(a), d, d], step)[5]


def betainc(a: np.ndarray, b: np.ndarray, x: np.ndarray) -> np.ndarray:
    """I_x(a, b), the regularised incomplete beta function, for positive a and b and x in [0, 1]; else NaN."""
    valid = (a > 0) & (b > 0) & np.isfinite(a) & np.isfinite(b)
    inner = valid & (x > 0) & (x < 1)
    result = np.where(valid & (x == 0), 0.0, np.where(valid & (x == 1), 1.0, np.nan))
    s, t, y = a[inner], b[inner], x[inner]
    swapped = y > (s + 1) / (s + t + 2)
    p, q, z = np.where(swapped, t, s), np.where(swapped, s, t), np.where(swapped, 1 - y, y)
    log = s * np.log(y) + t * np.log1p(-y) + lgamma(s + t) - lgamma(s) - lgamma(t)
    part = np.exp(log) * _beta_fraction(p, q, z) / p
    result[inner] = np.where(swapped, 1 - part, part)
    return result
