"""Shape functions of the ops that draw as many numbers as an input says, per row or per distribution."""

from __future__ import annotations

from typing import Any

from graphdock.ops import symbolic

from graphdock_std.shape_support import known, number, shape_from, unread


@symbolic
def multinomial(ctx: Any) -> list[Any]:
    """``[B, num_samples]``; ``ctx`` is a ShapeContext."""
    logits, count = ctx.shape("logits"), number(ctx, "num_samples")
    if known(count) and count < 0:
        raise ctx.fail(f"num_samples is {count}, a negative number")
    unread(ctx, [count])
    if logits is not None:
        ctx.at_least(logits[1], 1, "logits have no class to draw")
    return [(None if logits is None else logits[0], count)]


@symbolic
def of_each(ctx: Any) -> list[Any]:
    """``shape`` and the shape of the parameters behind it."""
    dims = shape_from(ctx, "shape")
    parameters = ctx.shape(ctx.opdef.inputs[1].name)
    return [None if dims is None or parameters is None else (*dims, *parameters)]
