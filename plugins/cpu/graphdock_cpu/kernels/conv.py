"""Convolutions of images and volumes with their gradients: which method a layer takes, by the facts of its shapes.

Winograd saves more than half of the multiplications, and its transforms cost some passes over input, output and filter: it
pays from 128 channels on, and where the filter is small beside the maps. What is copied for a gradient to the input by im2col
has the output's channels, for col2im the input's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphdock.contracts import BuildContext, KernelDef, Scratch

from graphdock_cpu.kernels import conv_im2col as _im2col
from graphdock_cpu.kernels import conv_winograd as _winograd
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

__all__ = ["FILTER", "FORWARD", "INPUT", "KERNELS", "choose"]

#: Channels of input and output, and positions of the window, from which on Winograd's transforms pay.
WINOGRAD_CHANNELS, WINOGRAD_ROWS = 128, 512

Rule = tuple[str, Callable[[Slide], bool], Callable[[Slide], Method]]


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
    """The gradient to the input is a convolution itself, and copies no more than col2im adds up."""
    inside = all(b < span for b, span in zip(slide.before, slide.span, strict=True))
    return slide.dense and inside and (slide.outputs < 2 * slide.channels or slide.channels < 64)


def _always(slide: Slide) -> bool:
    return True


#: Method of a layer: the first whose condition holds.
FORWARD: tuple[Rule, ...] = (
    ("dot", _pointwise, _im2col.dot),
    ("winograd", _square, _winograd.winograd),
    ("im2col", _always, _im2col.im2col),
)
INPUT: tuple[Rule, ...] = (
    ("dot", _pointwise, _im2col.dot_input),
    ("winograd", _square, _winograd.winograd_input),
    ("flipped", _turns, _im2col.flipped),
    ("col2im", _always, _im2col.col2im),
)
FILTER: tuple[Rule, ...] = (
    ("dot", _pointwise, _im2col.dot_filter),
    ("winograd", _square, _winograd.winograd_filter),
    ("im2col", _always, _im2col.im2col_filter),
)


def choose(rules: Sequence[Rule], slide: Slide) -> tuple[str, Method]:
    """Name and method of the first rule that holds."""
    for name, holds, make in rules:
        if holds(slide):
            return name, make(slide)
    raise AssertionError("the last rule holds always")


Made = tuple[Callable[..., Any], tuple[Scratch, ...]]


def _forward(ctx: BuildContext, shapes: Sequence[Shape], out: Shape) -> Made:
    slide = slide_of(ctx, *shapes)
    return staged(ctx, ((0, True), (1, False)), shapes, (out, True), choose(FORWARD, slide)[1])


def _input(ctx: BuildContext, shapes: Sequence[Shape], out: Shape) -> Made:
    slide = slide_of(ctx, out, shapes[1])
    check_fits(ctx, slide, shapes[1][-2], shapes[2], slide.outputs)
    return staged(ctx, ((1, False), (2, True)), shapes, (out, True), choose(INPUT, slide)[1])


def _filter(ctx: BuildContext, shapes: Sequence[Shape], out: Shape) -> Made:
    slide = slide_of(ctx, shapes[0], out)
    check_fits(ctx, slide, out[-2], shapes[2], slide.outputs)
    return staged(ctx, ((0, True), (2, True)), shapes, (out, False), choose(FILTER, slide)[1])


def _output(ctx: BuildContext, x: Any, w: Any) -> Shape:
    slide = slide_of(ctx, x.shape, w.shape)
    if first_spatial(ctx.attr("data_format")) == 1:
        return (slide.batch, *slide.out, slide.outputs)
    return (slide.batch, slide.outputs, *slide.out)


_FORWARD, _INPUT, _FILTER = (
    bind_sized(_forward, _output),
    bind_sized(_input, sizes_in(0)),
    bind_sized(_filter, sizes_in(1)),
)

KERNELS = [
    KernelDef("Conv2D", "cpu", _FORWARD),
    KernelDef("Conv2DBackpropInput", "cpu", _INPUT),
    KernelDef("Conv2DBackpropFilter", "cpu", _FILTER),
    KernelDef("Conv3D", "cpu", _FORWARD),
    KernelDef("Conv3DBackpropInputV2", "cpu", _INPUT),
    KernelDef("Conv3DBackpropFilterV2", "cpu", _FILTER),
]
