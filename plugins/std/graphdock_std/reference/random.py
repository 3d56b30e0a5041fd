"""Oracles of random ops: Philox4x64-10 in Python integers, and the rules that make its words into values.

Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011. Nothing of ``numpy.random`` is used.
Each function takes the op's inputs and attributes. ``key`` and ``counter`` (ordinal, iteration) are as a RandomStream
gives them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import numpy as np

_MASK = (1 << 64) - 1
_MULTIPLIERS = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
_WEYL = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
_ROUNDS = 10


def philox(counter: Sequence[int], key: Sequence[int]) -> tuple[int, int, int, int]:
    """One block: four 64-bit words of a 256-bit counter (least significant word first) and a 128-bit key."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(_ROUNDS):
        a, b = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c1, c2, c3 = (b >> 64) ^ c1 ^ k0, b & _MASK, (a >> 64) ^ c3 ^ k1, a & _MASK
        k0, k1 = (k0 + _WEYL[0]) & _MASK, (k1 + _WEYL[1]) & _MASK
    return c0, c1, c2, c3


def words(count: int, key: Sequence[int], counter: tuple[int, ...]) -> list[int]:
    """The first words of an execution's stream; its first block has number 1: NumPy increments, then computes."""
    ordinal, iteration, outer = (*counter, 0)[:3]
    out: list[int] = []
    for block in range(1, (count + 3) // 4 + 1):
        out += philox((block, outer, iteration, ordinal), key)
    return out[:count]


def _halves(count: int, key: Sequence[int], counter: tuple[int, ...]) -> list[int]:
    """32-bit halves of the words, low half first."""
    return [h for w in words((count + 1) // 2, key, counter) for h in (w & 0xFFFFFFFF, w >> 32)][:count]


def _numpy(dtype: Any) -> np.dtype[Any]:
    return np.dtype(getattr(dtype, "np", dtype))


def _fractions(count: int, dtype: Any, key: Sequence[int], counter: tuple[int, ...]) -> tuple[list[float], float]:
    """Uniform numbers of the op's wide type (float64, else float32), and the step between neighbours."""
    if _numpy(dtype) == np.float64:
        return [(w >> 11) * 2.0**-53 for w in words(count, key, counter)], 2.0**-53
    return [(h >> 8) * 2.0**-24 for h in _halves(count, key, counter)], 2.0**-24


def _shaped(values: Sequence[Any], shape: Any, dtype: Any) -> np.ndarray:
    return np.array(values, np.float64).reshape(tuple(int(d) for d in shape)).astype(_numpy(dtype))


def _size(shape: Any) -> int:
    return math.prod(int(d) for d in shape)


def random_uniform(shape: Any, dtype: Any, *, key: Sequence[int], counter: tuple[int, ...], **_: Any) -> np.ndarray:
    """The top 53, 24, 11 or 8 bits (float64, float32, float16, bfloat16) of a word or half, as a fraction of one."""
    name = _numpy(dtype).name
    if name in ("float16", "bfloat16"):
        bits = 11 if name == "float16" else 8
        values = [(h >> (32 - bits)) * 2.0**-bits for h in _halves(_size(shape), key, counter)]
    else:
        values, _step = _fractions(_size(shape), dtype, key, counter)
    return _shaped(values, shape, dtype)


def random_stream(*, key: Sequence[int], counter: tuple[int, ...], **_: Any) -> np.ndarray:
    """Key, outer iterations, iteration, ordinal."""
    ordinal, iteration, outer = (*counter, 0)[:3]
    words = (*key, outer, iteration, ordinal)
    return np.array([word & _MASK for word in words], np.uint64)


def stream_uniform(shape: Any, stream: Any, dtype: Any = np.float32, **_: Any) -> np.ndarray:
    first, second, outer, iteration, ordinal = (int(word) for word in stream)
    return random_uniform(shape, dtype, key=(first, second), counter=(ordinal, iteration, outer))


def random_uniform_int(
    shape: Any, minval: Any, maxval: Any, dtype: Any = None, *, key: Sequence[int], counter: tuple[int, ...], **_: Any
) -> np.ndarray:
    """``minval + word mod (maxval - minval)``; of more than 2**32 integers, a 128-bit fraction of the range."""
    low, span = int(minval), int(maxval) - int(minval)
    size = _size(shape)
    if span <= 1 << 32:
        values = [low + w % span for w in words(size, key, counter)]
    else:
        drawn = words(2 * size, key, counter)
        values = [low + (span * (a << 64 | b) >> 128) for a, b in zip(drawn[::2], drawn[1::2], strict=True)]
    kind = np.asarray(minval).dtype if dtype is None else _numpy(dtype)
    return np.array(values, kind).reshape(tuple(int(d) for d in shape))


def standard_normal(shape: Any, dtype: Any, *, key: Sequence[int], counter: tuple[int, ...], **_: Any) -> np.ndarray:
    """Box-Muller on pairs: element 2k is the cosine's, 2k + 1 the sine's."""
    size = _size(shape)
    u, _step = _fractions(size + size % 2, dtype, key, counter)
    values: list[float] = []
    for a, b in zip(u[::2], u[1::2], strict=True):
        radius, angle = math.sqrt(-2.0 * math.log(1.0 - a)), 2.0 * math.pi * b
        values += [radius * math.cos(angle), radius * math.sin(angle)]
    return _shaped(values[:size], shape, dtype)


def truncated_normal(shape: Any, dtype: Any, *, key: Sequence[int], counter: tuple[int, ...], **_: Any) -> np.ndarray:
    """The inverse of the normal distribution, at the middle of each uniform step, between its values at -2 and 2."""
    u, step = _fractions(_size(shape), dtype, key, counter)
    normal = NormalDist()
    low, high = normal.cdf(-2.0), normal.cdf(2.0)
    return _shaped([normal.inv_cdf(low + (v + step / 2) * (high - low)) for v in u], shape, dtype)


def random_shuffle(value: Any, *, key: Sequence[int], counter: tuple[int, ...], **_: Any) -> np.ndarray:
    """Rows in the order of one word each; equal words keep their order."""
    rows = np.asarray(value)
    if rows.ndim == 0:
        return rows
    draws = words(len(rows), key, counter)
    return rows[sorted(range(len(rows)), key=draws.__getitem__)]
