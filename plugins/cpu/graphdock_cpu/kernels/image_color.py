"""Kernels of colours: pixels as three planes of scratch, in float32 where the images are narrower."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from graphdock.contracts import BuildContext, KernelDef, Scratch, dtypes
from numpy import add, divide, maximum, minimum, multiply, subtract

from graphdock_cpu.kernels.shaped import Made, Shape, bind, like_first

__all__ = ["KERNELS"]

#: Buffers that a computation over planes is given: three planes of pixels, and two more.
_PLANES = 5


def _to_hsv(r: Any, g: Any, b: Any, v: Any, c: Any, mask: Any) -> None:
    """Hue, saturation and value of planes in place: h in r, s in g, v in v, by way of ``c`` and a mask."""
    maximum(r, g, out=v)
    maximum(v, b, out=v)
    minimum(r, g, out=c)
    minimum(c, b, out=c)
    subtract(v, c, c)
    one = r.dtype.type(1)
    red, green = np.equal(r, v), np.equal(g, v)
    hue = subtract(r, g)
    sixth = np.zeros_like(c)
    np.greater(c, 0, mask)
    divide(one / 6, c, sixth, where=mask)
    multiply(hue, sixth, hue)
    add(hue, r.dtype.type(2 / 3), hue)
    subtract(b, r, r)
    multiply(r, sixth, r)
    add(r, r.dtype.type(1 / 3), r)
    np.copyto(hue, r, where=green)
    subtract(g, b, b)
    multiply(b, sixth, b)
    np.copyto(hue, b, where=red)
    add(hue, np.less(hue, 0), hue)
    np.copyto(r, hue)
    np.greater(v, 0, mask)
    g.fill(0)
    divide(c, v, g, where=mask)


def _to_rgb(h: Any, s: Any, v: Any, out: Any, t: Any) -> None:
    """Pixels ``out[...,3]`` of planes; ``h`` and ``t`` are overwritten."""
    dtype = h.dtype.type
    np.multiply(h, dtype(6), h)
    for channel, (centre, sign, offset) in enumerate(((3, 1, -1), (2, -1, 2), (4, -1, 2))):
        np.subtract(h, dtype(centre), t)
        np.absolute(t, t)
        if sign < 0:
            np.negative(t, t)
        np.add(t, dtype(offset), t)
        np.maximum(t, dtype(0), out=t)
        np.minimum(t, dtype(1), out=t)
        np.subtract(t, dtype(1), t)
        np.multiply(t, s, t)
        np.add(t, dtype(1), t)
        np.multiply(t, v, t)
        np.copyto(out[:, channel], t, "same_kind")


#: Computes pixels ``[N,3]`` from the planes r, g, b: ``compute(planes, out, v, c, mask, *other inputs)``.
Change = Callable[..., None]


def _by_planes(change: Change) -> Callable[[BuildContext, Sequence[Shape]], Made]:
    def make(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
        wide, count, extra = ctx.outputs[0].dtype.accumulator, math.prod(shapes[0][:-1]), len(shapes) - 1

        def compute(images: Any, *args: Any) -> None:
            others, out, scratch = args[:extra], args[extra], args[extra + 1 :]
            *planes, v, c, mask = scratch
            pixels = images.reshape(count, 3)
            for i, plane in enumerate(planes):
                np.copyto(plane, pixels[:, i])
            change(planes, out.reshape(count, 3), v, c, mask, *others)

        return compute, (Scratch(wide, (count,)),) * _PLANES + (Scratch(dtypes.bool_, (count,)),)

    return make


def _rgb_to_hsv(planes: Sequence[Any], out: Any, v: Any, c: Any, mask: Any) -> None:
    _to_hsv(*planes, v, c, mask)
    for i, plane in enumerate((planes[0], planes[1], v)):
        np.copyto(out[:, i], plane, "same_kind")


def _hsv_to_rgb(planes: Sequence[Any], out: Any, v: Any, c: Any, mask: Any) -> None:
    _to_rgb(*planes, out, c)


def _adjust_hue(planes: Sequence[Any], out: Any, v: Any, c: Any, mask: Any, delta: Any) -> None:
    _to_hsv(*planes, v, c, mask)
    hue, saturation, _ = planes
    np.add(hue, hue.dtype.type(delta), hue)
    np.floor(hue, c)
    np.subtract(hue, c, hue)
    _to_rgb(hue, saturation, v, out, c)


def _adjust_saturation(planes: Sequence[Any], out: Any, v: Any, c: Any, mask: Any, scale: Any) -> None:
    _to_hsv(*planes, v, c, mask)
    hue, saturation, _ = planes
    np.multiply(saturation, saturation.dtype.type(scale), saturation)
    np.maximum(saturation, saturation.dtype.type(0), out=saturation)
    np.minimum(saturation, saturation.dtype.type(1), out=saturation)
    _to_rgb(hue, saturation, v, out, c)


def _adjust_contrast(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    shape, dtype = shapes[0], ctx.outputs[0].dtype
    wide = dtype.accumulator
    *lead, height, width, channels = shape
    mean = Scratch(wide, (*lead, 1, 1, channels))
    count = wide.np.type(max(height * width, 1))

    def compute(images: Any, factor: Any, out: Any, middle: Any, between: Any = None) -> None:
        target = out if between is None else between
        np.add.reduce(images, (-3, -2), wide.np, middle, True)
        np.divide(middle, count, middle)
        np.subtract(images, middle, target)
        np.multiply(target, wide.np.type(factor), target)
        np.add(target, middle, target)
        if between is not None:
            np.copyto(out, between, "same_kind")

    return compute, (mean,) if wide is dtype else (mean, Scratch(wide, shape))


KERNELS = [
    KernelDef("RGBToHSV", "cpu", bind(_by_planes(_rgb_to_hsv), like_first)),
    KernelDef("HSVToRGB", "cpu", bind(_by_planes(_hsv_to_rgb), like_first)),
    KernelDef("AdjustHue", "cpu", bind(_by_planes(_adjust_hue), like_first)),
    KernelDef("AdjustSaturation", "cpu", bind(_by_planes(_adjust_saturation), like_first)),
    KernelDef("AdjustContrastv2", "cpu", bind(_adjust_contrast, like_first)),
]
