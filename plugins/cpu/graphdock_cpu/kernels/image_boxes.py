"""Kernels that cut boxes out of images, with their gradients, and that draw boxes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from graphdock.contracts import BuildContext, KernelDef, Scratch, dtypes, errors
from numpy import take

from graphdock_cpu.kernels import shaped, sized
from graphdock_cpu.kernels.shaped import Made, Shape
from graphdock_cpu.kernels.sized import Values

__all__ = ["KERNELS"]

#: What boxes are drawn in where no colours are given: yellow, blue, red, lime, purple, olive, maroon, navy, aqua, fuchsia.
_COLORS = np.array(
    [
        [1, 1, 0, 1],
        [0, 0, 1, 1],
        [1, 0, 0, 1],
        [0, 1, 0, 1],
        [0.5, 0, 0.5, 1],
        [0.5, 0.5, 0, 1],
        [0.5, 0, 0, 1],
        [0, 0, 0.5, 1],
        [0, 1, 1, 1],
        [1, 0, 1, 1],
    ],
    np.float32,
)


class _Places:
    """Where the pixels of all crops lie in the images: ``[N,h,w]`` places of neighbours, and how they are weighted."""

    def __init__(self, boxes: Any, indices: Any, image: Shape, size: tuple[int, int]) -> None:
        batch, height, width, _ = image
        wrong = (indices < 0) | (indices >= batch)
        if wrong.any():
            at = int(np.argmax(wrong))
            raise errors.OutOfRangeError(
                f"box_ind holds {indices[at]} at {at}", expected=f"the index of an image, 0 to {batch - 1}"
            )
        self.y, y_inside = _axis(boxes[:, 0], boxes[:, 2], size[0], height)
        self.x, x_inside = _axis(boxes[:, 1], boxes[:, 3], size[1], width)
        self.inside = y_inside[:, :, None] & x_inside[:, None, :]
        self.first = indices.astype(np.intp)[:, None, None] * (height * width)
        self.size = height, width

    def of(self, rows: Any, columns: Any) -> Any:
        """Places in the images as a list of pixels."""
        rows = np.clip(rows, 0, self.size[0] - 1).astype(np.intp)
        columns = np.clip(columns, 0, self.size[1] - 1).astype(np.intp)
        return self.first + rows[:, :, None] * self.size[1] + columns[:, None, :]

    def corners(self) -> tuple[list[Any], Any, Any]:
        """Places of the four neighbours, row by row, and the parts of the second row and column."""
        rows, columns = (np.floor(self.y), np.ceil(self.y)), (np.floor(self.x), np.ceil(self.x))
        places = [self.of(r, c) for r in rows for c in columns]
        return places, (self.y - rows[0])[:, :, None, None], (self.x - columns[0])[:, None, :, None]

    def nearest(self) -> Any:
        return self.of(np.floor(self.y + np.float32(0.5)), np.floor(self.x + np.float32(0.5)))


def _axis(start: Any, end: Any, wanted: int, size: int) -> tuple[Any, Any]:
    """Positions of the pixels of each box along an axis, in float32, and which are inside."""
    last = np.float32(size - 1)
    if wanted != 1:
        step = (end - start) * last / np.float32(wanted - 1)
        where = (start * last)[:, None] + np.arange(wanted, dtype=np.float32) * step[:, None]
    else:
        where = (np.float32(0.5) * (start + end) * last)[:, None]
    return where, (where >= 0) & (where <= last)


def _pair(values: Values, index: int) -> tuple[int, int]:
    height, width = values[index]
    if height < 1 or width < 1:
        raise errors.InvalidArgumentError(f"crop_size [{height},{width}] must be positive")
    return height, width


def _crops(ctx: BuildContext, shapes: Sequence[Shape], values: Values) -> Sequence[Shape]:
    return [(shapes[1][0], *_pair(values, 3), shapes[0][3])]


def _crop_and_resize(ctx: BuildContext, shapes: Sequence[Shape], values: Values) -> Made:
    shape, size = shapes[0], _pair(values, 3)
    outside, nearest = np.float32(ctx.attr("extrapolation_value")), ctx.attr("method") == "nearest"
    made = Scratch(dtypes.float32, (shapes[1][0], *size, shape[3]))
    copied = ctx.inputs[0].dtype is not dtypes.float32

    def compute(image: Any, boxes: Any, indices: Any, _: Any, out: Any, part: Any, low: Any, wide: Any = None) -> None:
        if copied:
            np.copyto(wide, image, "unsafe")
            image = wide
        places = _Places(boxes, indices, shape, size)
        if not out.size:
            return
        pixels = image.reshape(-1, shape[3])
        if nearest:
            take(pixels, places.nearest(), 0, out, "clip")
        else:
            corners, y_part, x_part = places.corners()
            for row, target in ((0, out), (2, low)):
                take(pixels, corners[row], 0, target, "clip")
                take(pixels, corners[row + 1], 0, part, "clip")
                np.subtract(part, target, part)
                np.multiply(part, x_part, part)
                np.add(target, part, target)
            np.subtract(low, out, low)
            np.multiply(low, y_part, low)
            np.add(out, low, out)
        out[~places.inside] = outside

    return compute, (made, made, Scratch(dtypes.float32, shape)) if copied else (made, made)


def _image_shape(ctx: BuildContext, shapes: Sequence[Shape], values: Values) -> Sequence[Shape]:
    grads, size = shapes[0], values[3]
    if min(size) < 0 or not (size[1] and size[2]):
        raise errors.InvalidArgumentError(f"image_size {list(size)} is the shape of no image")
    if size[3] != grads[3]:
        raise errors.InvalidArgumentError(f"grads {list(grads)} and image_size {list(size)} differ in channels")
    return [size]


def _crop_gradient(ctx: BuildContext, shapes: Sequence[Shape], values: Values) -> Made:
    shape, (_, *size, channels) = tuple(values[3]), shapes[0]
    output, nearest = ctx.outputs[0].dtype, ctx.attr("method") == "nearest"
    wide = output.accumulator

    def compute(grads: Any, boxes: Any, indices: Any, _: Any, out: Any, total: Any = None) -> None:
        target = out if total is None else total
        target.fill(0)
        places = _Places(boxes, indices, shape, (size[0], size[1]))
        flat = target.reshape(-1)
        given = grads * places.inside[..., None]
        if nearest:
            spread = [(places.nearest(), given)]
        else:
            corners, y, x = places.corners()
            weights = ((1 - y) * (1 - x), (1 - y) * x, y * (1 - x), y * x)
            spread = [(c, given * w) for c, w in zip(corners, weights, strict=True)]
        for where, part in spread:
            ids = where[..., None] * channels + np.arange(channels)
            np.add.at(flat, ids.reshape(-1), part.reshape(-1).astype(wide.np, copy=False))
        if total is not None:
            np.copyto(out, total, "same_kind")

    return compute, () if wide is output else (Scratch(wide, shape),)


def _crop_gradient_boxes(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    (_, rows, columns, channels), shape = shapes[0], shapes[1]
    height, width = np.float32(shape[1] - 1), np.float32(shape[2] - 1)
    down = (np.arange(rows, dtype=np.float32) / (rows - 1) if rows > 1 else np.full(1, 0.5, np.float32))[None, :, None]
    along = (np.arange(columns, dtype=np.float32) / (columns - 1) if columns > 1 else np.full(1, 0.5, np.float32))[
        None, None
    ]

    def compute(grads: Any, image: Any, boxes: Any, indices: Any, out: Any) -> None:
        places = _Places(boxes, indices, shape, (rows, columns))
        if not grads.size:
            out.fill(0)
            return
        pixels = image.reshape(-1, channels)
        corners, y, x = places.corners()
        top_left, top_right, low_left, low_right = (pixels[c].astype(np.float32, copy=False) for c in corners)
        given = grads * places.inside[..., None]
        by_y = (1 - x) * (low_left - top_left) + x * (low_right - top_right)
        by_x = (1 - y) * (top_right - top_left) + y * (low_right - low_left)
        dy, dx = (by_y * given).sum(3) * height, (by_x * given).sum(3) * width
        for k, part in enumerate((dy * (1 - down), dx * (1 - along), dy * down, dx * along)):
            np.add.reduce(part, (1, 2), None, out[:, k])

    return compute, ()


def _draw(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    _, height, width, channels = shapes[0]

    def compute(images: Any, boxes: Any, *args: Any) -> None:
        colors, out = args if len(args) == 2 else (_COLORS, args[0])
        if not len(colors):
            colors = _COLORS
        if colors is _COLORS and channels == 1:
            colors = np.ones((1, 1), np.float32)
        np.copyto(out, images)
        for image, its in zip(out, boxes, strict=True):
            for n, box in enumerate(its):
                _outline(image, box, colors[n % len(colors), :channels].astype(out.dtype), height, width)

    return compute, ()


def _outline(image: Any, box: Any, color: Any, height: int, width: int) -> None:
    if not np.isfinite(box).all():
        return
    scales = np.array([height - 1, width - 1, height - 1, width - 1], np.float32)
    top, left, bottom, right = (math.trunc(v) for v in (box * scales).tolist())
    if top > bottom or left > right or top >= height or bottom < 0 or left >= width or right < 0:
        return
    rows = slice(max(top, 0), min(bottom, height - 1) + 1)
    columns = slice(max(left, 0), min(right, width - 1) + 1)
    for row in (top, bottom):
        if 0 <= row < height:
            image[row, columns] = color
    for column in (left, right):
        if 0 <= column < width:
            image[rows, column] = color


def _boxes(ctx: BuildContext, shapes: Sequence[Shape]) -> Sequence[Shape]:
    return [shapes[2]]


KERNELS = [
    KernelDef("CropAndResize", "cpu", sized.bind(_crop_and_resize, _crops, 3), host=("crop_size",)),
    KernelDef("CropAndResizeGradImage", "cpu", sized.bind(_crop_gradient, _image_shape, 3), host=("image_size",)),
    KernelDef("CropAndResizeGradBoxes", "cpu", shaped.bind(_crop_gradient_boxes, _boxes)),
    KernelDef("DrawBoundingBoxes", "cpu", shaped.bind(_draw, shaped.like_first)),
    KernelDef("DrawBoundingBoxesV2", "cpu", shaped.bind(_draw, shaped.like_first)),
]
