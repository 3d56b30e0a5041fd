"""Convolutions of images and volumes with their gradients: which method a layer takes, by the facts of its shapes.

Winograd saves more than half of the multiplications, and its transforms cost some passes over input, output and filter: it
pays from 128 channels on, and where the filter is small beside the maps. Of a gradient to the input, im2col copies windows of the
input's positions and the output's channels, col2im adds up those of the output's positions and the input's channels; where the
window moves by several elements, phases copy windows as im2col does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from graphdock.contracts import BuildContext, KernelDef

from graphdock_cpu.kernels import conv_im2col as _im2col
from graphdock_cpu.kernels import conv_phases as _phases
from graphdock_cpu.kernels import conv_winograd as _winograd
from graphdock_cpu.kernels.conv_im2col import Product
from graphdock_cpu.kernels.sharing import (
    FLOPS,
    SUM,
    Axes,
    Leading,
    Made,
    Shared,
    dot,
    on_one_thread,
    product,
    share,
    share_count,
)
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

__all__ = ["FILTER", "FORWARD", "INPUT", "KERNELS", "Way", "choose", "maker"]

#: Channels of input and output, and positions of the window, from which on Winograd's transforms pay.
WINOGRAD_CHANNELS, WINOGRAD_ROWS = 128, 512
#: Channels up to which they are copied or added one by one, where that is less work.
FEW_CHANNELS = 16


@dataclass(frozen=True)
class Way:
    """A method of convolution.

    Attributes:
      applies: whether it computes such a layer, and is worth to be thought of.
      make: the method of a layer.
      work: what it costs, in elements of a long copy.
      splits: whether threads share a single image with one waking or two, and need BLAS to keep to one.
    """

    name: str
    applies: Callable[[Slide], bool]
    make: Callable[..., Method]
    work: Callable[[Slide], float]
    splits: bool = False


def _pointwise(slide: Slide) -> bool:
    """A 1x1 window that meets every element: the input is the matrix already."""
    return slide.taps == 1 and slide.dense and slide.size == slide.out and not any(slide.before)


def _square(slide: Slide) -> bool:
    """3x3, one element at a time, with channels and maps enough; padded by less than the window."""
    return (
        slide.window == (3, 3)
        and slide.dense
        and set(slide.dilation) == {1}
        and max(slide.before) <= 2
        and min(slide.channels, slide.outputs) >= WINOGRAD_CHANNELS
        and slide.rows >= WINOGRAD_ROWS
    )


def _turns(slide: Slide) -> bool:
    """The gradient to the input is a convolution itself."""
    return slide.dense and slide.outputs > 0 and all(b < span for b, span in zip(slide.before, slide.span, strict=True))


def _strides(slide: Slide) -> bool:
    """The gradient to the input is a convolution of all its phases."""
    return (
        not slide.dense
        and set(slide.dilation) == {1}
        and min(slide.outputs, slide.channels, *slide.size) > 0
        and all(b < k for b, k in zip(slide.before, slide.window, strict=True))
    )


def _always(slide: Slide) -> bool:
    return True


def _few_channels(slide: Slide) -> bool:
    """So few that it may pay to copy them one by one."""
    return slide.channels <= FEW_CHANNELS


#: Ways of a layer, of which the one of least work is taken.
FORWARD: tuple[Way, ...] = (
    Way("dot", _pointwise, _im2col.dot, _im2col.dot_work, splits=True),
    Way("winograd", _square, _winograd.winograd, _winograd.winograd_work),
    Way("im2col", _always, _im2col.im2col, _im2col.im2col_work, splits=True),
    Way("planes", _few_channels, partial(_im2col.im2col, planes=True), _im2col.im2col_planes_work, splits=True),
)
INPUT: tuple[Way, ...] = (
    Way("dot", _pointwise, _im2col.dot_input, _im2col.dot_work, splits=True),
    Way("winograd", _square, _winograd.winograd_input, _winograd.winograd_work),
    Way("flipped", _turns, _im2col.flipped, _im2col.flipped_work, splits=True),
    Way("phases", _strides, _phases.phases, _phases.phases_work, splits=True),
    Way("col2im", _always, _im2col.col2im, _im2col.col2im_work),
    Way("planes", _few_channels, partial(_im2col.col2im, planes=True), _im2col.col2im_planes_work),
)
FILTER: tuple[Way, ...] = (
    Way("dot", _pointwise, _im2col.dot_filter, _im2col.dot_work, splits=True),
    Way("winograd", _square, _winograd.winograd_filter, _winograd.winograd_work),
    Way("im2col", _always, _im2col.im2col_filter, _im2col.im2col_work),
    Way("planes", _few_channels, partial(_im2col.im2col_filter, planes=True), _im2col.im2col_planes_work),
)


def choose(ways: Sequence[Way], slide: Slide) -> Way:
    """The way of least work, of those that apply."""
    return min((way for way in ways if way.applies(slide)), key=lambda way: way.work(slide))


def maker(ways: Sequence[Way], slide: Slide, filter_at: int) -> Callable[[Slide, Product], Method]:
    """Maker of the chosen method, for all images or some; where the window is larger than the maps, for a part of it.

    Args:
      filter_at: which of the method's three tensors is the filter; the last one is its result.
    """
    taps = slide.met
    make = choose(ways, slide.part(taps)).make
    if slide.part(taps).window == slide.window:
        return make

    def make_part(slide: Slide, product: Product) -> Method:
        part = slide.part(taps)
        compute, scratch = make(part, product)

        def run(*args: Any) -> None:
            tensors, few = list(args[:3]), args[3]
            whole, tensors[filter_at] = tensors[filter_at], few
            if filter_at < 2:
                np.copyto(few, whole[taps])
            compute(*tensors, *args[4:])
            if filter_at == 2:
                whole.fill(0)
                whole[taps] = few

        return run, ((*part.window, part.channels, part.outputs), *scratch)

    return make_part


def _work(slide: Slide) -> float:
    """In elements of a cheap pass."""
    return 2 * slide.rows * slide.taps * slide.channels * slide.outputs / FLOPS


def _made(
    ctx: BuildContext,
    axes: Axes,
    shapes: Sequence[Shape],
    slide: Slide,
    some: Callable[[Sequence[Shape], Product], Made],
    ways: Sequence[Way],
) -> Made:
    """A kernel that threads share by images; of a single image they share the products."""
    count = share_count(ctx, _work(slide), products=True)
    if count > 1 and slide.batch < 2:
        compute, scratch = some(shapes, product(count))
        return Leading(compute) if choose(ways, slide.part(slide.met)).splits else compute, scratch
    compute, scratch = share(ctx, axes, shapes, lambda part: some(part, dot), _work(slide), products=True)
    if isinstance(compute, Shared):
        compute.leads = True
    return compute, scratch


def _forward(ctx: BuildContext, shapes: Sequence[Shape], out: Shape) -> Made:
    slide = slide_of(ctx, *shapes)
    make = maker(FORWARD, slide, 1)

    def some(part: Sequence[Shape], product: Product) -> Made:
        x, w, y = part
        return staged(ctx, ((0, True), (1, False)), (x, w), (y, True), make(slide_of(ctx, x, w), product))

    return _made(ctx, (0, None, 0), (*shapes, out), slide, some, FORWARD)


def _input(ctx: BuildContext, shapes: Sequence[Shape], out: Shape) -> Made:
    slide = slide_of(ctx, out, shapes[1])
    check_fits(ctx, slide, shapes[1][-2], shapes[2], slide.outputs)
    make = maker(INPUT, slide, 0)

    def some(part: Sequence[Shape], product: Product) -> Made:
        *given, dx = part
        return staged(ctx, ((1, False), (2, True)), given, (dx, True), make(slide_of(ctx, dx, given[1]), product))

    return _made(ctx, (None, None, 0, 0), (*shapes, out), slide, some, INPUT)


def _filter(ctx: BuildContext, shapes: Sequence[Shape], out: Shape) -> Made:
    slide = slide_of(ctx, shapes[0], out)
    check_fits(ctx, slide, out[-2], shapes[2], slide.outputs)
    make = maker(FILTER, slide, 2)

    def some(part: Sequence[Shape], product: Product) -> Made:
        *given, dw = part
        return staged(ctx, ((0, True), (2, True)), given, (dw, False), make(slide_of(ctx, given[0], dw), product))

    return _made(ctx, (0, None, 0, SUM), (*shapes, out), slide, some, FILTER)


def _output(ctx: BuildContext, x: Any, w: Any) -> Shape:
    slide = slide_of(ctx, x.shape, w.shape)
    if first_spatial(ctx.attr("data_format")) == 1:
        return (slide.batch, *slide.out, slide.outputs)
    return (slide.batch, slide.outputs, *slide.out)


_FORWARD, _INPUT, _FILTER = (
    on_one_thread(bind_sized(_forward, _output)),
    on_one_thread(bind_sized(_input, sizes_in(0))),
    on_one_thread(bind_sized(_filter, sizes_in(1))),
)

KERNELS = [
    KernelDef("Conv2D", "cpu", _FORWARD),
    KernelDef("Conv2DBackpropInput", "cpu", _INPUT),
    KernelDef("Conv2DBackpropFilter", "cpu", _FILTER),
    KernelDef("Conv3D", "cpu", _FORWARD),
    KernelDef("Conv3DBackpropInputV2", "cpu", _INPUT),
    KernelDef("Conv3DBackpropFilterV2", "cpu", _FILTER),
]
