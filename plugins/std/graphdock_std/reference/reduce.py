"""Oracles of specs/reduce.yaml: Python loops over index tuples, sums that are rounded once."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from graphdock_std.reference.math import number, total, wrap


def _reduced(function: Callable[[list[Any], np.dtype[Any]], Any]) -> Callable[..., np.ndarray]:
    """The oracle of a reduction: ``function`` of the list of elements that go into each element of the result, and of the dtype."""

    def oracle(x: Any, axis: Any, keep_dims: bool = False) -> np.ndarray:
        x = np.asarray(x)
        axes = {int(a) % x.ndim for a in np.asarray(axis).reshape(-1)}
        shape = tuple(1 if i in axes else d for i, d in enumerate(x.shape))
        groups: dict[tuple[int, ...], list[Any]] = {index: [] for index in np.ndindex(shape)}
        for index in np.ndindex(x.shape):
            groups[tuple(0 if i in axes else d for i, d in enumerate(index))].append(number(x[index]))
        out = np.empty(shape, x.dtype)
        for index, values in groups.items():
            out[index] = wrap(function(values, x.dtype), x.dtype)
        return out if keep_dims else out.reshape([d for i, d in enumerate(shape) if i not in axes])

    return oracle


def _total(values: list[Any]) -> Any:
    if len(values) == 1:
        return values[0]  # and -0 with its sign
    if values and isinstance(values[0], float):
        return total(values)
    return sum(values)


def _mean(values: list[Any], dtype: np.dtype[Any]) -> Any:
    whole = dtype.kind in "iu"
    if not values:
        return 0 if whole else math.nan
    whole_sum = _total(values)
    if whole:
        quotient = abs(whole_sum) // len(values)
        return -quotient if whole_sum < 0 else quotient
    return whole_sum / len(values)


def _least(dtype: np.dtype[Any]) -> Any:
    return int(np.iinfo(dtype).min) if dtype.kind in "iu" else -math.inf


def _most(dtype: np.dtype[Any]) -> Any:
    return int(np.iinfo(dtype).max) if dtype.kind in "iu" else math.inf


def _extreme(values: list[Any], start: Any, better: Callable[[Any, Any], bool]) -> Any:
    best = start
    for v in values:
        if v != v:
            return v
        if better(v, best):
            best = v
    return best


sum_ = _reduced(lambda values, dtype: _total(values))
mean_ = _reduced(_mean)
prod_ = _reduced(lambda values, dtype: math.prod(values))
max_ = _reduced(lambda values, dtype: _extreme(values, _least(dtype), lambda a, b: a > b))
min_ = _reduced(lambda values, dtype: _extreme(values, _most(dtype), lambda a, b: a < b))
all_ = _reduced(lambda values, dtype: False not in values)
any_ = _reduced(lambda values, dtype: True in values)


def _index(x: Any, axis: Any, output_type: Any, better: Callable[[Any, Any], bool], worst: float) -> np.ndarray:
    """The first place of the best number; NaN is never better."""
    x = np.asarray(x)
    at = int(axis) % x.ndim
    moved = np.moveaxis(x, at, -1)
    out = np.empty(moved.shape[:-1], np.dtype(str(output_type)))
    for index in np.ndindex(out.shape):
        best, most = 0, worst
        for i, value in enumerate(map(float, moved[index])):
            if better(value, most):
                best, most = i, value
        out[index] = best
    return out


def arg_max(x: Any, axis: Any, output_type: Any = "int64") -> np.ndarray:
    return _index(x, axis, output_type, lambda a, b: a > b, -math.inf)


def arg_min(x: Any, axis: Any, output_type: Any = "int64") -> np.ndarray:
    return _index(x, axis, output_type, lambda a, b: a < b, math.inf)


def _running(combine: Callable[[list[Any]], Any]) -> Callable[..., np.ndarray]:
    """The oracle of a running reduction: ``combine`` of the elements up to each one, or from it on."""

    def oracle(x: Any, axis: Any, exclusive: bool = False, reverse: bool = False) -> np.ndarray:
        x = np.asarray(x)
        at = int(axis) % x.ndim
        out = np.empty(x.shape, x.dtype)
        for index in np.ndindex(x.shape):
            place, size = index[at], x.shape[at]
            first, last = (place + exclusive, size) if reverse else (0, place + 1 - exclusive)
            line = [x[(*index[:at], i, *index[at + 1 :])] for i in range(first, last)]
            out[index] = wrap(combine([number(v) for v in line]), x.dtype)
        return out

    return oracle


cumsum = _running(_total)
cumprod = _running(math.prod)


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
