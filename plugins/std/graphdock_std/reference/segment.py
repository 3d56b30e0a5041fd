"""Oracles of the segment reductions: the rows of each segment, one element at a time."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from graphdock_std.reference.math import wrap

Combine = Callable[[list[Any]], Any]


def _segments(data: np.ndarray, ids: np.ndarray, count: int, combine: Combine, empty: Any) -> np.ndarray:
    """``combine`` of the elements of each segment and column; ``empty`` for a segment without any."""
    whole = data.dtype.kind in "iub"
    number: Any = int if whole else complex if data.dtype.kind == "c" else float
    rest = data.shape[ids.ndim :]
    out = np.empty((count, *rest), data.dtype)
    for segment in range(count):
        members = [i for i in np.ndindex(ids.shape) if int(ids[i]) == segment]
        for place in np.ndindex(rest):
            values = [number(data[m + place]) for m in members]
            result = combine(values) if values else empty
            out[(segment, *place)] = wrap(int(result), data.dtype) if whole else result
    return out


def _count(ids: np.ndarray) -> int:
    return max((int(v) for v in ids.ravel()), default=-1) + 1


def _mean(values: list[Any]) -> Any:
    if isinstance(values[0], int):
        return math.trunc(Fraction(sum(values), len(values)))
    return _sum(values) / len(values)


def _sum(values: list[Any]) -> Any:
    return math.fsum(values) if isinstance(values[0], float) else sum(values)


def _sqrt_n(values: list[Any]) -> Any:
    return math.fsum(values) / math.sqrt(len(values))


def _largest(values: list[Any]) -> Any:
    """Row after row; what comes later wins over a NaN, and a NaN over what came before."""
    return functools.reduce(lambda a, b: a if a > b else b, values)


def _smallest(values: list[Any]) -> Any:
    return functools.reduce(lambda a, b: a if a < b else b, values)


def _ends(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    if dtype.kind in "iu":
        bits = 8 * dtype.itemsize
        return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if dtype.kind == "i" else (0, 2**bits - 1)
    # (mantissa bits with the hidden one, largest exponent)
    digits, exponent = {"float16": (11, 16), "float32": (24, 128), "float64": (53, 1024)}.get(dtype.name, (8, 128))
    largest = (2**digits - 1) * 2.0 ** (exponent - digits)
    return -largest, largest


def _sorted(combine: Combine, empty: Any = 0) -> Callable[..., np.ndarray]:
    return lambda data, segment_ids, **_: _segments(data, segment_ids, _count(segment_ids), combine, empty)


def _unsorted(combine: Combine, empty: Callable[[np.dtype[Any]], Any]) -> Callable[..., np.ndarray]:
    def oracle(data: np.ndarray, segment_ids: np.ndarray, num_segments: Any, **_: Any) -> np.ndarray:
        return _segments(data, segment_ids, int(num_segments), combine, empty(data.dtype))

    return oracle


def _sparse(combine: Combine) -> Callable[..., np.ndarray]:
    def oracle(data: Any, indices: Any, segment_ids: Any, num_segments: Any = None, **_: Any) -> np.ndarray:
        rows = np.empty((len(indices), *data.shape[1:]), data.dtype)
        for i, index in enumerate(indices):
            rows[i] = data[int(index)]
        count = _count(segment_ids) if num_segments is None else int(num_segments)
        return _segments(rows, segment_ids, count, combine, 0)

    return oracle


segment_sum = _sorted(_sum)
segment_mean = _sorted(_mean)
segment_prod = _sorted(math.prod, 1)
segment_max = _sorted(_largest)
segment_min = _sorted(_smallest)
unsorted_segment_prod = _unsorted(math.prod, lambda dtype: 1)
unsorted_segment_max = _unsorted(_largest, lambda dtype: _ends(dtype)[0])
unsorted_segment_min = _unsorted(_smallest, lambda dtype: _ends(dtype)[1])
sparse_segment_sum = _sparse(_sum)
sparse_segment_mean = _sparse(_mean)
sparse_segment_sqrt_n = _sparse(_sqrt_n)
