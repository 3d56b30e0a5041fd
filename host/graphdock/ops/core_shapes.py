"""Shape functions of the host's structural ops."""

from __future__ import annotations

import functools

from graphdock.opdef.shape_context import ShapeContext, symbolic
from graphdock.shape import Dims, common, show

__all__ = [
    "assign_variable",
    "cond",
    "const",
    "history_stack",
    "history_unstack",
    "merge",
    "optional_get_value",
    "placeholder",
    "py_func",
    "read_variable",
    "while_loop",
]


@symbolic
def const(ctx: ShapeContext) -> list[Dims]:
    return [ctx.attrs["value"].shape]


@symbolic
def placeholder(ctx: ShapeContext) -> list[Dims]:
    dims = ctx.attrs["shape"]
    if not ctx.opdef.inputs:
        return [dims]
    default, message = ctx.shape("input"), f"the default does not have the shape {show(dims)} that may be fed"
    if dims is not None and default is not None:
        if len(dims) != len(default):
            raise ctx.fail(message)
        for d, size in zip(dims, default, strict=True):
            if d is not None:
                ctx.equal(d, size, message)
    return [dims]


def merge(ctx: ShapeContext) -> list[Dims]:
    shapes = ctx.shapes("inputs")
    if ctx.attrs["later"]:  # what comes may have another shape
        return [None, ()]
    return [functools.reduce(common, shapes), ()]


@symbolic
def optional_get_value(ctx: ShapeContext) -> list[Dims]:
    return [ctx.attrs["shape"]]


@symbolic
def history_unstack(ctx: ShapeContext) -> list[Dims]:
    dims, count = ctx.shape("value"), ctx.values("count")
    if dims == ():
        raise ctx.fail("value is a scalar, which has no rows")
    if dims is not None and count is not None and not isinstance(count, tuple) and not ctx.attrs["partial"]:
        ctx.equal(dims[0], count, f"there are {dims[0]} rows; expected {count}")
    return [()]


@symbolic
def history_stack(ctx: ShapeContext) -> list[Dims]:
    dims = ctx.values("dims")
    if dims is None:
        known = ctx.shape("dims")
        rank = known[0] if known is not None and len(known) == 1 else None
        return [(None,) * rank if isinstance(rank, int) else None]
    if not isinstance(dims, tuple) or not dims:
        raise ctx.fail("dims must be a vector of one element or more")
    late = [d for d in dims if d is not None and not isinstance(d, int) and d.fed and not d.dim]
    if late:
        ctx.unproven(*late)
    return [tuple([None if isinstance(d, int) and d < 0 else d for d in dims])]


@symbolic
def read_variable(ctx: ShapeContext) -> list[Dims]:
    return [None]  # the handle's Variable knows; Graph and planner set it


@symbolic
def assign_variable(ctx: ShapeContext) -> list[Dims]:
    return []


@symbolic
def py_func(ctx: ShapeContext) -> list[Dims]:
    return [None] * len(ctx.attrs["Tout"])


def cond(ctx: ShapeContext) -> list[Dims]:
    then, other = ctx.attrs["then_branch"].outputs, ctx.attrs["else_branch"].outputs
    return [common(x._dims, y._dims) for x, y in zip(then, other, strict=True)]


def while_loop(ctx: ShapeContext) -> list[Dims]:
    variables = list(ctx.attrs["output_shapes"])
    histories = len(ctx.attrs["Tout"]) - len(variables)
    return variables + [()] * histories
