"""Normalisation: of local responses and of batches.

Statistics of a batch come from parts of it, each with its mean and its squared differences to that, joined in a fixed order.
float16 and bfloat16 are computed in float32.
"""

from __future__ import annotations

import math
import struct
from typing import Any

from graphdock.contracts import KernelDef

from graphdock_cuda.compiled import Source, source
from graphdock_cuda.kernel import family
from graphdock_cuda.kernels.columns import over_columns, wide_of
from graphdock_cuda.launch import Param, f64, i32, i64, raw
from graphdock_cuda.work import Operand, Work, blocks

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)


def _response(w: Work, channels: int) -> Param:
    return raw(struct.pack("<2q3d", channels, w.attr("depth_radius"), w.attr("bias"), w.attr("alpha"), w.attr("beta")))


@kernel("LRN")
def lrn(w: Work) -> None:
    x = w.input(0)
    y = w.output(x.shape)
    if x.size:
        made = source("lrn.cuh", TYPE=w.ctype(x))
        w.launch(made, "lrn_forward", blocks(x.size), 256, x, y, i64(x.size), _response(w, x.shape[-1]))


@kernel("LRNGrad")
def lrn_grad(w: Work) -> None:
    """``g s^-b - 2 a b x W(g y / s)``: what the neighbours need is computed once."""
    g, x, y = w.inputs
    dx = w.output(x.shape)
    if not x.size:
        return
    made, grid, n = source("lrn.cuh", TYPE=w.ctype(x)), blocks(x.size), i64(x.size)
    shares, own = (w.scratch(x.dtype.accumulator, x.shape) for _ in range(2))
    w.launch(made, "lrn_shares", grid, 256, g, x, y, shares, own, n, _response(w, x.shape[-1]))
    w.launch(made, "lrn_gather", grid, 256, x, shares, own, dx, n, _response(w, x.shape[-1]))


class _Batch:
    """A batch as [batch, channels, inner], and the source of its kernels."""

    def __init__(self, w: Work, x: Operand, statistics: Operand, name: str) -> None:
        self.wide = wide_of(x.dtype, statistics.dtype)
        first = w.attr("data_format").startswith("NC")
        self.channels = x.shape[1] if first else x.shape[-1]
        self.inner = math.prod(x.shape[2:]) if first else 1
        self.batch = x.shape[0] if first else math.prod(x.shape[:-1])
        self.dims = (self.batch, self.channels, self.inner)
        self.layout = "first" if first and self.inner != 1 else "last"
        types = {"TYPE": w.ctype(x), "STATISTICS": w.ctype(statistics), "WIDE": w.ctype(self.wide)}
        self.source: Source = source("block.cuh", "columns.cuh", name, **types)


@kernel("FusedBatchNorm")
def fused_batch_norm(w: Work) -> None:
    """``(x, scale, offset, mean, variance) -> (y, mean, unbiased variance, mean, variance)``."""
    x, scale, offset, mean, variance = w.inputs
    b = _Batch(w, x, scale, "batch_norm.cuh")
    y = w.output(x.shape)
    vectors = [w.output((b.channels,), i) for i in range(1, 5)]
    if not b.channels:
        return
    factors = w.scratch(b.wide, (2, b.channels))
    grid = blocks(b.channels)
    rest: tuple[Any, ...] = (*vectors, factors, i64(b.channels), f64(w.attr("epsilon")))
    if w.attr("is_training"):
        parts, count = over_columns(w, b.source, f"batch_norm_moments_{b.layout}", (x,), b.dims, 2 * b.wide.size + 8)
        w.launch(b.source, "batch_norm_statistics", grid, 256, parts, i32(count), scale, *rest)
    else:
        w.launch(b.source, "batch_norm_given", grid, 256, scale, mean, variance, *rest)
    if x.size:
        sizes = (i64(x.size), i64(b.channels), i64(b.inner))
        w.launch(b.source, "batch_norm_apply", blocks(x.size), 256, x, factors, offset, y, *sizes)


@kernel("FusedBatchNormGrad")
def fused_batch_norm_grad(w: Work) -> None:
    """``(dy, x, scale, mean, variance) -> (dx, dscale, doffset)``."""
    dy, x, scale, mean, variance = w.inputs
    b = _Batch(w, x, scale, "batch_norm_grad.cuh")
    dx, to_scale, to_offset = w.output(x.shape), w.output((b.channels,), 1), w.output((b.channels,), 2)
    if not b.channels:
        return
    factors, training = w.scratch(b.wide, (3, b.channels)), i32(w.attr("is_training"))
    entry = f"batch_norm_grad_sums_{b.layout}"
    parts, count = over_columns(w, b.source, entry, (dy, x, mean), b.dims, 2 * b.wide.size)
    vectors = (parts, i32(count), scale, variance, to_scale, to_offset, factors)
    sizes = (i64(b.channels), i64(b.batch * b.inner), f64(w.attr("epsilon")))
    w.launch(b.source, "batch_norm_grad_vectors", blocks(b.channels), 256, *vectors, *sizes, training)
    if x.size:
        apply = (dy, x, mean, factors, dx, i64(x.size), i64(b.channels), i64(b.inner), training)
        w.launch(b.source, "batch_norm_grad_apply", blocks(x.size), 256, *apply)
