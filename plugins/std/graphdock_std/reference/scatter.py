"""Oracles of the updates of a variable's rows, one row at a time. Each returns the variable's new value."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from graphdock_std.reference.math import wrap


def _apply(var: np.ndarray, indices: np.ndarray, updates: np.ndarray, combine: Callable[[Any, Any], Any]) -> np.ndarray:
    """New value of ``var``: ``combine(old element, update)`` for each update in turn, rounded once at the end."""
    values: dict[tuple[int, ...], Any] = {}
    for position in itertools.product(*(range(n) for n in indices.shape)):
        for rest in itertools.product(*(range(n) for n in var.shape[1:])):
            key = (int(indices[position]), *rest)
            update = updates[(*position, *rest)] if updates.ndim else updates[()]
            values[key] = combine(values.get(key, var[key]), update)
    out = var.copy()
    for key, value in values.items():
        out[key] = value if var.dtype.kind not in "iu" else wrap(int(value), var.dtype)
    return out


def _number(value: Any) -> Any:
    kinds = ((int, (int, np.integer)), (complex, (complex, np.complexfloating)))
    return next((kind for kind, found in kinds if isinstance(value, found)), float)(value)


def scatter_update(var: np.ndarray, indices: np.ndarray, updates: np.ndarray, **_: Any) -> np.ndarray:
    return _apply(var, indices, updates, lambda _old, new: new)


def scatter_add(var: np.ndarray, indices: np.ndarray, updates: np.ndarray, **_: Any) -> np.ndarray:
    return _apply(var, indices, updates, lambda old, new: _number(old) + _number(new))


def scatter_sub(var: np.ndarray, indices: np.ndarray, updates: np.ndarray, **_: Any) -> np.ndarray:
    return _apply(var, indices, updates, lambda old, new: _number(old) - _number(new))


def _quotient(old: Any, new: Any) -> Any:
    return _number(old) / _number(new)


def scatter_mul(var: np.ndarray, indices: np.ndarray, updates: np.ndarray, **_: Any) -> np.ndarray:
    return _apply(var, indices, updates, lambda old, new: _number(old) * _number(new))


def scatter_div(var: np.ndarray, indices: np.ndarray, updates: np.ndarray, **_: Any) -> np.ndarray:
    return _apply(var, indices, updates, _quotient)


def scatter_min(var: np.ndarray, indices: np.ndarray, updates: np.ndarray, **_: Any) -> np.ndarray:
    return _apply(var, indices, updates, lambda old, new: new if new < old else old)


def scatter_max(var: np.ndarray, indices: np.ndarray, updates: np.ndarray, **_: Any) -> np.ndarray:
    return _apply(var, indices, updates, lambda old, new: new if new > old else old)


def _apply_nd(var: np.ndarray, indices: np.ndarray, updates: np.ndarray, combine: Any) -> np.ndarray:
    """As ``_apply``, by index tuples."""
    depth = indices.shape[-1]
    values: dict[tuple[int, ...], Any] = {}
    for position in itertools.product(*(range(n) for n in indices.shape[:-1])):
        lead = tuple(int(indices[(*position, k)]) for k in range(depth))
        for rest in itertools.product(*(range(n) for n in var.shape[depth:])):
            key = (*lead, *rest)
            values[key] = combine(values.get(key, var[key]), updates[(*position, *rest)])
    out = var.copy()
    for key, value in values.items():
        out[key] = value if var.dtype.kind not in "iu" else wrap(int(value), var.dtype)
    return out


def scatter_nd_update(var: np.ndarray, indices: np.ndarray, updates: np.ndarray, **_: Any) -> np.ndarray:
    return _apply_nd(var, indices, updates, lambda _old, new: new)


def scatter_nd_add(var: np.ndarray, indices: np.ndarray, updates: np.ndarray, **_: Any) -> np.ndarray:
    return _apply_nd(var, indices, updates, lambda old, new: _number(old) + _number(new))


def scatter_nd_sub(var: np.ndarray, indices: np.ndarray, updates: np.ndarray, **_: Any) -> np.ndarray:
    return _apply_nd(var, indices, updates, lambda old, new: _number(old) - _number(new))


def tensor_scatter_update(tensor: np.ndarray, indices: np.ndarray, updates: np.ndarray, **_: Any) -> np.ndarray:
    return scatter_nd_update(tensor, indices, updates)


def tensor_scatter_add(tensor: np.ndarray, indices: np.ndarray, updates: np.ndarray, **_: Any) -> np.ndarray:
    return scatter_nd_add(tensor, indices, updates)


def tensor_scatter_sub(tensor: np.ndarray, indices: np.ndarray, updates: np.ndarray, **_: Any) -> np.ndarray:
    return scatter_nd_sub(tensor, indices, updates)


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
