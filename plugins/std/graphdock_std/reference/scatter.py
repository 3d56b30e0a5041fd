"""Oracles of the updates of a variable's rows, one row at a time. Each returns the variable's new value."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from graphdock_std.reference.math import wrap


def _by_tuples(combine: Callable[[Any, Any], Any]) -> Callable[..., np.ndarray]:
    """The oracle of an update by index tuples: ``combine(old element, update)`` of each in turn, rounded once at the end."""

    def oracle(var: np.ndarray, indices: np.ndarray, updates: np.ndarray, **_: Any) -> np.ndarray:
        depth = indices.shape[-1]
        values: dict[tuple[int, ...], Any] = {}
        for position in np.ndindex(indices.shape[:-1]):
            lead = tuple(int(indices[(*position, k)]) for k in range(depth))
            for rest in np.ndindex(var.shape[depth:]):
                key = (*lead, *rest)
                values[key] = combine(values.get(key, var[key]), updates[(*position, *rest)])
        out = var.copy()
        for key, value in values.items():
            out[key] = value if var.dtype.kind not in "iu" else wrap(int(value), var.dtype)
        return out

    return oracle


def _by_rows(combine: Callable[[Any, Any], Any]) -> Callable[..., np.ndarray]:
    """The oracle of an update of rows; one update may be for all."""

    def oracle(var: np.ndarray, indices: np.ndarray, updates: np.ndarray, **_: Any) -> np.ndarray:
        whole = updates if updates.ndim else np.broadcast_to(updates, (*indices.shape, *var.shape[1:]))
        return _by_tuples(combine)(var, indices[..., None], whole)

    return oracle


def _of_tensor(oracle: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    return lambda tensor, indices, updates, **_: oracle(tensor, indices, updates)


def _number(value: Any) -> Any:
    kinds = ((int, (int, np.integer)), (complex, (complex, np.complexfloating)))
    return next((kind for kind, found in kinds if isinstance(value, found)), float)(value)


def _newer(_old: Any, new: Any) -> Any:
    return new


def _sum(old: Any, new: Any) -> Any:
    return _number(old) + _number(new)


def _difference(old: Any, new: Any) -> Any:
    return _number(old) - _number(new)


scatter_update = _by_rows(_newer)
scatter_add = _by_rows(_sum)
scatter_sub = _by_rows(_difference)
scatter_mul = _by_rows(lambda old, new: _number(old) * _number(new))
scatter_div = _by_rows(lambda old, new: _number(old) / _number(new))
scatter_min = _by_rows(lambda old, new: new if new < old else old)
scatter_max = _by_rows(lambda old, new: new if new > old else old)
scatter_nd_update = _by_tuples(_newer)
scatter_nd_add = _by_tuples(_sum)
scatter_nd_sub = _by_tuples(_difference)
tensor_scatter_update = _of_tensor(scatter_nd_update)
tensor_scatter_add = _of_tensor(scatter_nd_add)
tensor_scatter_sub = _of_tensor(scatter_nd_sub)


def sparse_to_dense(
    sparse_indices: np.ndarray, output_shape: np.ndarray, sparse_values: np.ndarray, default_value: Any, **_: Any
) -> np.ndarray:
    shape = tuple(int(d) for d in output_shape)
    places = [[v] for v in sparse_indices.reshape(-1).tolist()] if sparse_indices.ndim < 2 else sparse_indices.tolist()
    held = {tuple(p): sparse_values[i] if sparse_values.ndim else sparse_values[()] for i, p in enumerate(places)}
    out = np.empty(shape, sparse_values.dtype)
    for index in itertools.product(*(range(n) for n in shape)):
        out[index] = held.get(index, default_value[()])
    return out
