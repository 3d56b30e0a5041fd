"""Shape rules of reductions: what remains depends on the content of ``axis``."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from graphdock.ops import ShapeContext

__all__ = ["index_reduction", "reduction", "sum_to"]

Dims: TypeAlias = "tuple[int | None, ...] | None"


def reduction(ctx: ShapeContext) -> list[Dims]:
    """``(x, axis)`` with attribute ``keep_dims``.

    Raises:
      ShapeError: an axis out of range or given twice, or an axis tensor of rank 2 or more.
    """
    x, axis, keep = ctx.shape("x"), ctx.shape("axis"), bool(ctx.attrs["keep_dims"])
    if axis is not None and len(axis) > 1:
        raise ctx.fail(f"axis must be a scalar or a vector, but it has rank {len(axis)}")
    if x is None:
        return [None]
    values = ctx.values("axis")
    if isinstance(values, int):
        values = (values,)
    if values is None or None in values:
        known = () if values is None else tuple(v for v in values if v is not None)
        _axes(ctx, known, len(x))
        count = 1 if axis == () else None if axis is None else axis[0]
        if keep:
            return [(None,) * len(x)]
        return [None if count is None else (None,) * (len(x) - count)]
    reduced = _axes(ctx, values, len(x))  # type: ignore[arg-type]
    if keep:
        return [tuple(1 if i in reduced else d for i, d in enumerate(x))]
    return [tuple(d for i, d in enumerate(x) if i not in reduced)]


def index_reduction(ctx: ShapeContext) -> list[Dims]:
    """``(x, axis)`` for ArgMax and ArgMin.

    Raises:
      ShapeError: a scalar x, an axis out of range, or nothing to choose from.
    """
    x, axis = ctx.shape("x"), ctx.values("axis")
    if x is None:
        return [None]
    if not x:
        raise ctx.fail("x must have rank at least 1, but it is a scalar")
    if not isinstance(axis, int):
        return [(None,) * (len(x) - 1)]
    (at,) = _axes(ctx, (axis,), len(x))
    if x[at] == 0:
        raise ctx.fail(f"axis {axis} has size 0, so there is no element to choose")
    return [(*x[:at], *x[at + 1 :])]


def sum_to(ctx: ShapeContext) -> list[Dims]:
    """``(x, shape)``: the content of ``shape``, as far as it is known.

    Raises:
      ShapeError: ``shape`` does not broadcast to the shape of x.
    """
    x, length = ctx.shape("x"), ctx.shape("shape")
    target = ctx.values("shape")
    if isinstance(target, int) or target is None:
        target = None if length is None or length[0] is None else (None,) * length[0]
    if target is None:
        return [None]
    if x is not None:
        lead = len(x) - len(target)
        if lead < 0 or any(
            want not in (None, 1) and have is not None and want != have
            for want, have in zip(target, x[lead:], strict=True)
        ):
            raise ctx.fail(f"a tensor of shape {_show(target)} does not broadcast to {_show(x)}")
    return [target]


def _axes(ctx: ShapeContext, axes: tuple[int, ...], rank: int) -> set[int]:
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


def _show(dims: tuple[int | None, ...]) -> str:
    return "[" + ",".join("?" if d is None else str(d) for d in dims) + "]"
