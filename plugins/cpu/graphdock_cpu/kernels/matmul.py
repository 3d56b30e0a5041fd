"""Matrix products. Two matrices go to ``numpy.dot``, which calls BLAS with less overhead than ``numpy.matmul``;
batches to matmul.

A transposed operand is handed to BLAS as a view, which it takes without a copy. float16 and bfloat16 are multiplied
in float32 and rounded once; integers keep their dtype and wrap around.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from graphdock.contracts import Bound, BuildContext, KernelDef, Scratch, dtypes

from graphdock_cpu.kernels.common import is_half, known

__all__ = ["KERNELS"]


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


KERNELS = [KernelDef("MatMul", "cpu", _mat_mul, layout="strided")]
