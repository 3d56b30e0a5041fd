"""Kernels of layer normalisation, over blocks of rows that stay in cache.

Sums over a row and over the rows of a block are products with ones, which cost a fraction of NumPy's reductions. Narrow floats are
computed in float32; where gamma is float64, everything is in float64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from graphdock.contracts import BuildContext, KernelDef, Scratch, dtypes
from numpy import add, copyto, divide, dot, multiply, sqrt, subtract

from graphdock_cpu.kernels.shaped import Made, Shape, bind
from graphdock_cpu.kernels.sharing import Rows

__all__ = ["KERNELS"]

#: Elements of a block that stays in cache.
BLOCK = 65536


class _Rows:
    """A tensor as ``[rows, width]``, in blocks of whole rows; what has a number per row is kept for one block at a time."""

    def __init__(self, shape: Shape, begin: int, wide: np.dtype[Any], vectors: int) -> None:
        begin %= len(shape)
        self.outer, self.inner = shape[:begin], shape[begin:]
        self.rows, self.width = math.prod(self.outer), math.prod(self.inner)
        self.step = min(max(1, BLOCK // max(self.width, 1)), self.rows)
        self.pieces = [slice(i, min(i + self.step, self.rows)) for i in range(0, self.rows, max(self.step, 1))]
        self.ones = np.ones(self.width, wide)
        self.each = np.ones(self.step, wide)
        self.count = wide.type(self.width)
        self.vectors = [np.empty(self.step, wide) for _ in range(vectors)]

    def matrix(self, x: Any) -> Any:
        return x.reshape(self.rows, self.width)


def _common(ctx: BuildContext, statistics: dtypes.DType) -> dtypes.DType:
    """What rows and statistics are computed in."""
    return dtypes.float64 if dtypes.float64 in (ctx.inputs[0].dtype, statistics) else dtypes.float32


def _layer_norm(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    x_dtype, statistics = (ctx.inputs[i].dtype for i in (0, 1))
    wide = _common(ctx, statistics)
    rows = _Rows(shapes[0], ctx.attr("begin_norm_axis"), wide.np, 2)
    direct, same = x_dtype is wide, statistics is wide
    epsilon, one = wide.np.type(ctx.attr("epsilon")), np.ones((), wide.np)
    gammas, betas = (np.empty(rows.width, wide.np) for _ in range(2))

    def compute(x: Any, gamma: Any, beta: Any, y: Any, mean: Any, inverse: Any, centred: Any, thick: Any) -> None:
        x, y, mean, inverse = rows.matrix(x), rows.matrix(y), mean.reshape(rows.rows), inverse.reshape(rows.rows)
        if not rows.width:
            mean.fill(np.nan)
            inverse.fill(np.nan)
            return
        gamma, beta = gamma.reshape(rows.width), beta.reshape(rows.width)
        if not same:
            copyto(gammas, gamma)
            copyto(betas, beta)
            gamma, beta = gammas, betas
        for piece in rows.pieces:
            count = piece.stop - piece.start
            c, block = centred[:count], x[piece]
            target = y[piece] if direct else thick[:count]
            average, root = (v[:count] for v in rows.vectors)
            if not direct:
                copyto(c, block)
                block = c
            dot(block, rows.ones, average)
            divide(average, rows.count, average)
            subtract(block, average[:, None], c)
            multiply(c, c, target)
            dot(target, rows.ones, root)
            divide(root, rows.count, root)
            add(root, epsilon, root)
            sqrt(root, root)
            divide(one, root, root)
            multiply(c, root[:, None], c)
            multiply(c, gamma, c)
            add(c, beta, y[piece], casting="same_kind")
            copyto(mean[piece], average, "same_kind")
            copyto(inverse[piece], root, "same_kind")

    block = (rows.step, rows.width)
    return compute, (Scratch(wide, block), Scratch(wide, (0,) if direct else block))


def _layer_norm_grad(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    """``dx = i (h - sum h / n - c i^2 sum(h c) / n)`` with h = dy gamma, c = x - mean and i = inverse."""
    statistics = ctx.inputs[2].dtype
    wide = _common(ctx, statistics)
    rows = _Rows(shapes[1], ctx.attr("begin_norm_axis"), wide.np, 4)
    totals, products, part, factors = (np.empty(rows.width, wide.np) for _ in range(4))

    def compute(
        dy: Any,
        x: Any,
        gamma: Any,
        mean: Any,
        inverse: Any,
        dx: Any,
        to_gamma: Any,
        to_beta: Any,
        grads: Any,
        normals: Any,
        spare: Any,
    ) -> None:
        dy, x, dx = (rows.matrix(a) for a in (dy, x, dx))
        mean, inverse = mean.reshape(rows.rows), inverse.reshape(rows.rows)
        copyto(factors, gamma.reshape(rows.width))
        totals.fill(0)
        products.fill(0)
        for piece in rows.pieces if rows.width else ():
            count = piece.stop - piece.start
            g, c, t, each = grads[:count], normals[:count], spare[:count], rows.each[:count]
            average, root, sums, slopes = (v[:count] for v in rows.vectors)
            copyto(average, mean[piece])
            copyto(root, inverse[piece])
            copyto(g, dy[piece])
            copyto(c, x[piece])
            subtract(c, average[:, None], c)
            multiply(c, root[:, None], c)
            dot(each, g, part)
            add(totals, part, totals)
            multiply(g, c, t)
            dot(each, t, part)
            add(products, part, products)
            multiply(g, factors, g)
            dot(g, rows.ones, sums)
            divide(sums, rows.count, sums)
            dot(t, factors, slopes)
            divide(slopes, rows.count, slopes)
            multiply(c, slopes[:, None], c)
            subtract(g, c, g)
            subtract(g, sums[:, None], g)
            multiply(g, root[:, None], dx[piece], casting="same_kind")
        copyto(to_gamma.reshape(rows.width), products, "same_kind")
        copyto(to_beta.reshape(rows.width), totals, "same_kind")

    return compute, (Scratch(wide, (rows.step, rows.width)),) * 3


def _outputs(ctx: BuildContext, shapes: Sequence[Shape]) -> Sequence[Shape]:
    x = shapes[0]
    outer = x[: ctx.attr("begin_norm_axis") % len(x)]
    return [x, outer, outer]


def _outer(ctx: BuildContext, shapes: Sequence[Shape]) -> int:
    """How many dims are not normalised; the first input of both kernels has the shape of x."""
    return int(ctx.attr("begin_norm_axis") % len(shapes[0]))


def _grad_outputs(ctx: BuildContext, shapes: Sequence[Shape]) -> Sequence[Shape]:
    return [shapes[1], shapes[2], shapes[2]]


KERNELS = [
    KernelDef("LayerNorm", "cpu", bind(_layer_norm, _outputs, Rows("r..rrr", 8, _outer))),
    KernelDef("LayerNormGrad", "cpu", bind(_layer_norm_grad, _grad_outputs, Rows("rr.rrr++", 12, _outer))),
]
