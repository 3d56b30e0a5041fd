"""Colours and contrast of images. float16 and bfloat16 are computed in float32."""

from __future__ import annotations

import math

from graphdock.contracts import KernelDef

from graphdock_cuda.compiled import source
from graphdock_cuda.kernel import family
from graphdock_cuda.kernels.columns import LEAST
from graphdock_cuda.launch import i32, i64, u64
from graphdock_cuda.work import Work, blocks

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)

_IN_PLACE = {"inplace": {"output": ("images",)}, "modes": ("planned", "fresh", "inplace")}


def _pixels(w: Work, function: str) -> None:
    x = w.input(0)
    by = w.input(1) if len(w.inputs) > 1 else u64(0)
    y = w.output(x.shape)
    if x.size:
        made = source("color.cuh", TYPE=w.ctype(x), FUNCTION=function)
        w.launch(made, "color", blocks(x.size // 3), 256, x, by, y, i64(x.size // 3))


@kernel("RGBToHSV", **_IN_PLACE)
def rgb_to_hsv(w: Work) -> None:
    _pixels(w, "rgb_to_hsv")


@kernel("HSVToRGB", **_IN_PLACE)
def hsv_to_rgb(w: Work) -> None:
    _pixels(w, "hsv_to_rgb")


@kernel("AdjustHue", **_IN_PLACE)
def adjust_hue(w: Work) -> None:
    """``(images, delta)``."""
    _pixels(w, "adjust_hue")


@kernel("AdjustSaturation", **_IN_PLACE)
def adjust_saturation(w: Work) -> None:
    """``(images, scale)``."""
    _pixels(w, "adjust_saturation")


@kernel("AdjustContrastv2", **_IN_PLACE)
def adjust_contrast(w: Work) -> None:
    """``(images, factor)``: means of each image's channels in parts, joined in order."""
    x, factor = w.inputs
    y = w.output(x.shape)
    if not x.size:
        return
    images, pixels, channels = math.prod(x.shape[:-3]), x.shape[-3] * x.shape[-2], x.shape[-1]
    across = -(-channels // 32)
    count = max(1, min(-(-2 * w.multiprocessors // (across * images)), pixels // LEAST, 1024))
    wide = x.dtype.accumulator
    parts, means = w.scratch(wide, (images, count, channels)), w.scratch(wide, (images, channels))
    made = source("block.cuh", "columns.cuh", "contrast.cuh", TYPE=w.ctype(x))
    sizes = (i64(pixels), i64(channels))
    w.launch(made, "contrast_sums", (across, count, min(images, 65535)), 256, x, parts, i64(images), *sizes)
    w.launch(made, "contrast_means", blocks(means.size), 256, parts, means, i64(means.size), i32(count), *sizes)
    w.launch(made, "contrast", blocks(x.size), 256, x, means, factor, y, i64(x.size), *sizes)
