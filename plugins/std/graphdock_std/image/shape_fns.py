"""Shape functions of the image ops: sizes and counts that host inputs hold, and channels that a codec is asked for."""

from __future__ import annotations

from typing import Any

from graphdock.ops import symbolic

from graphdock_std.shape_support import Dims, known, number, shape_from, show


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
    for d in images[1:]:
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


@symbolic
def crop_and_resize(ctx: Any) -> list[Dims]:
    """``[N,h,w,C]`` of N boxes, where crop_size is ``[h,w]``."""
    image, boxes, indices = (ctx.shape(n) for n in ("image", "boxes", "box_ind"))
    height, width = _size(ctx, "crop_size")
    count = None if boxes is None else boxes[0]
    if boxes is not None and indices is not None:
        count = ctx.equal(count, indices[0], f"there are boxes {show(boxes)}, but box_ind {show(indices)}")
    if image is not None:
        for d in image[1:3]:
            ctx.at_least(d, 1, f"image {show(image)} has no pixels to sample")
    return [(count, height, width, None if image is None else image[3])]


@symbolic
def crop_gradient(ctx: Any) -> list[Dims]:
    """The shape that image_size holds."""
    dims = ctx.shape("image_size")
    if dims is not None:
        message = f"image_size must have shape [4], but has {show(dims)}"
        if len(dims) != 1:
            raise ctx.fail(message)
        ctx.equal(dims[0], 4, message)
    shape = shape_from(ctx, "image_size")
    grads = ctx.shape("grads")
    if shape is None:
        return [(None, None, None, None if grads is None else grads[3])]
    for d in shape[1:3]:
        if not _late(d):
            ctx.at_least(d, 1, f"image_size {show(shape)} is the shape of no image")
    channels = shape[3]
    if grads is not None:
        message = f"grads {show(grads)} and image_size {show(shape)} differ in channels"
        channels = grads[3] if _late(channels) else ctx.equal(grads[3], channels, message)
    return [(*shape[:3], channels)]


def _late(size: Any) -> bool:
    """Return whether only a step knows it; the kernel checks it then."""
    return not known(size) and (size is None or not size.fed)


def _selected(ctx: Any) -> Any:
    """Return how many boxes come out: known only where zeros fill them up."""
    boxes, scores = ctx.shape("boxes"), ctx.shape("scores")
    if boxes is not None and scores is not None:
        ctx.equal(boxes[0], scores[0], f"there are boxes {show(boxes)}, but scores {show(scores)}")
    return number(ctx, "max_output_size") if ctx.attrs["pad_to_max_output_size"] else None


@symbolic
def suppression_v4(ctx: Any) -> list[Dims]:
    """Indices, and a scalar."""
    return [(_dim(ctx, _selected(ctx)),), ()]


@symbolic
def suppression_v5(ctx: Any) -> list[Dims]:
    """Indices and scores, and a scalar."""
    count = _dim(ctx, _selected(ctx))
    return [(count,), (count,), ()]


def _dim(ctx: Any, count: Any) -> Any:
    """A number that a host input holds, as a dim; where it is none, a dim of its own."""
    if known(count) and count < 0:
        raise ctx.fail(f"max_output_size is {count}")
    return count if known(count) else ctx.derived("selected", count)


@symbolic
def combined_suppression(ctx: Any) -> list[Dims]:
    """Rows of boxes, scores and classes per image, and how many each has."""
    boxes, scores = ctx.shape("boxes"), ctx.shape("scores")
    each, total = number(ctx, "max_output_size_per_class"), number(ctx, "max_total_size")
    batch = boxes[0] if boxes is not None else scores[0] if scores is not None else None
    if boxes is not None and scores is not None:
        message = f"boxes {show(boxes)} and scores {show(scores)} differ in images or boxes"
        batch = ctx.equal(boxes[0], scores[0], message)
        ctx.equal(boxes[1], scores[1], message)
        ctx.one_or_equal(boxes[2], scores[2], f"boxes of {boxes[2]} classes do not fit scores {show(scores)}")
    rows = total
    if ctx.attrs["pad_per_class"]:
        classes = None if scores is None else scores[2]
        rows = min(total, each * classes) if known(total) and known(each) and known(classes) else None
    if not known(rows):
        rows = ctx.derived("selected", each, total, None if scores is None else scores[2])
    return [(batch, rows, 4), (batch, rows), (batch, rows), (batch,)]


@symbolic
def glimpse(ctx: Any) -> list[Dims]:
    """``[B,h,w,C]`` of images ``[B,H,W,C]``, where size is ``[h,w]``; B is that of offsets too."""
    images, offsets, (height, width) = ctx.shape("input"), ctx.shape("offsets"), _size(ctx, "size")
    batch, channels = (None, None) if images is None else (images[0], images[3])
    return [(offsets[0] if batch is None and offsets else batch, height, width, channels)]


def _channels(ctx: Any) -> int | None:
    return ctx.attrs["channels"] or None


def decoded(ctx: Any) -> list[Dims]:
    """Only the channels are known before the file is read, where they are asked for."""
    return [(None, None, _channels(ctx))]


def decoded_crop(ctx: Any) -> list[Dims]:
    """Height and width are those of crop_window."""
    window = ctx.values("crop_window")
    size = window[2:] if isinstance(window, tuple) and len(window) == 4 else (None, None)
    for d in size:
        if known(d) and d < 1:
            raise ctx.fail(f"crop_window {show(window)} must have a positive height and width")
    return [(*(d if known(d) else None for d in size), _channels(ctx))]


def decoded_frames(ctx: Any) -> list[Dims]:
    """Frames of RGB."""
    return [(None, None, None, 3)]


def decoded_any(ctx: Any) -> list[Dims]:
    """The rank is known only where frames are not."""
    return [None if ctx.attrs["expand_animations"] else (None, None, _channels(ctx))]
