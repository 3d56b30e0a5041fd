"""Kernels that change rows of a variable in place. Every index is checked before anything is written.

A sum over repeated rows runs in the order of the indices; float16 and bfloat16 rows are summed in float32 and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from graphdock.contracts import Bound, BuildContext, In, KernelDef, Out, Scratch, dtypes, errors

from graphdock_cpu.kernels.common import is_half, known
from graphdock_cpu.kernels.indexing import LONG_ROW, check_indices, flat_places

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


def _accumulate(ufunc: np.ufunc) -> Callable[[BuildContext], Bound]:
    def build(ctx: BuildContext) -> Bound:
        _, indices, updates = ctx.inputs
        half = is_half(updates.dtype)

        def compute(var: Any, indices: Any, updates: Any, places: Any = None) -> None:
            rows = _rows(var, indices, updates)
            width = math.prod(var.shape[1:])
            rows = rows.reshape(indices.size, width)
            ids, target = indices.reshape(-1), var.reshape(var.shape[0], width)
            if half:
                touched, ids = np.unique(ids, return_inverse=True)
                narrow, target = target, target[touched].astype(np.float32)
                rows = rows.astype(np.float32)
            if width >= LONG_ROW:
                for i, row in zip(ids.tolist(), rows, strict=True):
                    into = target[i]
                    ufunc(into, row, into)
            elif ids.size:
                ufunc.at(target.reshape(-1), flat_places(ids, width, places), rows.reshape(-1))
            if half:
                narrow[touched] = target.astype(var.dtype)

        if not known(indices.shape) or not known(updates.shape) or not updates.shape:
            return Bound(compute)
        count = math.prod(indices.shape)
        width = math.prod(updates.shape) // count if count else 0
        scratch = (Scratch(dtypes.int64, (count, width)),) if 0 < width < LONG_ROW else ()
        slots = tuple(Out(i) for i in range(len(scratch)))
        return Bound(compute, args=(In(0), In(1), In(2), *slots), scratch=scratch)

    return build


KERNELS = [
    KernelDef("ResourceScatterUpdate", "cpu", _update),
    KernelDef("ResourceScatterAdd", "cpu", _accumulate(np.add)),
    KernelDef("ResourceScatterSub", "cpu", _accumulate(np.subtract)),
]
