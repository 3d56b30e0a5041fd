"""Convolutions of images and volumes with their gradients: products of matrices that are gathered as they are loaded.

What a convolution sums lies in no matrix; tiles of one are gathered into shared memory (implicit GEMM). A gradient to a filter has
few results and a long sum, which is cut into parts and joined in order. A window of one element is a plain matrix product.
"""

from __future__ import annotations

import math
from typing import Any

from graphdock.contracts import KernelDef

from graphdock_cuda.compiled import source
from graphdock_cuda.kernel import family
from graphdock_cuda.kernels.matmul import ACTIVATIONS, Product, gemm_of, multiply, parts_of, tile_of
from graphdock_cuda.kernels.sliding import Slide, check_fits, sizes_of, slide_of
from graphdock_cuda.launch import i32, i64
from graphdock_cuda.work import Operand, Work, blocks

__all__ = ["KERNELS", "convolve"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)


def _gathered(
    w: Work,
    entry: str,
    a: Operand,
    b: Operand,
    d: Operand,
    slide: Slide,
    sizes: tuple[int, int, int],
    along: tuple[bool, bool],
    results: tuple[Operand, ...] = (),
    **defines: str,
) -> None:
    """Launch a product of ``source/conv.cuh``.

    Args:
      sizes: of rows, columns and the inner dim. ``along``: whether neighbours of the inner dim are neighbours in memory, of both
        operands. ``results``: what else results are made of; ``defines``: how.
    """
    m, n, k = sizes
    multiprocessors, wide = w.multiprocessors, d.dtype.accumulator
    if k >= 1 << 31 and entry != "conv_filter" or m >= 1 << 31 and entry == "conv_filter":
        raise w.refuse("its filter has 2^31 elements or more")
    tile = tile_of(m, n, wide.size, multiprocessors)
    tiles = -(-m // (16 * tile)) * -(-n // (16 * tile))
    parts = parts_of(tiles, k, multiprocessors)
    made = source(
        "sliding.cuh",
        "complex.cuh",
        "gemm.cuh",
        "conv.cuh",
        f"{entry}.cuh",
        TYPE=w.ctype(d),
        GD_TILE=str(tile),
        GD_A_ALONG=str(int(along[0])),
        GD_B_ALONG=str(int(along[1])),
        **defines,
    )
    packed = slide.packed(slide.outputs)
    sums = w.scratch(wide, (parts, m, n)) if parts > 1 else d
    w.launch(made, entry, (tiles, parts), 256, a, b, d, *results, sums, packed, i64(m), i64(n), i64(k), i32(parts))
    if parts > 1:
        join: tuple[Any, ...] = (sums, d, *results, packed, i64(m), i64(n), i32(parts))
        w.launch(made, f"{entry}_join", blocks(m * n, at_most=1 << 20), 256, *join)


def _plain(w: Work, a: Operand, b: Operand, d: Operand, m: int, n: int, k: int, turn_a: bool, turn_b: bool) -> None:
    """A window of one element: a product of matrices."""
    product = Product(m, n, k, turn_a, turn_b, (), (), (), (m, n))
    gemm = gemm_of(w, product, d.dtype.name)
    if gemm is None or not w.gemm(gemm, a, b, d):
        multiply(w, a, b, d, product)


@kernel("Conv2D", "Conv3D")
def conv(w: Work) -> None:
    """``(input, filter) -> output``."""
    x, f = w.inputs
    slide = slide_of(w, x.shape, f.shape)
    y = w.output(slide.shape(slide.out, slide.outputs))
    if not y.size:
        return
    if slide.pointwise and not slide.first:
        _plain(w, x, f, y, slide.rows, slide.outputs, slide.channels, False, False)
        return
    convolve(w, x, f, y, slide)


def convolve(
    w: Work, x: Operand, f: Operand, y: Operand, slide: Slide, bias: Operand | None = None, activation: str = "none"
) -> None:
    """Launch ``y = activation(conv(x, f) + bias)``; ``activation``: one of ``ACTIVATIONS``."""
    sizes = (slide.rows, slide.outputs, slide.taps * slide.channels)
    results = {"BIAS": str(int(bias is not None)), "ACTIVATION": ACTIVATIONS[activation]}
    along = (not slide.first, False)
    _gathered(w, "conv_forward", x, f, y, slide, sizes, along, (y if bias is None else bias,), **results)


@kernel("Conv2DBackpropInput", "Conv3DBackpropInputV2")
def conv_backprop_input(w: Work) -> None:
    """``(input_sizes, filter, dy) -> dx``."""
    _, f, dy = w.inputs
    shape = sizes_of(w, "input_sizes", dy.rank)
    slide = slide_of(w, shape, f.shape)
    check_fits(w, slide, f.shape[-2], dy.shape, slide.outputs)
    dx = w.output(shape)
    if not slide.outputs:  # nothing arrives
        w.fill(dx)
        return
    if not dx.size:
        return
    if slide.pointwise and not slide.first:
        _plain(w, dy, f, dx, slide.rows, slide.channels, slide.outputs, False, True)
        return
    sizes = (slide.batch * math.prod(slide.size), slide.channels, slide.taps * slide.outputs)
    _gathered(w, "conv_input", f, dy, dx, slide, sizes, (not slide.first, True))


@kernel("Conv2DBackpropFilter", "Conv3DBackpropFilterV2")
def conv_backprop_filter(w: Work) -> None:
    """``(input, filter_sizes, dy) -> dw``."""
    x, _, dy = w.inputs
    shape = sizes_of(w, "filter_sizes", x.rank)
    slide = slide_of(w, x.shape, shape)
    check_fits(w, slide, shape[-2], dy.shape, slide.outputs)
    dw = w.output(shape)
    if not slide.rows:
        w.fill(dw)
        return
    if not dw.size:
        return
    if slide.pointwise and not slide.first:
        _plain(w, x, dy, dw, slide.channels, slide.outputs, slide.rows, True, False)
        return
    sizes = (slide.taps * slide.channels, slide.outputs, slide.rows)
    _gathered(w, "conv_filter", x, dy, dw, slide, sizes, (slide.first, slide.first))
