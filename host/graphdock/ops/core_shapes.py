"""Shape functions of the host's structural ops."""

from __future__ import annotations

from graphdock.opdef.shape_rule import ShapeContext
from graphdock.shape import Dims, common, compatible, show

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


def const(ctx: ShapeContext) -> list[Dims]:
    return [ctx.attrs["value"].shape]


def placeholder(ctx: ShapeContext) -> list[Dims]:
    dims = ctx.attrs["shape"]
    if ctx.opdef.inputs and not compatible(dims, ctx.shape("input")):
        raise ctx.fail(f"the default does not have the shape {show(dims)} that may be fed")
    return [dims]


def optional_get_value(ctx: ShapeContext) -> list[Dims]:
    return [ctx.attrs["shape"]]


def read_variable(ctx: ShapeContext) -> list[Dims]:
    return [None]  # the handle's Variable knows; Graph and planner set it


def assign_variable(ctx: ShapeContext) -> list[Dims]:
    return []


def py_func(ctx: ShapeContext) -> list[Dims]:
    return [None] * len(ctx.attrs["Tout"])


def cond(ctx: ShapeContext) -> list[Dims]:
    then, other = ctx.attrs["then_branch"].outputs, ctx.attrs["else_branch"].outputs
    return [common(x._dims, y._dims) for x, y in zip(then, other, strict=True)]


def while_loop(ctx: ShapeContext) -> list[Dims]:
    variables = list(ctx.attrs["output_shapes"])
    histories = len(ctx.attrs["Tout"]) - len(variables)
    return variables + [()] * histories
