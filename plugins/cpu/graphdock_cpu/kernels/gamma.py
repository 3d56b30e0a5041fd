"""The gamma function's kin in vectorised NumPy, in float64: lgamma, digamma, zeta, polygamma.

M. Abramowitz and I. Stegun, "Handbook of Mathematical Functions" (1964), chapters 6 and 23: the recurrence and reflection
formulas, Stirling's asymptotic series (6.1.41, 6.3.18), the Taylor series of the logarithm (6.1.33), and Euler and Maclaurin's sum
(23.1.30) for Hurwitz's zeta function. Functions take and return arrays of one shape.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

__all__ = ["digamma", "lgamma", "polygamma", "polynomial", "stirling_rest", "zeta"]

_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)


def _bernoulli(count: int) -> list[Fraction]:
    """B2, B4, ... : the Bernoulli numbers of even index."""
    numbers = [Fraction(1)]
    for m in range(1, 2 * count + 1):
        numbers.append(-sum((math.comb(m + 1, k) * numbers[k] for k in range(m)), Fraction(0)) / (m + 1))
    return numbers[2::2]


_B = _bernoulli(12)
#: Of log gamma beyond Stirling's formula: B2k / (2k (2k-1)), in powers of 1/x^2 over x; highest power first.
_STIRLING = [float(b / (2 * k * (2 * k - 1))) for k, b in enumerate(_B[:8], 1)][::-1]
#: Of digamma: B2k / 2k in powers of 1/x^2.
_DIGAMMA = [float(b / (2 * k)) for k, b in enumerate(_B[:8], 1)][::-1]
#: Of Euler and Maclaurin: B2k / (2k)!.
_MACLAURIN = [float(b / math.factorial(2 * k)) for k, b in enumerate(_B, 1)]


def polynomial(coefficients: list[float], x: np.ndarray) -> np.ndarray:
    """Highest power first."""
    total = np.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        total *= x
        total += c
    return total


def _zeta_less_one(k: int) -> float:
    """zeta(k) - 1 for integers from 2 on, to the last digits: a sum of 20 terms and what Euler and Maclaurin say of the rest."""
    n = 21
    terms = [m**-k for m in range(2, n)] + [n ** (1 - k) / (k - 1), 0.5 * n**-k]
    rising = float(k)
    for i, c in enumerate(_MACLAURIN[:6]):
        terms.append(c * rising * n ** (-k - 2 * i - 1))
        rising *= (k + 2 * i + 1) * (k + 2 * i + 2)
    return math.fsum(terms)


#: lgamma(2 + t) / t, |t| up to a half: 1 - Euler's constant, then (-1)^k (zeta(k) - 1) / k.
_NEAR_TWO = [1 - 0.57721566490153286061, *((-1) ** k * _zeta_less_one(k) / k for k in range(2, 28))][::-1]


def stirling_rest(x: np.ndarray) -> np.ndarray:
    """``lgamma(x) - ((x - 1/2) log x - x + log(2 pi) / 2)`` for x from 8 on."""
    inverse = 1 / x
    return polynomial(_STIRLING, inverse * inverse) * inverse


def _sine_of_pi(x: np.ndarray) -> np.ndarray:
    """sin(pi x) but for its sign, exact at integers."""
    return np.sin(np.pi * np.abs(x - np.round(x)))


def lgamma(x: np.ndarray) -> np.ndarray:
    """log |gamma(x)|; infinite at the poles."""
    y = np.where(x < 0, 1 - x, x)
    large = y >= 8
    near, up, down = np.where(large, 2.0, y), np.ones_like(y), np.ones_like(y)
    for _ in range(6):
        above = near > 2.5
        near = np.where(above, near - 1, near)
        up = np.where(above, up * near, up)
    for _ in range(2):
        below = near < 1.5
        down = np.where(below, down * near, down)
        near = np.where(below, near + 1, near)
    t = near - 2
    small = polynomial(_NEAR_TWO, t) * t + np.log(up) - np.log(down)
    big = np.where(large, y, 8.0)
    result = np.where(large, (big - 0.5) * np.log(big) - big + _LOG_SQRT_2PI + stirling_rest(big), small)
    result = np.where(np.isinf(y), np.inf, result)
    reflected = math.log(math.pi) - np.log(_sine_of_pi(x)) - result
    return np.where(x < 0, np.where(np.isinf(x) | (x == np.floor(x)), np.inf, reflected), result)


def digamma(x: np.ndarray) -> np.ndarray:
    """The derivative of log gamma; NaN at the poles."""
    y = np.where(x < 0.5, 1 - x, x)
    far, sums = y.copy(), np.zeros_like(y)
    for _ in range(10):
        below = far < 10
        sums += np.where(below, 1 / np.where(below, far, 1.0), 0.0)
        far = np.where(below, far + 1, far)
    inverse = 1 / (far * far)
    result = np.log(far) - 0.5 / far - polynomial(_DIGAMMA, inverse) * inverse - sums
    fraction = x - np.round(x)
    reflected = result - np.pi / np.tan(np.pi * fraction)
    return np.where(x < 0.5, np.where(x <= 0, np.where(fraction == 0, np.nan, reflected), reflected), result)


def zeta(x: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Hurwitz's zeta function, the sum of ``(q + k) ** -x``, for x > 1.

    Infinite at the poles x = 1 and q = 0, -1, ...; NaN for x < 1, and for negative q with an x that is no integer. Far below 0
    the terms of negative base are the difference of two sums over positive ones.
    """
    pole = (x == 1) | ((q <= 0) & (q == np.floor(q)) & (x > 1))
    wrong = ~(x >= 1) | np.isnan(q) | ((q < 0) & (x != np.floor(x)))
    below = ~pole & ~wrong & (q < -12)
    s, a = np.where(wrong | pole | np.isinf(q), 2.0, x), np.where(wrong | pole | np.isinf(q), 1.0, q)
    a = np.where(below, a - np.floor(a), a)
    total = np.zeros_like(s)
    for _ in range(12 + math.ceil(max(0.0, -a.min(initial=0.0)))):
        total += a**-s
        a = a + 1
    power = a**-s
    total += power * a / (s - 1) + 0.5 * power
    rising, power = s.copy(), power / a
    for i, c in enumerate(_MACLAURIN):
        total += c * np.where(power == 0, 0.0, rising) * power
        rising *= (s + 2 * i + 1) * (s + 2 * i + 2)
        power /= a * a
    total = np.where((np.isinf(x) & (q > 1)) | (np.isposinf(q) & (x > 1)), 0.0, total)
    if below.any():
        s, a = x[below], -q[below]
        mirrored = zeta(s, a - np.floor(a)) - zeta(s, a + 1)
        total[below] += np.where(s % 2 == 0, mirrored, -mirrored)
    return np.where(wrong, np.nan, np.where(pole, np.inf, total))


_FACTORIALS = np.array([float(math.factorial(n)) for n in range(171)])


def polygamma(n: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Derivative ``n`` of digamma; NaN where n is negative or no integer, or above 170."""
    wrong = ~((n >= 0) & (n == np.floor(n)) & (n <= 170))
    order = np.where(wrong | (n == 0), 1.0, n)
    sign = np.where(order % 2 == 1, 1.0, -1.0)
    higher = sign * _FACTORIALS[order.astype(np.int64)] * zeta(order + 1, x)
    return np.where(wrong, np.nan, np.where(n == 0, digamma(x), higher))
