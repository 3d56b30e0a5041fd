"""Oracles of ops that draw from distributions with parameters: one number after another, over Philox in Python integers."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphdock_std.reference import random as plain

_MASK = (1 << 64) - 1


def _fraction(word: int) -> float:
    return (word >> 11) * 2.0**-53


def multinomial(
    logits: Any,
    num_samples: Any,
    output_dtype: Any = np.int64,
    *,
    key: Sequence[int],
    counter: tuple[int, ...],
    **_: Any,
) -> np.ndarray:
    """The first class whose running sum of probabilities is above a uniform part of their total."""
    rows, count = np.asarray(logits, np.float64).tolist(), int(num_samples)
    words = iter(plain.words(len(rows) * count, key, counter))
    out = []
    for row in rows:
        top = max((v for v in row if math.isfinite(v)), default=0.0)
        sums = list(itertools.accumulate(math.exp(v - top) if math.isfinite(v) else 0.0 for v in row))
        out.append([bisect.bisect_right(sums, _fraction(next(words)) * sums[-1]) for _ in range(count)])
    return np.array(out, np.int64).reshape(len(rows), count).astype(output_dtype)


def _of_each(
    shape: Any, parameters: Any, key: Sequence[int], counter: tuple[int, ...], draw: Callable[..., float]
) -> np.ndarray:
    """``draw(parameter, attempts)`` per element; ``attempts`` yields the four words of each of its blocks."""
    parameters = np.asarray(parameters)
    made = (*(int(d) for d in shape), *parameters.shape)
    size = math.prod(made)
    ordinal, iteration, outer = (*counter, 0)[:3]
    flat = parameters.astype(np.float64).reshape(-1).tolist()
    values = []
    for i in range(size):
        blocks = (plain.philox((1 + r * size + i, outer, iteration, ordinal), key) for r in itertools.count())
        values.append(draw(flat[i % len(flat)], blocks))
    return np.array(values, np.float64).reshape(made)


def _gamma(alpha: float, attempts: Any) -> float:
    if not 0 < alpha < math.inf:
        return math.nan
    d = (alpha if alpha >= 1 else alpha + 1) - 1 / 3
    for block in attempts:
        a, b, c, e = map(_fraction, block)
        z = math.sqrt(-2 * math.log(1 - a)) * math.cos(2 * math.pi * b)
        v = (1 + z / math.sqrt(9 * d)) ** 3
        if v > 0 and math.log(1 - c) < z * z / 2 + d - d * v + d * math.log(v):
            return d * v * (1.0 if alpha >= 1 else (1 - e) ** (1 / alpha))
    raise AssertionError("attempts have no end")


def random_gamma(shape: Any, alpha: Any, *, key: Sequence[int], counter: tuple[int, ...], **_: Any) -> np.ndarray:
    """Marsaglia and Tsang's method, an element at a time."""
    return _of_each(shape, alpha, key, counter, _gamma).astype(np.asarray(alpha).dtype)


def _poisson(rate: float, attempts: Any) -> float:
    if not 0 <= rate < math.inf:
        return math.nan
    for block in attempts:
        u, v = map(_fraction, block[:2])
        if rate < 10:
            total = term = math.exp(-rate)
            for k in range(1, 100):
                if u < total:
                    return k - 1
                term = term * rate / k
                total += term
            return 99
        b = 0.931 + 2.53 * math.sqrt(rate)
        a = -0.059 + 0.02483 * b
        u, v = u - 0.5, 1 - v
        edge = 0.5 - abs(u)
        if edge == 0:
            continue
        k = math.floor((2 * a / edge + b) * u + rate + 0.43)
        if edge >= 0.07 and v <= 0.9277 - 3.6224 / (b - 2):
            return k
        if k < 0 or (edge < 0.013 and v > edge):
            continue
        shape = a / edge**2 + b
        if math.log(v * (1.1239 + 1.1328 / (b - 3.4)) / shape) <= k * math.log(rate) - rate - math.lgamma(k + 1):
            return k
    raise AssertionError("attempts have no end")


def random_poisson(
    shape: Any, lam: Any, dtype: Any = np.float32, *, key: Sequence[int], counter: tuple[int, ...], **_: Any
) -> np.ndarray:
    """Inversion below a rate of 10, PTRS above, an element at a time."""
    values = _of_each(shape, lam, key, counter, _poisson)
    kind = np.dtype(getattr(dtype, "np", dtype))
    return (np.nan_to_num(values) if kind.kind == "i" else values).astype(kind)


def _key(seed: Any) -> tuple[int, int]:
    first, second = (int(s) & _MASK for s in seed)
    return first, second


def stateless_multinomial(logits: Any, num_samples: Any, seed: Any, output_dtype: Any = np.int64) -> np.ndarray:
    """The stateful op's first step."""
    return multinomial(logits, num_samples, output_dtype, key=_key(seed), counter=(0, 0))


def stateless_uniform(shape: Any, seed: Any, dtype: Any = np.float32) -> np.ndarray:
    """The stateful op's first step."""
    return plain.random_uniform(shape, dtype, key=_key(seed), counter=(0, 0))


def stateless_normal(shape: Any, seed: Any, dtype: Any = np.float32) -> np.ndarray:
    """The stateful op's first step."""
    return plain.standard_normal(shape, dtype, key=_key(seed), counter=(0, 0))


def stateless_truncated_normal(shape: Any, seed: Any, dtype: Any = np.float32) -> np.ndarray:
    """The stateful op's first step."""
    return plain.truncated_normal(shape, dtype, key=_key(seed), counter=(0, 0))


def stateless_uniform_int(shape: Any, minval: Any, maxval: Any, seed: Any) -> np.ndarray:
    """The stateful op's first step."""
    return plain.random_uniform_int(shape, minval, maxval, None, key=_key(seed), counter=(0, 0))
