"""Matrix products. Two matrices go to ``numpy.dot``, which calls BLAS with less overhead than ``numpy.matmul``;
batches to matmul.

A transposed operand is handed to BLAS as a view, which it takes without a copy. A product of few rows by a transposed matrix,
as the gradients of recurrent layers are, is computed transposed. float16 and bfloat16 are multiplied
in float32 and rounded once; integers keep their dtype and wrap around.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from graphdock.contracts import ArgInfo, Bound, BuildContext, KernelDef, Scratch, dtypes

from graphdock_cpu.kernels.common import is_half, known

__all__ = ["KERNELS"]

#: A product of 2 to so many rows by a transposed matrix, of more than so many multiplications: OpenBLAS with AVX-512 takes 0.4 (4
#: rows) to 0.9 (64 rows) of the time for the transposed product, with AVX2 as long. Smaller ones it computes without packing.
_FEW_ROWS, _PACKED = 64, 10**6


def _mat_mul(ctx: BuildContext) -> Bound | Callable[..., Any]:
    a, b = ctx.inputs
    ta, tb = bool(ctx.attr("transpose_a")), bool(ctx.attr("transpose_b"))
    matrices = a.shape is not None and b.shape is not None and len(a.shape) == len(b.shape) == 2
    product = np.dot if matrices else np.matmul
    if is_half(a.dtype):
        return _widened(ctx, ta, tb)
    if ctx.fresh:
        return lambda x, y: product(_turn(x, ta), _turn(y, tb))
    if not (ta or tb):
        return product
    if matrices:
        if tb and not ta and a.dtype is dtypes.float32 and known(a.shape) and known(b.shape):
            (rows, inner), columns = a.shape, b.shape[0]
            if 2 <= rows <= _FEW_ROWS and rows * inner * columns > _PACKED:
                return Bound(_transposed_product, scratch=(Scratch(a.dtype, (columns, rows)),))
        return _TURNED_DOT[ta, tb]

    def batched(x: np.ndarray, y: np.ndarray, out: np.ndarray) -> None:
        np.matmul(_turn(x, ta), _turn(y, tb), out)

    return batched


def _turn(x: np.ndarray, transpose: bool) -> np.ndarray:
    return x.swapaxes(-1, -2) if transpose else x


_TURNED_DOT: dict[tuple[bool, bool], Callable[..., Any]] = {
    (True, False): lambda x, y, out: np.dot(x.T, y, out),
    (False, True): lambda x, y, out: np.dot(x, y.T, out),
    (True, True): lambda x, y, out: np.dot(x.T, y.T, out),
}


def _transposed_product(x: np.ndarray, y: np.ndarray, out: np.ndarray, turned: np.ndarray) -> None:
    """x times the transpose of y, by way of its transpose."""
    np.dot(y, x.T, turned)
    np.copyto(out, turned.T)


def _widened(ctx: BuildContext, ta: bool, tb: bool) -> Bound | Callable[..., Any]:
    """Both operands and the product in float32."""
    a, b, out = *ctx.inputs, ctx.outputs[0]
    dtype = out.dtype.np

    def fresh(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.matmul(_turn(x.astype(np.float32), ta), _turn(y.astype(np.float32), tb)).astype(dtype)

    if ctx.fresh:
        return fresh
    if not (known(a.shape) and known(b.shape)):

        def narrow(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> None:
            np.copyto(z, fresh(x, y))

        return narrow

    def compute(
        x: np.ndarray, y: np.ndarray, z: np.ndarray, wide_x: np.ndarray, wide_y: np.ndarray, wide_z: np.ndarray
    ) -> None:
        np.copyto(wide_x, x)
        np.copyto(wide_y, y)
        np.matmul(_turn(wide_x, ta), _turn(wide_y, tb), wide_z)
        np.copyto(z, wide_z, "unsafe")

    return Bound(compute, scratch=tuple(Scratch(dtypes.float32, tuple(i.shape)) for i in (a, b, out)))


def _mat_mul_sum(ctx: BuildContext) -> Bound | Callable[..., Any]:
    """One product of the matrices side by side, which are laid there first."""
    count = ctx.attr("N")
    ta, tb = bool(ctx.attr("transpose_a")), bool(ctx.attr("transpose_b"))
    axis_a, axis_b = -2 if ta else -1, -1 if tb else -2
    a, b, dtype = ctx.inputs[0], ctx.inputs[count], ctx.outputs[0].dtype
    wide = np.dtype(np.float32) if is_half(dtype) else dtype.np

    def fresh(*given: np.ndarray) -> np.ndarray:
        left = np.concatenate(given[:count], axis_a, dtype=wide)
        right = np.concatenate(given[count:], axis_b, dtype=wide)
        return np.asarray(np.matmul(_turn(left, ta), _turn(right, tb)).astype(dtype.np, copy=False))

    if ctx.fresh:
        return fresh
    if is_half(dtype) or not (known(a.shape) and known(b.shape)):
        return lambda *given: np.copyto(given[-1], fresh(*given[:-1]))
    product = np.dot if len(a.shape) == len(b.shape) == 2 else np.matmul

    def joined(*given: np.ndarray) -> None:
        out, left, right = given[2 * count :]
        np.concatenate(given[:count], axis_a, left)
        np.concatenate(given[count : 2 * count], axis_b, right)
        product(_turn(left, ta), _turn(right, tb), out)

    return Bound(joined, scratch=(_side_by_side(a, axis_a, count), _side_by_side(b, axis_b, count)))


def _side_by_side(one: ArgInfo, axis: int, count: int) -> Scratch:
    """Memory for so many matrices of one shape, along an axis."""
    shape = list(one.shape or ())
    shape[axis] *= count  # type: ignore[operator]
    return Scratch(one.dtype, tuple(shape))


KERNELS = [
    KernelDef("MatMul", "cpu", _mat_mul, layout="strided"),
    KernelDef("MatMulSum", "cpu", _mat_mul_sum, layout="strided"),
]
