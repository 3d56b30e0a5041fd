"""Oracles of the segment reductions: the rows of each segment, one element at a time."""

from __future__ import annotations

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


def segment_sum(data: np.ndarray, segment_ids: np.ndarray, **_: Any) -> np.ndarray:
    return _segments(data, segment_ids, _count(segment_ids), _sum, 0)


def segment_mean(data: np.ndarray, segment_ids: np.ndarray, **_: Any) -> np.ndarray:
    return _segments(data, segment_ids, _count(segment_ids), _mean, 0)


def segment_prod(data: np.ndarray, segment_ids: np.ndarray, **_: Any) -> np.ndarray:
    return _segments(data, segment_ids, _count(segment_ids), math.prod, 1)


def segment_max(data: np.ndarray, segment_ids: np.ndarray, **_: Any) -> np.ndarray:
    return _segments(data, segment_ids, _count(segment_ids), max, 0)


def segment_min(data: np.ndarray, segment_ids: np.ndarray, **_: Any) -> np.ndarray:
    return _segments(data, segment_ids, _count(segment_ids), min, 0)


def unsorted_segment_prod(data: np.ndarray, segment_ids: np.ndarray, num_segments: Any, **_: Any) -> np.ndarray:
    return _segments(data, segment_ids, int(num_segments), math.prod, 1)


def _ends(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    if dtype.kind in "iu":
        bits = 8 * dtype.itemsize
        return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if dtype.kind == "i" else (0, 2**bits - 1)
    # (mantissa bits with the hidden one, largest exponent)
    digits, exponent = {"float16": (11, 16), "float32": (24, 128), "float64": (53, 1024)}.get(dtype.name, (8, 128))
    largest = (2**digits - 1) * 2.0 ** (exponent - digits)
    return -largest, largest


def unsorted_segment_max(data: np.ndarray, segment_ids: np.ndarray, num_segments: Any, **_: Any) -> np.ndarray:
    return _segments(data, segment_ids, int(num_segments), max, _ends(data.dtype)[0])


def unsorted_segment_min(data: np.ndarray, segment_ids: np.ndarray, num_segments: Any, **_: Any) -> np.ndarray:
    return _segments(data, segment_ids, int(num_segments), min, _ends(data.dtype)[1])


def _sparse(data: np.ndarray, indices: np.ndarray, ids: np.ndarray, num: Any, combine: Combine) -> np.ndarray:
    rows = np.empty((len(indices), *data.shape[1:]), data.dtype)
    for i, index in enumerate(indices):
        rows[i] = data[int(index)]
    return _segments(rows, ids, _count(ids) if num is None else int(num), combine, 0)


def sparse_segment_sum(data: Any, indices: Any, segment_ids: Any, num_segments: Any = None, **_: Any) -> np.ndarray:
    return _sparse(data, indices, segment_ids, num_segments, _sum)


def sparse_segment_mean(data: Any, indices: Any, segment_ids: Any, num_segments: Any = None, **_: Any) -> np.ndarray:
    return _sparse(data, indices, segment_ids, num_segments, _mean)


def sparse_segment_sqrt_n(data: Any, indices: Any, segment_ids: Any, num_segments: Any = None, **_: Any) -> np.ndarray:
    return _sparse(data, indices, segment_ids, num_segments, _sqrt_n)
