"""Kernels of images that draw: a box out of an image, and windows with noise around it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from graphdock.contracts import Bound, BuildContext, KernelDef, errors

__all__ = ["KERNELS"]


def _bits(stream: Any) -> np.random.Philox:
    ordinal, iteration, outer = stream.counter()
    return np.random.Philox(key=list(stream.key), counter=[0, outer, iteration, ordinal])


def _attempt(words: list[int], height: int, width: int, ratios: Sequence[float], areas: Sequence[float]) -> Any:
    """Row, column, height and width, or None where no size fits."""
    ratio = ratios[0] + (words[0] >> 11) * 2.0**-53 * (ratios[1] - ratios[0])
    heights = np.arange(1, height + 1)
    widths = np.rint(heights * ratio)
    sizes = heights * widths
    whole = height * width
    fit = (
        (widths >= 1) & (widths <= width) & (sizes >= areas[0] * height * width) & (sizes <= areas[1] * height * width)
    )
    fitting = np.flatnonzero(fit) if whole else np.zeros(0, np.intp)
    if not fitting.size:
        return None
    at = int(fitting[(words[1] * fitting.size) >> 64])
    h, w = int(heights[at]), int(widths[at])
    return (words[2] * (height - h + 1)) >> 64, (words[3] * (width - w + 1)) >> 64, h, w


def _covers(box: tuple[int, int, int, int], boxes: Any, least: float) -> bool:
    """Return whether this much of one of the boxes, in pixels, is inside."""
    row, column, h, w = box
    top, left, low, right = boxes
    down = np.maximum(0.0, np.minimum(low, row + h) - np.maximum(top, row))
    along = np.maximum(0.0, np.minimum(right, column + w) - np.maximum(left, column))
    whole = (low - top) * (right - left)
    real = whole > 0
    return bool(np.any(down[real] * along[real] / whole[real] >= least))


def _sample(ctx: BuildContext) -> Bound:
    ratios, areas = list(ctx.attr("aspect_ratio_range")), list(ctx.attr("area_range"))
    attempts, alone = ctx.attr("max_attempts"), ctx.attr("use_image_if_no_bounding_boxes")
    if len(ratios) != 2 or not 0 < ratios[0] <= ratios[1]:
        raise errors.InvalidArgumentError(f"aspect_ratio_range {ratios} is no range of positive numbers")
    if len(areas) != 2 or not 0 < areas[0] <= areas[1] <= 1:
        raise errors.InvalidArgumentError(f"area_range {areas} is no range in (0, 1]")
    kinds = [o.dtype.np for o in ctx.outputs]

    def compute(size: Any, boxes: Any, least: Any, stream: Any, *outs: Any) -> Any:
        height, width = int(size[0]), int(size[1])
        if height < 1 or width < 1:
            raise errors.InvalidArgumentError(f"image_size {size.tolist()} must be positive")
        found = (0, 0, height, width)
        wide = boxes.reshape(-1, 4).astype(np.float64)
        if not wide.size and not alone:
            raise errors.InvalidArgumentError(
                "there are no bounding_boxes", hint="use_image_if_no_bounding_boxes takes the image in their place"
            )
        if not ((wide >= 0) & (wide <= 1)).all() or (wide[:, :2] > wide[:, 2:]).any():
            raise errors.InvalidArgumentError(
                "bounding_boxes must be [y1, x1, y2, x2] in [0, 1], each end beyond its start", got=str(wide.tolist())
            )
        if wide.size:
            pixels = wide.T * np.array([[height], [width], [height], [width]])
            bits = _bits(stream)
            for _ in range(attempts):
                box = _attempt([int(w) for w in bits.random_raw(4)], height, width, ratios, areas)
                if box is not None and _covers(box, pixels, float(least)):
                    found = box
                    break
        row, column, h, w = found
        ends = [row / height, column / width, (row + h) / height, (column + w) / width]
        values = [row, column, 0], [h, w, -1], [[ends]]
        made = [np.array(v).astype(k) for v, k in zip(values, kinds, strict=True)]
        if not outs:
            return tuple(made)
        for out, value in zip(outs, made, strict=True):
            np.copyto(out, value)
        return None

    return Bound(compute)


def _normal(bits: np.random.Philox, shape: tuple[int, ...]) -> Any:
    """Box and Muller, "A note on the generation of random normal deviates", 1958, as RandomStandardNormal has it."""
    size = math.prod(shape)
    u = np.random.Generator(bits).random(((size + 1) // 2, 2), np.float32)
    radius = np.sqrt(np.log(np.float32(1) - u[:, 0]) * np.float32(-2))
    angle = u[:, 1] * np.float32(2 * math.pi)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).reshape(-1)[:size].reshape(shape)


def _glimpse(ctx: BuildContext) -> Bound:
    centered, normalized = ctx.attr("centered"), ctx.attr("normalized")
    uniform, zero = ctx.attr("uniform_noise"), ctx.attr("noise") == "zero"

    def fill(images: Any, out: Any, stream: Any) -> None:
        if zero and not uniform:
            out.fill(0)
            return
        if not images[:1].size:  # nothing has no least and no mean
            out.fill(math.nan)
            return
        bits = _bits(stream)
        if uniform:
            np.random.Generator(bits).random(None, np.float32, out)
            low = images.min((1, 2, 3), keepdims=True)
            np.multiply(out, images.max((1, 2, 3), keepdims=True) - low, out)
            np.add(out, low, out)
        else:
            np.multiply(_normal(bits, out.shape), images.std((1, 2, 3), keepdims=True), out)
            np.add(out, images.mean((1, 2, 3), keepdims=True), out)

    def compute(images: Any, size: Any, offsets: Any, stream: Any, out: Any = None) -> Any:
        batch, height, width, channels = images.shape
        wanted = tuple(int(d) for d in size)
        if min(wanted) < 1:
            raise errors.InvalidArgumentError(f"size {list(wanted)} must be positive")
        made = np.empty((batch, *wanted, channels), np.float32) if out is None else out
        extent = np.array([height, width], np.float32)
        at = offsets * extent if normalized else offsets
        at = at / np.float32(2) + extent / np.float32(2) if centered else at
        corners = np.trunc(at - np.array(wanted, np.float32) / np.float32(2)).astype(np.int64)
        if ((corners < 0) | (corners + wanted > (height, width))).any():
            fill(images, made, stream)
        for image, target, corner in zip(images, made, corners.tolist(), strict=True):
            starts = [max(c, 0) for c in corner]
            ends = [max(min(c + n, d), 0) for c, n, d in zip(corner, wanted, (height, width), strict=True)]
            if starts[0] < ends[0] and starts[1] < ends[1]:
                rows, columns = (slice(s - c, e - c) for s, e, c in zip(starts, ends, corner, strict=True))
                target[rows, columns] = image[starts[0] : ends[0], starts[1] : ends[1]]
        return made if out is None else None

    return Bound(compute)


KERNELS = [
    KernelDef(
        "SampleDistortedBoundingBoxV2",
        "cpu",
        _sample,
        host=("image_size", "bounding_boxes", "min_object_covered", "begin", "size"),
    ),
    KernelDef("ExtractGlimpse", "cpu", _glimpse, host=("size",)),
]
