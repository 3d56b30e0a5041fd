"""Morphological dilation of images, and its gradients: gathered by the element that makes each window's maximum."""

from __future__ import annotations

from graphdock.contracts import KernelDef, dtypes

from graphdock_cuda.compiled import Source, source
from graphdock_cuda.kernel import family
from graphdock_cuda.kernels.sliding import Slide, check_fits, slide_of
from graphdock_cuda.launch import i32, i64
from graphdock_cuda.work import Operand, Work, blocks

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)


def _slide(w: Work, x: Operand, f: Operand) -> tuple[Slide, Source]:
    slide = slide_of(w, x.shape, (*f.shape, 1), "rates")
    return slide, source("block.cuh", "sliding.cuh", "dilation.cuh", TYPE=w.ctype(x))


@kernel("Dilation2D")
def dilation(w: Work) -> None:
    """``(x, filter) -> y``."""
    x, f = w.inputs
    slide, made = _slide(w, x, f)
    y = w.output(slide.shape(slide.out, slide.channels))
    if y.size:
        w.launch(made, "dilation", blocks(y.size), 256, x, f, y, i64(y.size), slide.packed(slide.channels))


def _winners(w: Work, x: Operand, f: Operand, dy: Operand, slide: Slide, made: Source) -> Operand:
    check_fits(w, slide, f.shape[-1], dy.shape, slide.channels)
    found = w.scratch(dtypes.int32, dy.shape)
    if dy.size:
        packed = slide.packed(slide.channels)
        w.launch(made, "dilation_winners", blocks(dy.size), 256, x, f, found, i64(dy.size), packed)
    return found


@kernel("Dilation2DBackpropInput")
def dilation_backprop_input(w: Work) -> None:
    """``(x, filter, dy) -> dx``."""
    x, f, dy = w.inputs
    slide, made = _slide(w, x, f)
    dx = w.output(x.shape)
    if dx.size:
        found = _winners(w, x, f, dy, slide, made)
        packed = slide.packed(slide.channels)
        w.launch(made, "dilation_input", blocks(dx.size), 256, found, dy, dx, i64(dx.size), packed)


@kernel("Dilation2DBackpropFilter")
def dilation_backprop_filter(w: Work) -> None:
    """``(x, filter, dy) -> dw``."""
    x, f, dy = w.inputs
    slide, made = _slide(w, x, f)
    dw = w.output(f.shape)
    if dw.size:
        found = _winners(w, x, f, dy, slide, made)
        w.launch(made, "dilation_filter", dw.size, 256, found, dy, dw, i64(slide.rows), slide.packed(slide.channels))


def _pick(w: Work, of_filter: bool) -> None:
    x, f, grad = w.inputs
    slide, made = _slide(w, x, f)
    out = w.output(slide.shape(slide.out, slide.channels))
    if out.size:
        rest = (i64(out.size), i32(of_filter), slide.packed(slide.channels))
        w.launch(made, "dilation_pick", blocks(out.size), 256, x, f, grad, out, *rest)


@kernel("Dilation2DBackpropInputGrad")
def dilation_backprop_input_grad(w: Work) -> None:
    """``(x, filter, grad of x's shape)``: its elements where the windows have their maxima."""
    _pick(w, False)


@kernel("Dilation2DBackpropFilterGrad")
def dilation_backprop_filter_grad(w: Work) -> None:
    """``(x, filter, grad of the filter's shape)``: its elements where the windows have their maxima."""
    _pick(w, True)
