"""Shape rules of reductions: what remains depends on the content of ``axis``."""

from __future__ import annotations

from typing import Any

from graphdock.ops import ShapeContext, symbolic

from graphdock_std.shape_support import Dims, known, scalar, show, unread


@symbolic
def reduction(ctx: ShapeContext) -> list[Dims]:
    """``(x, axis)`` with attribute ``keep_dims``.

    Raises:
      ShapeError: an axis out of range or given twice, or an axis tensor of rank 2 or more.
    """
    x, axis, keep = ctx.shape("x"), ctx.shape("axis"), bool(ctx.attrs["keep_dims"])
    if axis is not None and len(axis) > 1:
        raise ctx.fail(f"axis must be at most rank 1, a scalar or a vector, but it has rank {len(axis)}")
    if x is None:
        return [None]
    values = ctx.values("axis")
    axes = values if isinstance(values, tuple) else () if values is None else (values,)
    if values is None or not all(map(known, axes)):
        unread(ctx, axes)
        _axes(ctx, [v for v in axes if known(v)], len(x))
        count = 1 if axis == () else axis[0] if axis is not None and known(axis[0]) else None
        if keep:
            return [(None,) * len(x)]
        return [None if count is None else (None,) * (len(x) - count)]
    reduced = _axes(ctx, axes, len(x))
    if keep:
        return [tuple(1 if i in reduced else d for i, d in enumerate(x))]
    return [tuple(d for i, d in enumerate(x) if i not in reduced)]


@symbolic
def index_reduction(ctx: ShapeContext) -> list[Dims]:
    """``(x, axis)`` for ArgMax and ArgMin.

    Raises:
      ShapeError: a scalar x, an axis out of range, or nothing to choose from.
    """
    x, axis = ctx.shape("x"), scalar(ctx, "axis")
    if x is None:
        return [None]
    if not x:
        raise ctx.fail("x must have rank at least 1, but it is a scalar")
    if not known(axis):
        return [(None,) * (len(x) - 1)]
    (at,) = _axes(ctx, (axis,), len(x))
    ctx.at_least(x[at], 1, f"axis {axis} has size 0, so there is no element to choose")
    return [(*x[:at], *x[at + 1 :])]


@symbolic
def running(ctx: ShapeContext) -> list[Dims]:
    """``(x, axis)`` of a running sum: the shape of x.

    Raises:
      ShapeError: an axis out of range.
    """
    x, axis = ctx.shape("x"), scalar(ctx, "axis")
    if x is not None and axis is not None:
        _axes(ctx, (axis,), len(x))
    return [x]


@symbolic
def sum_to(ctx: ShapeContext) -> list[Dims]:
    """``(x, shape)``: the content of ``shape``, as far as it is known.

    Raises:
      ShapeError: ``shape`` does not broadcast to the shape of x.
    """
    x, length = ctx.shape("x"), ctx.shape("shape")
    target = ctx.values("shape")
    if not isinstance(target, tuple):
        target = (None,) * length[0] if length is not None and known(length[0]) else None
    if target is None:
        ctx.unproven()
        return [None]
    if x is not None:
        message = f"a tensor of shape {show(target)} does not broadcast to {show(x)}"
        lead = len(x) - len(target)
        if lead < 0:
            raise ctx.fail(message)
        for want, have in zip(target, x[lead:], strict=True):
            if want is None or have is None:
                continue
            if known(want) and want != 1:
                ctx.equal(have, want, message)
            elif known(want) or want.dim:
                ctx.one_or_equal(want, have, message)
            else:
                unread(ctx, [want])
    return [target]


def _axes(ctx: ShapeContext, axes: Any, rank: int) -> set[int]:
    """Axes counted from the front."""
    found: set[int] = set()
    for axis in axes:
        if not -rank <= axis < rank:
            raise ctx.fail(f"axis {axis} is out of range for a tensor of rank {rank}")
        at = axis % rank
        if at in found:
            raise ctx.fail(f"axis {at} is given twice")
        found.add(at)
    return found
