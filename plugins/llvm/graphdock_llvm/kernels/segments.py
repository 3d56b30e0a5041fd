"""Sums of rows by their numbers, in the order of the rows, by one native function."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from graphdock.contracts import (
    KernelDef,
    KernelRefused,
    PlanNode,
    PrepareContext,
    Prepared,
    errors,
)

from graphdock_llvm.emitter import SCALARS
from graphdock_llvm.launch import called
from graphdock_llvm.segments_text import text
from graphdock_llvm.target import width

__all__ = ["KERNELS"]


def _check(node: PlanNode) -> str | None:
    data, numbers, made = node.inputs[0].shape, node.inputs[1].shape, node.outputs[0].shape
    if any(shape is None or None in shape for shape in (data, numbers, made)):
        return "its shapes are not known"
    if 0 in (*(data or ()), *(made or ())):
        return "it has no elements"
    if tuple((data or ())[: len(numbers or ())]) != tuple(numbers or ()):
        return "the shape of its data does not begin with that of the ids"
    return None


def _prepare(ctx: PrepareContext) -> Prepared:
    if why := _check(ctx.node):
        raise KernelRefused(why)
    (data, numbers, _), made = ctx.inputs, ctx.outputs[0]
    rows = math.prod(d or 0 for d in numbers.shape or ())
    wide = math.prod(d or 0 for d in data.shape or ()) // rows
    size = math.prod(d or 0 for d in made.shape or ()) * made.dtype.size
    printed = text(SCALARS[data.dtype.name], SCALARS[numbers.dtype.name], width())
    segments = (made.shape or (0,))[0] or 0
    return called(ctx, printed, (rows, wide, size, segments), refuse=partial(_refuse, segments))


def _refuse(segments: int, data: Any, ids: Any, *_: Any) -> None:
    bad = next(iter(np.argwhere(ids >= segments)), None)
    if bad is None:
        raise errors.InvalidArgumentError("segment_ids were written meanwhile", expected=f"below {segments}")
    at = "".join(f"[{i}]" for i in bad)
    raise errors.InvalidArgumentError(
        f"segment_ids{at} is {int(ids[tuple(bad)])}, which is out of bounds for num_segments {segments}",
        expected=f"below {segments}",
    )


KERNELS = [
    KernelDef("UnsortedSegmentSum", "cpu", prepare=_prepare, types={"T": ("float32", "float64")}, check=_check),
]
