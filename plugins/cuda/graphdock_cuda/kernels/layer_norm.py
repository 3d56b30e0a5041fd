"""Layer normalisation: a warp or a block has a row. Where gamma is float64, everything is computed in float64."""

from __future__ import annotations

import math

from graphdock.contracts import KernelDef

from graphdock_cuda.compiled import Source, source
from graphdock_cuda.kernel import family
from graphdock_cuda.kernels.columns import over_columns, wide_of
from graphdock_cuda.kernels.rows import over_rows
from graphdock_cuda.launch import f64, i32, i64
from graphdock_cuda.work import Operand, Work, blocks

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)


def _source(w: Work, x: Operand, gamma: Operand) -> Source:
    types = {"TYPE": w.ctype(x), "STATISTICS": w.ctype(gamma), "WIDE": w.ctype(wide_of(x.dtype, gamma.dtype))}
    return source("block.cuh", "rows.cuh", "columns.cuh", "layer_norm.cuh", **types)


def _split(w: Work, x: Operand) -> tuple[tuple[int, ...], int]:
    """The dims before a row, and the elements of a row."""
    begin = w.attr("begin_norm_axis") % x.rank
    return x.shape[:begin], math.prod(x.shape[begin:])


@kernel("LayerNorm")
def layer_norm(w: Work) -> None:
    """``(x, gamma, beta) -> (y, mean, inverse)``."""
    x, gamma, beta = w.inputs
    outer, width = _split(w, x)
    y, mean, inverse = w.output(x.shape), w.output(outer, 1), w.output(outer, 2)
    args = (x, gamma, beta, y, mean, inverse, i64(mean.size), i64(width), f64(w.attr("epsilon")))
    over_rows(w, _source(w, x, gamma), mean.size, width, "layer_norm_{}", *args)


@kernel("LayerNormGrad")
def layer_norm_grad(w: Work) -> None:
    """``(dy, x, gamma, mean, inverse) -> (dx, dgamma, dbeta)``."""
    dy, x, gamma, mean, inverse = w.inputs
    outer, width = _split(w, x)
    dx, to_gamma, to_beta = w.output(x.shape), w.output(gamma.shape, 1), w.output(gamma.shape, 2)
    rows = math.prod(outer)
    if not width:
        return
    made = _source(w, x, gamma)
    over_rows(w, made, rows, width, "layer_norm_grad_{}", dy, x, gamma, mean, inverse, dx, i64(rows), i64(width))
    wide = wide_of(x.dtype, gamma.dtype)
    kept = (dy, x, mean, inverse)
    parts, count = over_columns(w, made, "layer_norm_vector_parts", kept, (rows, width, 1), 2 * wide.size)
    w.launch(made, "layer_norm_vectors", blocks(width), 256, parts, i32(count), to_gamma, to_beta, i64(width))
