"""Depthwise convolutions of images with their gradients: each channel on its own."""

from __future__ import annotations

from graphdock.contracts import KernelDef

from graphdock_cuda.compiled import Source, source
from graphdock_cuda.kernel import family
from graphdock_cuda.kernels.columns import LEAST
from graphdock_cuda.kernels.sliding import check_fits, sizes_of, slide_of
from graphdock_cuda.launch import i32, i64
from graphdock_cuda.work import Operand, Work, blocks

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)


def _source(w: Work, x: Operand) -> Source:
    return source("block.cuh", "sliding.cuh", "columns.cuh", "depthwise.cuh", TYPE=w.ctype(x))


@kernel("DepthwiseConv2dNative")
def depthwise(w: Work) -> None:
    """``(input, filter) -> output``."""
    x, f = w.inputs
    slide = slide_of(w, x.shape, f.shape)
    outputs = slide.channels * slide.outputs
    y = w.output(slide.shape(slide.out, outputs))
    if y.size:
        w.launch(_source(w, x), "depthwise_forward", blocks(y.size), 256, x, f, y, slide.packed(outputs), i64(y.size))


@kernel("DepthwiseConv2dNativeBackpropInput")
def depthwise_backprop_input(w: Work) -> None:
    """``(input_sizes, filter, dy) -> dx``."""
    _, f, dy = w.inputs
    shape = sizes_of(w, "input_sizes", dy.rank)
    slide = slide_of(w, shape, f.shape)
    outputs = slide.channels * slide.outputs
    check_fits(w, slide, f.shape[-2], dy.shape, outputs)
    dx = w.output(shape)
    if dx.size:
        w.launch(_source(w, f), "depthwise_input", blocks(dx.size), 256, f, dy, dx, slide.packed(outputs), i64(dx.size))


@kernel("DepthwiseConv2dNativeBackpropFilter")
def depthwise_backprop_filter(w: Work) -> None:
    """``(input, filter_sizes, dy) -> dw``: sums over all positions in parts, joined in order."""
    x, _, dy = w.inputs
    shape = sizes_of(w, "filter_sizes", x.rank)
    slide = slide_of(w, x.shape, shape)
    outputs = slide.channels * slide.outputs
    check_fits(w, slide, shape[-2], dy.shape, outputs)
    dw = w.output(shape)
    if not dw.size:
        return
    across = outputs if slide.first else -(-outputs // 32)
    fill = -(-2 * w.multiprocessors // max(across * slide.taps, 1))
    parts = max(1, min(fill, slide.rows // LEAST, 1024))
    kept = w.scratch(dw.dtype.accumulator, (slide.taps, parts, outputs))
    made = _source(w, x)
    grid = (across, parts, min(slide.taps, 65535))
    w.launch(made, "depthwise_filter", grid, 256, x, dy, kept, slide.packed(outputs))
    w.launch(made, "depthwise_filter_join", blocks(dw.size), 256, kept, dw, i32(parts), i64(outputs), i64(dw.size))
