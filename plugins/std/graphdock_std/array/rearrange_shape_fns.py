"""Shape functions of the ops that move elements, and of those that check shapes."""

from __future__ import annotations

from typing import Any

from graphdock.ops import symbolic

from graphdock_std.shape_support import Dims, axis_of, known, show, unread


@symbolic
def reverse_sequence(ctx: Any) -> list[Dims]:
    x, lengths = ctx.shape("input"), ctx.shape("seq_lengths")
    if x is None:
        return [None]
    along, batch = (axis_of(ctx, ctx.attrs[n], len(x), "input") for n in ("seq_dim", "batch_dim"))
    if along == batch:
        raise ctx.fail(f"seq_dim and batch_dim are the same axis, {along}")
    if lengths is not None:
        ctx.equal(lengths[0], x[batch], f"{lengths[0]} seq_lengths for axis {batch} of input {show(x)}")
    return [x]


def _listed(ctx: Any, name: str) -> tuple[Any, ...] | None:
    """The elements of a scalar or vector input, as far as they are known."""
    dims, value = ctx.shape(name), ctx.values(name)
    if dims is not None and len(dims) > 1:
        raise ctx.fail(f"{name} must be a scalar or a vector, but its shape is {show(dims)}")
    if isinstance(value, tuple):
        return value
    if dims is None:
        ctx.unproven()
        return None
    if not dims:
        return (value,)
    return (None,) * dims[0] if known(dims[0]) else None


@symbolic
def roll(ctx: Any) -> list[Dims]:
    x, shift, axes = ctx.shape("input"), _listed(ctx, "shift"), _listed(ctx, "axis")
    if x == ():
        raise ctx.fail("input is a scalar and has no axis")
    if shift is not None and axes is not None and len(shift) != len(axes):
        raise ctx.fail(f"shift has {len(shift)} elements for {len(axes)} of axis")
    for axis in axes or ():
        if x is not None and known(axis):
            axis_of(ctx, axis, len(x), "input")
    unread(ctx, axes or ())
    return [x]


@symbolic
def ensure_shape(ctx: Any) -> list[Dims]:
    x, wanted = ctx.shape("input"), ctx.attrs["shape"]
    wanted = getattr(wanted, "dims", wanted)
    if wanted is None:
        return [x]
    if x is None:
        ctx.unproven()
        return [tuple(wanted)]
    message = f"input {show(x)} does not have the shape {show(tuple(wanted))}"
    if len(x) != len(wanted):
        raise ctx.fail(message)
    return [
        tuple([have if want is None else ctx.equal(have, want, message) for have, want in zip(x, wanted, strict=True)])
    ]
