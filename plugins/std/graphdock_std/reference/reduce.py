"""Oracles of specs/reduce.yaml: Python loops over index tuples, ``math.fsum`` for floating sums."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from graphdock_std.reference.math import number, wrap

Reduce = Callable[[list[Any]], Any]


def _reduced(x: Any, axis: Any, keep_dims: bool, function: Reduce) -> np.ndarray:
    """``function`` of the list of elements that go into each element of the result."""
    x = np.asarray(x)
    axes = {int(a) % x.ndim for a in np.asarray(axis).reshape(-1)}
    shape = tuple(1 if i in axes else d for i, d in enumerate(x.shape))
    groups: dict[tuple[int, ...], list[Any]] = {index: [] for index in np.ndindex(shape)}
    for index in np.ndindex(x.shape):
        value = x[index]
        groups[tuple(0 if i in axes else d for i, d in enumerate(index))].append(number(value))
    out = np.empty(shape, x.dtype)
    for index, values in groups.items():
        out[index] = wrap(function(values), x.dtype)
    return out if keep_dims else out.reshape([d for i, d in enumerate(shape) if i not in axes])


def _total(values: list[Any]) -> Any:
    if values and isinstance(values[0], float):
        return math.fsum(values)
    total = 0
    for v in values:
        total += v
    return total


def sum_(x: Any, axis: Any, keep_dims: bool = False) -> np.ndarray:
    return _reduced(x, axis, keep_dims, _total)


def mean_(x: Any, axis: Any, keep_dims: bool = False) -> np.ndarray:
    whole = np.asarray(x).dtype.kind in "iu"

    def mean(values: list[Any]) -> Any:
        if not values:
            return 0 if whole else math.nan
        total = _total(values)
        if whole:
            quotient = abs(total) // len(values)
            return -quotient if total < 0 else quotient
        return total / len(values)

    return _reduced(x, axis, keep_dims, mean)


def prod_(x: Any, axis: Any, keep_dims: bool = False) -> np.ndarray:
    return _reduced(x, axis, keep_dims, lambda values: math.prod(values))


def _limits(x: Any) -> tuple[Any, Any]:
    dtype = np.asarray(x).dtype
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return int(info.min), int(info.max)
    return -math.inf, math.inf


def _extreme(values: list[Any], start: Any, better: Callable[[Any, Any], bool]) -> Any:
    best = start
    for v in values:
        if v != v:
            return v
        if better(v, best):
            best = v
    return best


def max_(x: Any, axis: Any, keep_dims: bool = False) -> np.ndarray:
    return _reduced(x, axis, keep_dims, lambda values: _extreme(values, _limits(x)[0], lambda a, b: a > b))


def min_(x: Any, axis: Any, keep_dims: bool = False) -> np.ndarray:
    return _reduced(x, axis, keep_dims, lambda values: _extreme(values, _limits(x)[1], lambda a, b: a < b))


def all_(x: Any, axis: Any, keep_dims: bool = False) -> np.ndarray:
    return _reduced(x, axis, keep_dims, lambda values: False not in values)


def any_(x: Any, axis: Any, keep_dims: bool = False) -> np.ndarray:
    return _reduced(x, axis, keep_dims, lambda values: True in values)


def _index(x: Any, axis: Any, output_type: Any, better: Callable[[Any, Any], bool]) -> np.ndarray:
    x = np.asarray(x)
    at = int(axis) % x.ndim
    moved = np.moveaxis(x, at, -1)
    out = np.empty(moved.shape[:-1], np.dtype(str(output_type)))
    for index in np.ndindex(out.shape):
        best = 0
        for i, value in enumerate(moved[index]):
            if better(float(value), float(moved[index][best])):
                best = i
        out[index] = best
    return out


def arg_max(x: Any, axis: Any, output_type: Any = "int64") -> np.ndarray:
    return _index(x, axis, output_type, lambda a, b: a > b)


def arg_min(x: Any, axis: Any, output_type: Any = "int64") -> np.ndarray:
    return _index(x, axis, output_type, lambda a, b: a < b)


def cumsum(x: Any, axis: Any, exclusive: bool = False, reverse: bool = False) -> np.ndarray:
    x = np.asarray(x)
    at = int(axis) % x.ndim
    out = np.empty(x.shape, x.dtype)
    for index in np.ndindex(x.shape):
        place, size = index[at], x.shape[at]
        first, last = (place + exclusive, size) if reverse else (0, place + 1 - exclusive)
        line = [x[(*index[:at], i, *index[at + 1 :])] for i in range(first, last)]
        numbers = [number(v) for v in line]
        out[index] = wrap(_total(numbers), x.dtype)
    return out


def cumprod(x: Any, axis: Any, exclusive: bool = False, reverse: bool = False) -> np.ndarray:
    x = np.asarray(x)
    at = int(axis) % x.ndim
    out = np.empty(x.shape, x.dtype)
    for index in np.ndindex(x.shape):
        place, size = index[at], x.shape[at]
        first, last = (place + exclusive, size) if reverse else (0, place + 1 - exclusive)
        line = [x[(*index[:at], i, *index[at + 1 :])] for i in range(first, last)]
        number: Any = int if x.dtype.kind in "iu" else complex if x.dtype.kind == "c" else float
        out[index] = wrap(math.prod(map(number, line)), x.dtype)
    return out


def sum_to(x: Any, shape: Any) -> np.ndarray:
    x, target = np.asarray(x), tuple(int(d) for d in shape)
    lead = x.ndim - len(target)
    groups: dict[tuple[int, ...], list[Any]] = {index: [] for index in np.ndindex(target)}
    for index in np.ndindex(x.shape):
        place = tuple(0 if target[i] == 1 else d for i, d in enumerate(index[lead:]))
        groups[place].append(number(x[index]))
    out = np.empty(target, x.dtype)
    for index, values in groups.items():
        out[index] = wrap(_total(values), x.dtype)
    return out
