"""Shape functions of the image ops: sizes and counts that host inputs hold, and channels that a codec is asked for."""

from __future__ import annotations

from typing import Any

from graphdock.ops import symbolic

from graphdock_std.shape_support import Dims, shape_from, show

__all__ = ["bitcast", "resize", "sized_gradient"]


def _size(ctx: Any, name: str) -> tuple[Any, Any]:
    """Height and width, both positive, as the host input ``name`` holds them; ``ctx`` is a ShapeContext."""
    dims = ctx.shape(name)
    if dims is not None:
        message = f"{name} must have shape [2], but has {show(dims)}"
        if len(dims) != 1:
            raise ctx.fail(message)
        ctx.equal(dims[0], 2, message)
    size = shape_from(ctx, name)
    if size is None:
        return None, None
    for d in size:
        if d is not None:
            ctx.at_least(d, 1, f"{name} {show(size)} must be positive")
    return size[0], size[1]


def _alignment(ctx: Any) -> None:
    if ctx.attrs.get("align_corners") and ctx.attrs.get("half_pixel_centers"):
        raise ctx.fail("half_pixel_centers and align_corners exclude one another")


@symbolic
def resize(ctx: Any) -> list[Dims]:
    """``[B,h,w,C]`` of images ``[B,H,W,C]``, where size is ``[h,w]``."""
    _alignment(ctx)
    images, (height, width) = ctx.shape("images"), _size(ctx, "size")
    if images is None:
        return [(None, height, width, None)]
    for d in images[1:3]:
        ctx.at_least(d, 1, f"images {show(images)} have no pixels to sample")
    return [(images[0], height, width, images[3])]


@symbolic
def sized_gradient(ctx: Any) -> list[Dims]:
    """The shape of the images that a resize to the gradients' size was of, where size is theirs."""
    _alignment(ctx)
    grads, (height, width) = ctx.shape("grads"), _size(ctx, "size")
    return [(None, height, width, None) if grads is None else (grads[0], height, width, grads[3])]


@symbolic
def bitcast(ctx: Any) -> list[Dims]:
    """A dim more where elements become narrower, one less where they become wider."""
    x, have, want = ctx.shape("input"), ctx.dtype("T"), ctx.dtype("type")
    if x is None:
        return [None]
    if have.size >= want.size:
        return [x if have.size == want.size else (*x, have.size // want.size)]
    count = want.size // have.size
    message = f"{want.name} takes {count} elements of {have.name}, so that must be the last dim of input {show(x)}"
    if not x:
        raise ctx.fail(message)
    ctx.equal(x[-1], count, message)
    return [x[:-1]]
