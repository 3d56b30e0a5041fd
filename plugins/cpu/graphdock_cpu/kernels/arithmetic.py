"""Kernels of arithmetic that is rounded towards zero or that 0 wins, of neighbours, and of cross products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from graphdock.contracts import BuildContext, KernelDef, Scratch

from graphdock_cpu.kernels.common import Body, body_kernel, constant, ufunc_kernel
from graphdock_cpu.kernels.shaped import Made, Shape, bind, like_first

__all__ = ["KERNELS"]


def _truncate_div(dtype: np.dtype[Any]) -> Body:
    """Integers: the quotient of what fmod leaves, which floor division then gives exactly."""
    if dtype.kind in "iu":

        def whole(x: Any, y: Any, z: Any) -> None:
            np.floor_divide(x - np.fmod(x, y), y, z)

        return whole

    def body(x: Any, y: Any, z: Any) -> None:
        np.divide(x, y, z)
        np.trunc(z, z)

    return body


def _zero_wins(ufunc: np.ufunc, deciding: int) -> Callable[[np.dtype[Any]], Body]:
    """``ufunc(x, y)``, and 0 where the operand of that index is 0."""

    def make(dtype: np.dtype[Any]) -> Body:
        zero = constant(0, dtype)

        def body(x: Any, y: Any, z: Any) -> None:
            none = (x, y)[deciding] == 0
            ufunc(x, y, z)
            np.copyto(z, zero, where=none)

        return body

    return make


def _xlogy(dtype: np.dtype[Any]) -> Body:
    zero = constant(0, dtype)

    def body(x: Any, y: Any, z: Any) -> None:
        none = x == 0
        np.multiply(x, np.log(y), z)
        np.copyto(z, zero, where=none)

    return body


def _cross(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    """Three components of two products each. float16 and bfloat16 are computed in float32."""
    dtype = ctx.outputs[0].dtype
    wide = dtype.accumulator if dtype.is_floating else dtype

    def cross(a: Any, b: Any, out: Any, first: Any, second: Any) -> None:
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            np.multiply(a[..., j], b[..., k], first, dtype=wide.np)
            np.multiply(a[..., k], b[..., j], second, dtype=wide.np)
            np.subtract(first, second, out[..., i], casting="same_kind")

    return cross, (Scratch(wide, shapes[0][:-1]),) * 2


KERNELS = [
    body_kernel("TruncateDiv", _truncate_div),
    ufunc_kernel("TruncateMod", np.fmod),
    ufunc_kernel("NextAfter", np.nextafter),
    body_kernel("Xdivy", _zero_wins(np.divide, 0)),
    body_kernel("MulNoNan", _zero_wins(np.multiply, 1)),
    body_kernel("Xlogy", _xlogy),
    KernelDef("Cross", "cpu", bind(_cross, like_first), layout="strided"),
]
