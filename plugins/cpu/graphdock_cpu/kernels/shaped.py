"""Kernels that are made for the shapes of their inputs, and that compute narrow floats in float32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from graphdock.contracts import Bound, BuildContext, Scratch
from numpy import copyto

from graphdock_cpu.kernels.sharing import Made, Rows, Shape, share_rows

__all__ = ["Made", "Make", "Shape", "Shapes", "bind", "like_first", "widened"]

# Made: ``compute(*inputs, *outputs, *scratch)`` for known input shapes, and the scratch buffers it wants.
Make = Callable[[BuildContext, Sequence[Shape]], Made]
#: Shapes of the outputs for those of the inputs.
Shapes = Callable[[BuildContext, Sequence[Shape]], Sequence[Shape]]

#: Shapes that a kernel of unknown shape keeps ready.
KEPT = 8


def _known(shape: Any) -> bool:
    return shape is not None and None not in shape


def bind(make: Make, outputs: Shapes, rows: Rows | None = None) -> Callable[[BuildContext], Bound]:
    """The ``build`` of a kernel that is made for the shapes of its inputs.

    Args:
      outputs: the shapes of the outputs for those of the inputs; asked only where they are not planned.
      rows: how threads share it; None where they don't.
    """

    def build(ctx: BuildContext) -> Bound:
        if not ctx.fresh and all(_known(i.shape) for i in ctx.inputs):
            count = len(ctx.inputs)
            shapes = [tuple(i.shape or ()) for i in (*ctx.inputs, *ctx.outputs)]
            if rows is None:
                compute, scratch = make(ctx, shapes[:count])
            else:
                compute, scratch = share_rows(ctx, rows, shapes, lambda some: make(ctx, some[:count]))
            return Bound(compute, scratch=scratch)
        count = len(ctx.inputs)
        makes: dict[tuple[Shape, ...], Made] = {}

        def run(*args: Any) -> Any:
            inputs, planned = args[:count], args[count:]
            key = tuple(a.shape for a in inputs)
            if key not in makes:
                if len(makes) >= KEPT:
                    makes.clear()
                makes[key] = make(ctx, key)
            compute, scratch = makes[key]
            outs = planned or tuple(
                np.empty(s, o.dtype.np) for s, o in zip(outputs(ctx, key), ctx.outputs, strict=True)
            )
            compute(*inputs, *outs, *(np.empty(s.shape, s.dtype.np) for s in scratch))
            return outs[0] if len(outs) == 1 else outs

        return Bound(run)

    return build


def like_first(ctx: BuildContext, shapes: Sequence[Shape]) -> Sequence[Shape]:
    return [shapes[0]]


def widened(
    ctx: BuildContext, make: Callable[[np.dtype[Any]], Callable[..., Any]], inputs: int, shape: Shape, scratch: int
) -> Made:
    """A kernel with one output and ``scratch`` buffers of its shape; ``make`` makes it for a dtype.

    Where the output is float16 or bfloat16, inputs are copied to float32, and the result is rounded once.
    """
    dtype = ctx.outputs[0].dtype
    wide = dtype.accumulator
    compute = make(wide.np)
    if wide is dtype:
        return compute, (Scratch(dtype, shape),) * scratch

    def narrow(*args: Any) -> None:
        ins, out, wides = args[:inputs], args[inputs], args[inputs + 1 : 2 * inputs + 1]
        result, rest = args[2 * inputs + 1], args[2 * inputs + 2 :]
        for a, w in zip(ins, wides, strict=True):
            copyto(w, a)
        compute(*wides, result, *rest)
        copyto(out, result, "same_kind")

    return narrow, (Scratch(wide, shape),) * (inputs + 1 + scratch)
