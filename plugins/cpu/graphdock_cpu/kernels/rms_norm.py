"""Kernels of RMS normalisation, over blocks of rows that stay in cache.

Sums are products with ones, as in layer normalisation. Narrow floats are computed in float32; where anything is float64, all is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from graphdock.contracts import BuildContext, KernelDef, Scratch, dtypes
from numpy import add, copyto, divide, dot, multiply, sqrt, subtract

from graphdock_cpu.kernels.shaped import Made, Shape, bind

__all__ = ["KERNELS"]

#: Elements of a block that stays in cache.
BLOCK = 65536


class _Rows:
    """A tensor as ``[rows, width]``, in blocks of whole rows."""

    def __init__(self, shape: Shape, wide: np.dtype[Any]) -> None:
        self.rows, self.width = math.prod(shape[:-1]), shape[-1]
        self.step = min(max(1, BLOCK // max(self.width, 1)), self.rows)
        self.pieces = [slice(i, min(i + self.step, self.rows)) for i in range(0, self.rows, max(self.step, 1))]
        self.ones = np.ones(self.width, wide)
        self.count = wide.type(self.width)
        self.block = Scratch(dtypes.as_dtype(wide), (self.step, self.width))

    def matrix(self, x: Any) -> Any:
        return x.reshape(self.rows, self.width)


def _common(ctx: BuildContext, statistics: dtypes.DType) -> dtypes.DType:
    """What rows and statistics are computed in."""
    return dtypes.float64 if dtypes.float64 in (ctx.inputs[0].dtype, statistics) else dtypes.float32


def _rms_norm(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    wide = _common(ctx, ctx.inputs[1].dtype)
    rows = _Rows(shapes[0], wide.np)
    epsilon, one = wide.np.type(ctx.attr("epsilon")), np.ones((), wide.np)
    direct = ctx.inputs[0].dtype is wide
    roots, factors = np.empty(rows.step, wide.np), np.empty(rows.width, wide.np)

    def compute(x: Any, gamma: Any, y: Any, inverse: Any, squares: Any, thick: Any) -> None:
        x, y, inverse = rows.matrix(x), rows.matrix(y), inverse.reshape(rows.rows)
        if not rows.width:
            inverse.fill(np.nan)
            return
        copyto(factors, gamma)
        for piece in rows.pieces:
            count = piece.stop - piece.start
            block, normal, root = x[piece], squares[:count], roots[:count]
            if not direct:
                copyto(thick[:count], block)
                block = thick[:count]
            multiply(block, block, normal)
            dot(normal, rows.ones, root)
            divide(root, rows.count, root)
            add(root, epsilon, root)
            sqrt(root, root)
            divide(one, root, root)
            multiply(block, root[:, None], normal)
            multiply(normal, factors, y[piece], casting="same_kind")
            copyto(inverse[piece], root, "same_kind")

    return compute, (rows.block, Scratch(wide, (0,) if direct else rows.block.shape))


def _rms_norm_grad(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    """``dx = i (h - n sum(h n) / width)`` with h = dy gamma, n = x i and i = inverse."""
    wide = _common(ctx, ctx.inputs[2].dtype)
    rows = _Rows(shapes[1], wide.np)
    each, roots, slopes = np.ones(rows.step, wide.np), np.empty(rows.step, wide.np), np.empty(rows.step, wide.np)
    products, part, factors = (np.empty(rows.width, wide.np) for _ in range(3))

    def compute(
        dy: Any, x: Any, gamma: Any, inverse: Any, dx: Any, to_gamma: Any, grads: Any, normals: Any, spare: Any
    ) -> None:
        dy, x, dx, inverse = rows.matrix(dy), rows.matrix(x), rows.matrix(dx), inverse.reshape(rows.rows)
        copyto(factors, gamma)
        products.fill(0)
        for piece in rows.pieces if rows.width else ():
            count = piece.stop - piece.start
            g, n, t, root, slope = grads[:count], normals[:count], spare[:count], roots[:count], slopes[:count]
            copyto(root, inverse[piece])
            copyto(g, dy[piece])
            multiply(x[piece], root[:, None], n)
            multiply(g, n, t)
            dot(each[:count], t, part)
            add(products, part, products)
            dot(t, factors, slope)
            divide(slope, rows.count, slope)
            multiply(n, slope[:, None], n)
            multiply(g, factors, g)
            subtract(g, n, g)
            multiply(g, root[:, None], dx[piece], casting="same_kind")
        copyto(to_gamma, products, "same_kind")

    return compute, (rows.block,) * 3


def _outputs(ctx: BuildContext, shapes: Sequence[Shape]) -> Sequence[Shape]:
    return [shapes[0], shapes[0][:-1]]


def _grad_outputs(ctx: BuildContext, shapes: Sequence[Shape]) -> Sequence[Shape]:
    return [shapes[1], shapes[2]]


KERNELS = [
    KernelDef("RMSNorm", "cpu", bind(_rms_norm, _outputs)),
    KernelDef("RMSNormGrad", "cpu", bind(_rms_norm_grad, _grad_outputs)),
]
