"""RMS normalisation: a warp or a block has a row. Where anything is float64, everything is computed in float64."""

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
    return source("block.cuh", "rows.cuh", "columns.cuh", "rms_norm.cuh", **types)


@kernel("RMSNorm")
def rms_norm(w: Work) -> None:
    """``(x, gamma) -> (y, inverse)``."""
    x, gamma = w.inputs
    y, inverse = w.output(x.shape), w.output(x.shape[:-1], 1)
    rows, width = inverse.size, x.shape[-1]
    args = (x, gamma, y, inverse, i64(rows), i64(width), f64(w.attr("epsilon")))
    over_rows(w, _source(w, x, gamma), rows, width, "rms_norm_{}", *args)


@kernel("RMSNormGrad")
def rms_norm_grad(w: Work) -> None:
    """``(dy, x, gamma, inverse) -> (dx, dgamma)``."""
    dy, x, gamma, inverse = w.inputs
    dx, to_gamma = w.output(x.shape), w.output(gamma.shape, 1)
    rows, width = math.prod(x.shape[:-1]), x.shape[-1]
    if not width:
        return
    made = _source(w, x, gamma)
    if w.used(0):
        over_rows(w, made, rows, width, "rms_norm_grad_{}", dy, x, gamma, inverse, dx, i64(rows), i64(width))
    if w.used(1):
        size = wide_of(x.dtype, gamma.dtype).size
        parts, count = over_columns(w, made, "rms_norm_factor_parts", (dy, x, inverse), (rows, width, 1), size)
        w.launch(made, "rms_norm_factors", blocks(width), 256, parts, i32(count), to_gamma, i64(width))
