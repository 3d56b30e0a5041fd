"""Oracles of the ops of images that draw: each word of the stream by itself, in Python's integers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphdock_std.reference.random import random_uniform, standard_normal, words


def _box(drawn: list[int], height: int, width: int, ratios: Any, areas: Any) -> tuple[int, int, int, int] | None:
    """Row, column, height and width of a box, or None where none fits."""
    ratio = float(ratios[0]) + (drawn[0] >> 11) * 2.0**-53 * (float(ratios[1]) - float(ratios[0]))
    least, most = (float(a) * height * width for a in areas)
    fitting = [
        h for h in range(1, height + 1) if 1 <= round(h * ratio) <= width and least <= h * round(h * ratio) <= most
    ]
    if not fitting:
        return None
    h = fitting[(drawn[1] * len(fitting)) >> 64]
    w = round(h * ratio)
    return (drawn[2] * (height - h + 1)) >> 64, (drawn[3] * (width - w + 1)) >> 64, h, w


def sample_distorted_bounding_box(
    image_size: Any,
    bounding_boxes: Any,
    min_object_covered: Any,
    aspect_ratio_range: Sequence[float] = (0.75, 1.33),
    area_range: Sequence[float] = (0.05, 1.0),
    max_attempts: int = 100,
    *,
    key: Sequence[int],
    counter: tuple[int, ...],
    **_: Any,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    height, width = int(image_size[0]), int(image_size[1])
    boxes = np.asarray(bounding_boxes).astype(np.float64).reshape(-1, 4).tolist() or [[0.0, 0.0, 1.0, 1.0]]
    found = (0, 0, height, width)
    drawn = words(4 * max_attempts, key, counter)
    for attempt in range(max_attempts) if bounding_boxes.size else ():
        box = _box(drawn[4 * attempt : 4 * attempt + 4], height, width, aspect_ratio_range, area_range)
        if box is None:
            continue
        row, column, h, w = box
        for y1, x1, y2, x2 in boxes:
            top, low, left, right = y1 * height, y2 * height, x1 * width, x2 * width
            shared = max(0.0, min(low, row + h) - max(top, row)) * max(0.0, min(right, column + w) - max(left, column))
            whole = (low - top) * (right - left)
            if whole > 0 and shared / whole >= float(min_object_covered):
                break
        else:
            continue
        found = box
        break
    row, column, h, w = found
    ends = [row / height, column / width, (row + h) / height, (column + w) / width]
    dtype = image_size.dtype
    sizes = np.array([h, w, -1], np.int64)
    return np.array([row, column, 0], dtype), sizes.astype(dtype), np.array([[ends]], np.float32)


def extract_glimpse(
    input: Any,
    size: Any,
    offsets: Any,
    centered: bool = True,
    normalized: bool = True,
    uniform_noise: bool = True,
    noise: str = "uniform",
    *,
    key: Sequence[int],
    counter: tuple[int, ...],
    **_: Any,
) -> np.ndarray:
    batch, height, width, channels = input.shape
    shape = (batch, int(size[0]), int(size[1]), channels)
    draw = random_uniform if uniform_noise else standard_normal
    numbers = draw(np.array(shape, np.int32), dtype="float32", key=key, counter=counter)
    out = np.zeros(shape, np.float32)
    for b in range(batch):
        corner = []
        for k, (have, want) in enumerate(((height, shape[1]), (width, shape[2]))):
            at = np.float32(offsets[b, k]) * np.float32(have if normalized else 1)
            at = at / np.float32(2) + np.float32(have) / np.float32(2) if centered else at
            corner.append(math.trunc(float(at - np.float32(want) / np.float32(2))))
        image = input[b].astype(np.float64)
        for i, j, c in np.ndindex(shape[1:]):
            y, x = corner[0] + i, corner[1] + j
            if 0 <= y < height and 0 <= x < width:
                out[b, i, j, c] = input[b, y, x, c]
            elif not image.size:
                out[b, i, j, c] = math.nan if uniform_noise or noise != "zero" else 0.0
            elif uniform_noise:
                out[b, i, j, c] = image.min() + float(numbers[b, i, j, c]) * (image.max() - image.min())
            elif noise != "zero":
                out[b, i, j, c] = image.mean() + float(numbers[b, i, j, c]) * image.std()
    return out
