"""Depthwise convolutions with their gradients: a filter per channel, tap by tap.

Each tap is one product over all channels, or over each of a few, and one sum, on some images at once. Where a channel has several
outputs, they are computed one after the other in planes of their own and interleaved at the end.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from graphdock.contracts import BuildContext, KernelDef, Scratch
from numpy import add, copyto, dot, multiply

from graphdock_cpu.kernels.conv_im2col import Padded, tap_views
from graphdock_cpu.kernels.sliding import (
    Method,
    Shape,
    Slide,
    bind_sized,
    check_fits,
    first_spatial,
    sizes_in,
    slide_of,
    staged,
)

__all__ = ["KERNELS"]

#: Elements of the output that are computed at once.
AT_ONCE = 1 << 16
#: So many channels are computed one by one, along lines of so many elements: a loop of NumPy over a few costs more than they do.
FEW_CHANNELS, LONG_LINE = 4, 16

Made = tuple[Callable[..., Any], tuple[Scratch, ...]]


def _chunks(slide: Slide) -> tuple[int, list[slice]]:
    """How many images are computed at once, and which."""
    image = math.prod(slide.out) * slide.channels
    if image * slide.batch == 0:
        return 1, []
    images = max(1, min(slide.batch, AT_ONCE // image))
    return images, [slice(b, min(b + images, slide.batch)) for b in range(0, slide.batch, images)]


def _groups(slide: Slide) -> tuple[int, list[slice]]:
    """Number of channels that are computed at once, and the slices of them."""
    if slide.channels > FEW_CHANNELS or slide.out[-1] < LONG_LINE:
        return slide.channels, [slice(0, slide.channels)]
    return 1, [slice(c, c + 1) for c in range(slide.channels)]


def _convolve(slide: Slide) -> Method:
    """``(x, w, y)``; ``slide.outputs`` are those per channel."""
    padded, (images, chunks), (width, groups) = Padded(slide), _chunks(slide), _groups(slide)
    plane = (images, *slide.out, width)
    taps = [(tap, (slice(None), *where)) for tap, where in tap_views(slide)]
    several = slide.outputs > 1

    def compute(x: Any, w: Any, y: Any, *scratch: Any) -> None:
        if padded.needed:
            padded.fill(x, scratch[0])
            x = scratch[0]
        grid = y.reshape(*y.shape[:-1], slide.channels, slide.outputs)
        for chunk, m, some in itertools.product(chunks, range(slide.outputs), groups):
            n = chunk.stop - chunk.start
            xs, into, product = x[chunk][..., some], grid[chunk][..., some, m], scratch[-2][:n]
            total = scratch[-1][:n] if several else into
            for number, (tap, where) in enumerate(taps):
                multiply(xs[where], w[(*tap, some, m)], product if number else total)
                if number:
                    add(total, product, total)
            if several:
                copyto(into, total)

    return compute, (*padded.scratch, plane, plane)


def _input(slide: Slide) -> Method:
    """``(w, dy, dx)``."""
    padded, (images, chunks), (width, groups) = Padded(slide), _chunks(slide), _groups(slide)
    plane = (images, *slide.out, width)
    taps = [(tap, (slice(None), *where)) for tap, where in tap_views(slide)]

    def compute(w: Any, dy: Any, dx: Any, *scratch: Any) -> None:
        target = scratch[0] if padded.needed else dx
        target.fill(0)
        grid = dy.reshape(*dy.shape[:-1], slide.channels, slide.outputs)
        for chunk, m, some in itertools.product(chunks, range(slide.outputs), groups):
            n = chunk.stop - chunk.start
            into, product, given = target[chunk][..., some], scratch[-2][:n], scratch[-1][:n]
            copyto(given, grid[chunk][..., some, m])
            for tap, where in taps:
                multiply(given, w[(*tap, some, m)], product)
                part = into[where]
                add(part, product, part)
        if padded.needed:
            if dx[padded.source].size != dx.size:
                dx.fill(0)
            copyto(dx[padded.source], target[padded.target])

    return compute, (*padded.scratch, plane, plane)


def _filter(slide: Slide) -> Method:
    """``(x, dy, dw)``: products summed over all positions by a product with ones."""
    padded, (images, chunks), (width, groups) = Padded(slide), _chunks(slide), _groups(slide)
    plane, positions = (images, *slide.out, width), images * math.prod(slide.out)
    taps = [(tap, (slice(None), *where)) for tap, where in tap_views(slide)]

    def compute(x: Any, dy: Any, dw: Any, *scratch: Any) -> None:
        if padded.needed:
            padded.fill(x, scratch[0])
            x = scratch[0]
        dw.fill(0)
        product, given, ones, summed = scratch[-4:]
        ones.fill(1)
        grid = dy.reshape(*dy.shape[:-1], slide.channels, slide.outputs)
        for chunk, m, some in itertools.product(chunks, range(slide.outputs), groups):
            n = chunk.stop - chunk.start
            xs, rows = x[chunk][..., some], n * math.prod(slide.out)
            copyto(given[:n], grid[chunk][..., some, m])
            for tap, where in taps:
                multiply(xs[where], given[:n], product[:n])
                dot(ones[:rows], product[:n].reshape(rows, width), summed)
                into = dw[(*tap, some, m)]
                add(into, summed, into)

    return compute, (*padded.scratch, plane, plane, (positions,), (width,))


def _outputs(slide: Slide) -> int:
    return slide.channels * slide.outputs


def _forward_made(ctx: BuildContext, shapes: Sequence[Shape], out: Shape) -> Made:
    return staged(ctx, ((0, True), (1, False)), shapes, (out, True), _convolve(slide_of(ctx, *shapes)))


def _input_made(ctx: BuildContext, shapes: Sequence[Shape], out: Shape) -> Made:
    slide = slide_of(ctx, out, shapes[1])
    check_fits(ctx, slide, shapes[1][-2], shapes[2], _outputs(slide))
    return staged(ctx, ((1, False), (2, True)), shapes, (out, True), _input(slide))


def _filter_made(ctx: BuildContext, shapes: Sequence[Shape], out: Shape) -> Made:
    slide = slide_of(ctx, shapes[0], out)
    check_fits(ctx, slide, out[-2], shapes[2], _outputs(slide))
    return staged(ctx, ((0, True), (2, True)), shapes, (out, False), _filter(slide))


def _output(ctx: BuildContext, x: Any, w: Any) -> Shape:
    slide = slide_of(ctx, x.shape, w.shape)
    if first_spatial(ctx.attr("data_format")) == 1:
        return (slide.batch, *slide.out, _outputs(slide))
    return (slide.batch, _outputs(slide), *slide.out)


KERNELS = [
    KernelDef("DepthwiseConv2dNative", "cpu", bind_sized(_forward_made, _output)),
    KernelDef("DepthwiseConv2dNativeBackpropInput", "cpu", bind_sized(_input_made, sizes_in(0))),
    KernelDef("DepthwiseConv2dNativeBackpropFilter", "cpu", bind_sized(_filter_made, sizes_in(1))),
]
