"""The kernel of rotary position embedding. Narrow floats are computed in float32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphdock.contracts import BuildContext, KernelDef, Scratch, dtypes
from numpy import add, copyto, multiply, subtract

from graphdock_cpu.kernels.shaped import Made, Shape, bind, like_first

__all__ = ["KERNELS"]


def _rotary(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    both = dtypes.float64 in [i.dtype for i in ctx.inputs]
    wide = dtypes.float64 if both else dtypes.float32
    x_shape, (positions, count) = shapes[0], shapes[1]
    half = (*x_shape[:-1], count)
    pairs, sign = ctx.attr("pairs"), wide.np.type(-1 if ctx.attr("back") else 1)

    def parts(x: Any) -> tuple[Any, Any]:
        return (
            (x[..., 0 : 2 * count : 2], x[..., 1 : 2 * count : 2])
            if pairs
            else (x[..., :count], x[..., count : 2 * count])
        )

    def compute(x: Any, cos: Any, sin: Any, y: Any, c: Any, s: Any, t: Any, u: Any) -> None:
        copyto(c[:, 0], cos, "same_kind")
        multiply(sin, sign, s[:, 0], casting="same_kind", dtype=wide.np)
        (a, b), (first, second) = parts(x), parts(y)
        multiply(a, c, t)
        multiply(b, s, u)
        subtract(t, u, first, casting="same_kind")
        multiply(b, c, t)
        multiply(a, s, u)
        add(t, u, second, casting="same_kind")
        copyto(y[..., 2 * count :], x[..., 2 * count :])

    angles = Scratch(wide, (positions, 1, count))
    return compute, (angles, angles, Scratch(wide, half), Scratch(wide, half))


KERNELS = [KernelDef("Rotary", "cpu", bind(_rotary, like_first))]
