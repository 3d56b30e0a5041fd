"""Kernels that change rows or slices of a variable in place, and that write at index tuples of a tensor. Every index is checked
before anything is written.

What falls on one place is combined in the order of the indices; float16 and bfloat16 are combined in float32 and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from graphdock.contracts import Bound, BuildContext, In, KernelDef, Out, Scratch, dtypes, errors

from graphdock_cpu.kernels.array import bind_writer
from graphdock_cpu.kernels.common import is_half, known
from graphdock_cpu.kernels.indexing import LONG_ROW, check_indices, flat_places, flat_rows

__all__ = ["KERNELS"]


def _rows(var: Any, indices: Any, updates: Any) -> Any:
    """The updates as one row per index. Raises InvalidArgumentError where anything does not fit."""
    if not var.ndim:
        raise errors.InvalidArgumentError("the variable is a scalar and has no rows")
    check_indices(indices, var.shape[0], "axis 0")
    shape = (*indices.shape, *var.shape[1:])
    if updates.shape != shape:
        if updates.ndim:
            raise errors.InvalidArgumentError(
                f"updates have shape {list(updates.shape)}", expected=f"{list(shape)}, or a scalar"
            )
        updates = np.broadcast_to(updates, shape)
    return updates


def _update(ctx: BuildContext) -> Bound:
    def compute(var: Any, indices: Any, updates: Any) -> None:
        var[indices] = _rows(var, indices, updates)

    return Bound(compute)


def _combine(ufunc: np.ufunc, target: Any, ids: Any, rows: Any, places: Any = None) -> None:
    """``target[ids[i]] = ufunc(target[ids[i]], rows[i])`` for each row in turn, over matrices."""
    width = target.shape[1]
    half = is_half(dtypes.as_dtype(target.dtype))
    if half:
        touched, ids = np.unique(ids, return_inverse=True)
        narrow, target = target, target[touched].astype(np.float32)
        rows = rows.astype(np.float32)
    if width >= LONG_ROW:
        for i, row in zip(ids.tolist(), rows, strict=True):
            into = target[i]
            ufunc(into, row, out=into)
    elif ids.size:
        ufunc.at(target.reshape(-1), flat_places(ids, width, places), rows.reshape(-1))
    if half:
        narrow[touched] = target.astype(narrow.dtype)


def _accumulate(ufunc: np.ufunc) -> Callable[[BuildContext], Bound]:
    def build(ctx: BuildContext) -> Bound:
        _, indices, updates = ctx.inputs

        def compute(var: Any, indices: Any, updates: Any, places: Any = None) -> None:
            rows = _rows(var, indices, updates)
            width = math.prod(var.shape[1:])
            ids, target = indices.reshape(-1), var.reshape(var.shape[0], width)
            _combine(ufunc, target, ids, rows.reshape(indices.size, width), places)

        if not known(indices.shape) or not known(updates.shape) or not updates.shape:
            return Bound(compute)
        count = math.prod(indices.shape)
        width = math.prod(updates.shape) // count if count else 0
        scratch = (Scratch(dtypes.int64, (count, width)),) if 0 < width < LONG_ROW else ()
        slots = tuple(Out(i) for i in range(len(scratch)))
        return Bound(compute, args=(In(0), In(1), In(2), *slots), scratch=scratch)

    return build


def _slices(into: Any, indices: Any, updates: Any) -> tuple[Any, Any, Any]:
    """``into`` as a matrix of slices, the row that each index tuple names, the updates as a row for each."""
    if not indices.ndim:
        raise errors.InvalidArgumentError("indices is a scalar; its last axis must hold index tuples")
    depth = indices.shape[-1]
    rows = flat_rows(indices, into.shape)
    shape = (*rows.shape, *into.shape[depth:])
    if updates.shape != shape:
        raise errors.InvalidArgumentError(f"updates have shape {list(updates.shape)}", expected=str(list(shape)))
    count, width = math.prod(into.shape[:depth]), math.prod(into.shape[depth:])
    return into.reshape(count, width), rows.reshape(-1), updates.reshape(rows.size, width)


def _write_slices(ufunc: np.ufunc | None, into: Any, indices: Any, updates: Any) -> None:
    target, ids, rows = _slices(into, indices, updates)
    if ufunc is None:
        target[ids] = rows
    else:
        _combine(ufunc, target, ids, rows)


def _nd(ufunc: np.ufunc | None) -> Callable[[BuildContext], Bound]:
    def build(ctx: BuildContext) -> Bound:
        return Bound(lambda var, indices, updates: _write_slices(ufunc, var, indices, updates))

    return build


def _tensor(ufunc: np.ufunc | None) -> Callable[[BuildContext], Bound]:
    def build(ctx: BuildContext) -> Bound:
        def write(tensor: Any, indices: Any, updates: Any, out: Any) -> None:
            np.copyto(out, tensor)
            _write_slices(ufunc, out, indices, updates)

        return bind_writer(ctx, write, (0, 1, 2), lambda t, i, u: t.shape)

    return build


def _sparse_to_dense(ctx: BuildContext) -> Bound:
    strict = ctx.attr("validate_indices")

    def write(places: Any, _shape: Any, values: Any, default: Any, out: Any) -> None:
        tuples = places if places.ndim == 2 else places.reshape(-1, 1)
        if tuples.shape[1] != out.ndim:
            raise errors.InvalidArgumentError(
                f"sparse_indices have shape {list(places.shape)}", expected=f"index tuples of {out.ndim} numbers"
            )
        if values.ndim and values.shape != (len(tuples),):
            raise errors.InvalidArgumentError(
                f"sparse_values have shape {list(values.shape)}", expected=f"a scalar or [{len(tuples)}]"
            )
        rows = flat_rows(tuples, out.shape, "sparse_indices")
        if strict and len(rows) > 1:
            falls = np.flatnonzero(rows[1:] <= rows[:-1])
            if falls.size:
                at = int(falls[0]) + 1
                what = "repeat" if rows[at] == rows[at - 1] else "are out of order"
                raise errors.InvalidArgumentError(
                    f"sparse_indices {what}: sparse_indices[{at}] is {tuples[at].tolist()} after {tuples[at - 1].tolist()}",
                    hint="pass validate_indices=False",
                )
        np.copyto(out, default)
        out.reshape(-1)[rows] = values

    return bind_writer(ctx, write, (0, 1, 2, 3), lambda p, s, v, d: s.tolist())


KERNELS = [
    KernelDef("ResourceScatterUpdate", "cpu", _update),
    KernelDef("ResourceScatterAdd", "cpu", _accumulate(np.add)),
    KernelDef("ResourceScatterSub", "cpu", _accumulate(np.subtract)),
    KernelDef("ResourceScatterMul", "cpu", _accumulate(np.multiply)),
    KernelDef("ResourceScatterDiv", "cpu", _accumulate(np.divide)),
    KernelDef("ResourceScatterMin", "cpu", _accumulate(np.minimum)),
    KernelDef("ResourceScatterMax", "cpu", _accumulate(np.maximum)),
    KernelDef("ResourceScatterNdUpdate", "cpu", _nd(None)),
    KernelDef("ResourceScatterNdAdd", "cpu", _nd(np.add)),
    KernelDef("ResourceScatterNdSub", "cpu", _nd(np.subtract)),
    KernelDef("TensorScatterUpdate", "cpu", _tensor(None)),
    KernelDef("TensorScatterAdd", "cpu", _tensor(np.add)),
    KernelDef("TensorScatterSub", "cpu", _tensor(np.subtract)),
    KernelDef("SparseToDense", "cpu", _sparse_to_dense),
]
