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
    return int(value) if isinstance(value, (int, np.integer)) else float(value)


def scatter_update(var: np.ndarray, indices: np.ndarray, updates: np.ndarray, **_: Any) -> np.ndarray:
    return _apply(var, indices, updates, lambda _old, new: new)


def scatter_add(var: np.ndarray, indices: np.ndarray, updates: np.ndarray, **_: Any) -> np.ndarray:
    return _apply(var, indices, updates, lambda old, new: _number(old) + _number(new))


def scatter_sub(var: np.ndarray, indices: np.ndarray, updates: np.ndarray, **_: Any) -> np.ndarray:
    return _apply(var, indices, updates, lambda old, new: _number(old) - _number(new))
