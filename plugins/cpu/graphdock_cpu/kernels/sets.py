"""Kernels of sets: those that lie along the last dim of sparse tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from graphdock.contracts import Bound, BuildContext, KernelDef, errors

__all__ = ["KERNELS"]

Sets = dict[tuple[int, ...], set[Any]]


def _grouped(indices: np.ndarray, values: np.ndarray, shape: np.ndarray) -> Sets:
    """The set at each place of the dims but the last; none where nothing stands."""
    outside = ((indices < 0) | (indices >= shape)).any(1)
    if outside.any():
        raise errors.InvalidArgumentError(
            "an index lies outside of its shape", expected=str(shape.tolist()), got=str(indices[outside][0].tolist())
        )
    sets: Sets = {}
    for place, value in zip(indices[:, :-1].tolist(), values.tolist(), strict=True):
        sets.setdefault(tuple(place), set()).add(value)
    return sets


_OPERATIONS: dict[str, Callable[[set[Any], set[Any]], set[Any]]] = {
    "a-b": set.difference,
    "b-a": lambda a, b: b - a,
    "intersection": set.intersection,
    "union": set.union,
}


def _operation(ctx: BuildContext) -> Bound:
    combine = _OPERATIONS[ctx.attr("set_operation")]
    dtype = ctx.outputs[1].dtype.np

    def compute(at1: Any, of1: Any, shape1: Any, at2: Any, of2: Any, shape2: Any) -> tuple[np.ndarray, ...]:
        if shape1[:-1].tolist() != shape2[:-1].tolist():
            raise errors.InvalidArgumentError(
                "sets of other groups", expected=str(shape1[:-1].tolist()), got=str(shape2[:-1].tolist())
            )
        first, second = _grouped(at1, of1, shape1), _grouped(at2, of2, shape2)
        places, values, widest = [], [], 0
        for group in sorted(first.keys() | second.keys()):
            made = sorted(combine(first.get(group, set()), second.get(group, set())))
            places += [(*group, i) for i in range(len(made))]
            values += made
            widest = max(widest, len(made))
        found = np.empty(len(values), dtype)
        found[:] = values
        indices = np.array(places, np.int64).reshape(len(places), len(shape1))
        return indices, found, np.array([*shape1[:-1], widest], np.int64)

    return Bound(compute)


def _size(ctx: BuildContext) -> Bound:

    def compute(indices: Any, values: Any, shape: Any, out: Any = None) -> np.ndarray:
        sizes = np.zeros(shape[:-1], np.int32) if out is None else out
        sizes[...] = 0
        for place, found in _grouped(indices, values, shape).items():
            sizes[place] = len(found)
        return sizes

    return Bound(compute)


KERNELS = [
    KernelDef("SparseToSparseSetOperation", "cpu", _operation, modes=("fresh",)),
    KernelDef("SetSize", "cpu", _size, host=("set_shape",)),
]
