"""Shape functions of the host's structural ops."""

from __future__ import annotations

from graphdock.opdef.shape_context import ShapeContext, symbolic
from graphdock.shape import Dims, common, show

__all__ = [
    "assign_variable",
    "cond",
    "const",
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


@symbolic
def optional_get_value(ctx: ShapeContext) -> list[Dims]:
    return [ctx.attrs["shape"]]


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
