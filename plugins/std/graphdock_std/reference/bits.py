"""Oracles of specs/bits.yaml: Python's integers, digits of their binary form, and bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphdock_std.reference.math import elementwise, per_element

bitwise_and = per_element(lambda a, b: a & b)
bitwise_or = per_element(lambda a, b: a + b - (a & b))
bitwise_xor = per_element(lambda a, b: a + b - 2 * (a & b))
invert = per_element(lambda a: -1 - a)


def _count(y: int, dtype: Any) -> int:
    return min(max(y, 0), 8 * dtype.itemsize - 1)


def left_shift(x: Any, y: Any, **_: Any) -> np.ndarray:
    return elementwise(lambda a, b: a * 2 ** _count(b, x.dtype), x, y)


def right_shift(x: Any, y: Any, **_: Any) -> np.ndarray:
    return elementwise(lambda a, b: a // 2 ** _count(b, x.dtype), x, y)


def population_count(x: Any, **_: Any) -> np.ndarray:
    return elementwise(lambda a: bin(a % (1 << 8 * x.dtype.itemsize)).count("1"), x, dtype=np.uint8)


def bitcast(input: Any, type: Any, **_: Any) -> np.ndarray:
    from graphdock import dtypes

    wanted = dtypes.as_dtype(type).np
    flat = np.frombuffer(np.ascontiguousarray(input).tobytes(), wanted)
    have, want = input.dtype.itemsize, wanted.itemsize
    lead = input.shape[:-1] if have < want else input.shape
    return flat.reshape((*lead, have // want) if have > want else lead)
