"""Matrix products. Two matrices go to ``numpy.dot``, which calls BLAS with less overhead than ``numpy.matmul``;
batches to matmul.

A transposed operand is handed to BLAS as a view, which it takes without a copy. A product of few rows by a transposed matrix,
as the gradients of recurrent layers are, is computed transposed. float16 and bfloat16 are multiplied
in float32 and rounded once; integers keep their dtype and wrap around.

Products too small for BLAS's threads to pay are computed on the thread that calls (:func:`graphdock_cpu.kernels.sharing.dot`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from graphdock.contracts import ArgInfo, Bound, BuildContext, KernelDef, Scratch, dtypes

from graphdock_cpu.kernels.common import is_half, known
from graphdock_cpu.kernels.sharing import (
    FEW,
    FLOPS,
    SMALL,
    TILE,
    Shared,
    aligned,
    dot,
    matmul,
    on_one_thread,
    pieces,
    product,
    share,
    share_count,
    weight,
)

__all__ = ["KERNELS"]

#: A product of 2 to so many rows by a transposed matrix, of more than so many multiplications: OpenBLAS with AVX-512 takes 0.4 (4
#: rows) to 0.9 (64 rows) of the time for the transposed product, with AVX2 as long. Smaller ones it computes without packing.
_FEW_ROWS, _PACKED = 64, 10**6


def _mat_mul(ctx: BuildContext) -> Bound | Callable[..., Any]:
    a, b = ctx.inputs
    ta, tb = bool(ctx.attr("transpose_a")), bool(ctx.attr("transpose_b"))
    matrices = a.shape is not None and b.shape is not None and len(a.shape) == len(b.shape) == 2
    multiply = _multiply(matrices, a.shape, b.shape, ta, tb)
    if is_half(a.dtype):
        return _widened(ctx, ta, tb)
    if ctx.fresh:
        return lambda x, y: multiply(_turn(x, ta), _turn(y, tb))
    shared = _shared(ctx, a.shape, b.shape, ta, tb)
    few = matrices and tb and not ta and a.dtype is dtypes.float32 and _few_rows(a.shape, b.shape)
    if shared is not None and not few:
        return _turned(shared, ta, tb)
    if not (ta or tb):
        return multiply
    if matrices:
        if few:
            scratch = (Scratch(a.dtype, (b.shape[0], a.shape[0])),)  # type: ignore[index, arg-type]
            return Bound(_transposed_product if shared is None else _shared_transposed(shared.count), scratch=scratch)
        return _TURNED[ta, tb](multiply)

    def batched(x: np.ndarray, y: np.ndarray, out: np.ndarray) -> None:
        multiply(_turn(x, ta), _turn(y, tb), out)

    return batched


def _multiply(matrices: bool, a: Any, b: Any, ta: bool, tb: bool) -> Callable[..., Any]:
    """NumPy's function where BLAS uses no threads for these shapes, else the one that asks whether they pay."""
    if known(a) and known(b) and weight(*(a[:-3:-1] if ta else a[-2:]), b[-2 if tb else -1]) <= FEW:
        return np.dot if matrices else np.matmul
    return dot if matrices else matmul


def _shared(ctx: BuildContext, a: Any, b: Any, ta: bool, tb: bool) -> Shared | None:
    """A product that threads share by blocks of its result, or by matrices of a batch; None where that is not worth it."""
    out = ctx.outputs[0].shape
    if not (known(a) and known(b) and known(out)):
        return None
    rows, inner = a[:-3:-1] if ta else a[-2:]
    columns, batch = out[-1], out[:-2]
    work = 2 * math.prod(batch) * rows * inner * columns / FLOPS
    count = share_count(ctx, work, products=True)
    if count < 2 or rows < 2:
        return None
    if not batch:
        return product(count)
    axis = next((i for i, n in enumerate(batch) if n > 1), None)
    if axis is None:  # a batch of one
        of_one, first = product(count), (0,) * len(batch)
        return Shared(
            count, lambda x, y, z: of_one.cut(x[(0,) * (x.ndim - 2)], y[(0,) * (y.ndim - 2)], z[first]), multiplies=True
        )
    axes = [aligned(s, out, axis) for s in (a, b, out)]
    shared = share(ctx, axes, [tuple(a), tuple(b), tuple(out)], lambda _: (np.matmul, ()), work, True)[0]
    if not isinstance(shared, Shared):
        return None
    shared.multiplies = True
    return shared


def _turned(shared: Shared, ta: bool, tb: bool) -> Shared:
    cut = shared.cut
    return Shared(shared.count, lambda x, y, out: cut(_turn(x, ta), _turn(y, tb), out), multiplies=True)


def _turn(x: np.ndarray, transpose: bool) -> np.ndarray:
    return x.swapaxes(-1, -2) if transpose else x


_TURNED: dict[tuple[bool, bool], Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    (True, False): lambda multiply: lambda x, y, out: multiply(x.T, y, out),
    (False, True): lambda multiply: lambda x, y, out: multiply(x, y.T, out),
    (True, True): lambda multiply: lambda x, y, out: multiply(x.T, y.T, out),
}


def _transposed_product(x: np.ndarray, y: np.ndarray, out: np.ndarray, turned: np.ndarray) -> None:
    """x times the transpose of y, by way of its transpose."""
    dot(y, x.T, turned)
    np.copyto(out, turned.T)


def _few_rows(a: Any, b: Any) -> bool:
    """Return whether a product by a transposed matrix is quicker by way of its transpose."""
    return known(a) and known(b) and 2 <= a[0] <= _FEW_ROWS and math.prod(a) * b[0] > _PACKED


def _shared_transposed(count: int) -> Shared:
    """The same by columns of the result."""

    def cut(x: np.ndarray, y: np.ndarray, out: np.ndarray, turned: np.ndarray) -> list[Callable[[], None]]:
        found = pieces(y.shape[0], count, TILE)
        return [partial(_transposed_product, x, y[i], out[:, i], turned[i]) for i in found]

    return Shared(count, cut, multiplies=True)


def _widened(ctx: BuildContext, ta: bool, tb: bool) -> Bound | Callable[..., Any]:
    """Both operands and the product in float32."""
    a, b, out = *ctx.inputs, ctx.outputs[0]
    dtype = out.dtype.np

    def fresh(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        product: np.ndarray = matmul(_turn(x.astype(np.float32), ta), _turn(y.astype(np.float32), tb))
        return product.astype(dtype)

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
        matmul(_turn(wide_x, ta), _turn(wide_y, tb), wide_z)
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
        return np.asarray(matmul(_turn(left, ta), _turn(right, tb)).astype(dtype.np, copy=False))

    if ctx.fresh:
        return fresh
    if is_half(dtype) or not (known(a.shape) and known(b.shape)):
        return lambda *given: np.copyto(given[-1], fresh(*given[:-1]))
    multiply: Callable[..., Any] = dot if len(a.shape) == len(b.shape) == 2 else matmul
    left_shape, right_shape = (_side_by_side(*one, count).shape for one in ((a, axis_a), (b, axis_b)))
    shared = _shared(ctx, left_shape, right_shape, ta, tb)
    multiply = shared or multiply

    def joined(*given: np.ndarray) -> None:
        out, left, right = given[2 * count :]
        np.concatenate(given[:count], axis_a, left)
        np.concatenate(given[count : 2 * count], axis_b, right)
        multiply(_turn(left, ta), _turn(right, tb), out)

    scratch = _side_by_side(a, axis_a, count), _side_by_side(b, axis_b, count)
    return Bound(joined, scratch=scratch)


def _side_by_side(one: ArgInfo, axis: int, count: int) -> Scratch:
    """Memory for so many matrices of one shape, along an axis."""
    shape = list(one.shape or ())
    shape[axis] *= count  # type: ignore[operator]
    return Scratch(one.dtype, tuple(shape))


def _alone(build: Callable[[BuildContext], Bound | Callable[..., Any]]) -> Callable[[BuildContext], Any]:
    """As :func:`on_one_thread`, but for products that are surely too small for BLAS's threads: their steps need no context."""
    alone = on_one_thread(build)

    def built(ctx: BuildContext) -> Any:
        shapes = [i.shape for i in (*ctx.inputs, *ctx.outputs)]
        small = all(known(s) for s in shapes) and math.prod(math.prod(s) for s in shapes) <= SMALL**2  # type: ignore[arg-type]
        return build(ctx) if small else alone(ctx)

    return built


KERNELS = [
    KernelDef("MatMul", "cpu", _alone(_mat_mul), layout="strided"),
    KernelDef("MatMulSum", "cpu", _alone(_mat_mul_sum), layout="strided"),
]
