"""Oracles of crops and drawn boxes: one pixel at a time, positions in float32 as the ops define them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

f32 = np.float32


def _where(start: Any, end: Any, i: int, wanted: int, size: int) -> float:
    if wanted == 1:
        return float(f32(0.5) * (start + end) * f32(size - 1))
    return float(start * f32(size - 1) + f32(i) * ((end - start) * f32(size - 1) / f32(wanted - 1)))


def _samples(box: Any, shape: Any, size: Any) -> Iterator[tuple[int, int, float, float, bool]]:
    """Row and column of every pixel of a crop, where it lies, and whether that is inside."""
    for i in range(size[0]):
        for j in range(size[1]):
            y = _where(box[0], box[2], i, size[0], shape[0])
            x = _where(box[1], box[3], j, size[1], shape[1])
            yield i, j, y, x, 0 <= y <= shape[0] - 1 and 0 <= x <= shape[1] - 1


def _weights(y: float, x: float, method: str) -> list[tuple[int, int, float]]:
    if method == "nearest":
        return [(math.floor(y + 0.5), math.floor(x + 0.5), 1.0)]
    rows = {math.floor(y): 1 - (y - math.floor(y)), math.ceil(y): y - math.floor(y)} if y % 1 else {int(y): 1.0}
    columns = {math.floor(x): 1 - (x - math.floor(x)), math.ceil(x): x - math.floor(x)} if x % 1 else {int(x): 1.0}
    return [(i, j, v * w) for i, v in rows.items() for j, w in columns.items()]


def crop_and_resize(
    image: Any,
    boxes: Any,
    box_ind: Any,
    crop_size: Any,
    method: str = "bilinear",
    extrapolation_value: float = 0.0,
    **_: Any,
) -> np.ndarray:
    x = np.asarray(image).astype(np.float64)
    size = [int(d) for d in crop_size]
    out = np.full((len(boxes), *size, x.shape[3]), float(extrapolation_value))
    for n, (box, index) in enumerate(zip(boxes, box_ind, strict=True)):
        for i, j, a, b, inside in _samples(box, x.shape[1:3], size):
            if inside:
                out[n, i, j] = sum(w * x[int(index), r, c] for r, c, w in _weights(a, b, method))
    return out.astype(np.float32)


def crop_gradient(
    grads: Any, boxes: Any, box_ind: Any, image_size: Any, method: str = "bilinear", T: Any = "float32", **_: Any
) -> np.ndarray:
    shape = [int(d) for d in image_size]
    out = np.zeros(shape)
    for n, (box, index) in enumerate(zip(boxes, box_ind, strict=True)):
        for i, j, a, b, inside in _samples(box, shape[1:3], grads.shape[1:3]):
            for r, c, w in _weights(a, b, method) if inside else ():
                out[int(index), r, c] += w * grads[n, i, j].astype(np.float64)
    return out.astype(getattr(T, "name", T))


def crop_gradient_boxes(grads: Any, image: Any, boxes: Any, box_ind: Any, **_: Any) -> np.ndarray:
    """Each position's own derivative, from the slope of the piece of the image that it lies on."""
    x = np.asarray(image).astype(np.float64)
    height, width = x.shape[1:3]
    out = np.zeros((len(boxes), 4))
    rows, columns = grads.shape[1:3]
    for n, (box, index) in enumerate(zip(boxes, box_ind, strict=True)):
        plane = x[int(index)]
        for i, j, a, b, inside in _samples(box, (height, width), (rows, columns)):
            if not inside:
                continue
            top, bottom, left, right = math.floor(a), math.ceil(a), math.floor(b), math.ceil(b)
            slope_y = (1 - (b - left)) * (plane[bottom, left] - plane[top, left]) + (b - left) * (
                plane[bottom, right] - plane[top, right]
            )
            slope_x = (1 - (a - top)) * (plane[top, right] - plane[top, left]) + (a - top) * (
                plane[bottom, right] - plane[bottom, left]
            )
            g = grads[n, i, j].astype(np.float64)
            dy, dx = float(g @ slope_y) * (height - 1), float(g @ slope_x) * (width - 1)
            down, along = (i / (rows - 1) if rows > 1 else 0.5), (j / (columns - 1) if columns > 1 else 0.5)
            out[n] += dy * (1 - down), dx * (1 - along), dy * down, dx * along
    return out.astype(np.float32)


#: CSS names of the colours that boxes take in turn.
_COLORS = {
    "yellow": (1, 1, 0, 1),
    "blue": (0, 0, 1, 1),
    "red": (1, 0, 0, 1),
    "lime": (0, 1, 0, 1),
    "purple": (0.5, 0, 0.5, 1),
    "olive": (0.5, 0.5, 0, 1),
    "maroon": (0.5, 0, 0, 1),
    "navy": (0, 0, 0.5, 1),
    "aqua": (0, 1, 1, 1),
    "fuchsia": (1, 0, 1, 1),
}


def draw(images: Any, boxes: Any, colors: Any = None, **_: Any) -> np.ndarray:
    out = np.array(images)
    _, height, width, channels = out.shape
    if colors is None or not len(colors):
        colors = [(1,) if channels == 1 else c for c in _COLORS.values()]
    for image, its in zip(out, boxes, strict=True):
        for n, (y1, x1, y2, x2) in enumerate(its):
            first, last = int(y1 * f32(height - 1)), int(y2 * f32(height - 1))
            left, right = int(x1 * f32(width - 1)), int(x2 * f32(width - 1))
            if first > last or left > right:
                continue
            for i in range(height):
                for j in range(width):
                    inside = first <= i <= last and left <= j <= right
                    if inside and (i in (first, last) or j in (left, right)):
                        image[i, j] = np.array(colors[n % len(colors)][:channels]).astype(images.dtype)
    return out
