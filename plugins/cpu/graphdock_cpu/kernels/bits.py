"""Kernels of integers as rows of bits, and of bytes read as another dtype."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from graphdock.contracts import BuildContext, KernelDef, Scratch, dtypes, errors
from numpy import copyto, take, uint8

from graphdock_cpu.kernels.common import Body, body_kernel, constant, maximum, minimum, ufunc_kernel
from graphdock_cpu.kernels.shaped import Made, Shape, bind, like_first

__all__ = ["KERNELS"]

#: Set bits of every byte.
_COUNTS = np.array([bin(i).count("1") for i in range(256)], np.uint8)


def _shift(ufunc: np.ufunc) -> Any:
    """A shift by a count that is clamped to the width first, into the output."""

    def make(dtype: np.dtype[Any]) -> Body:
        zero, most = constant(0, dtype), constant(8 * dtype.itemsize - 1, dtype)

        def body(x: Any, y: Any, z: Any) -> None:
            maximum(y, zero, z)
            minimum(z, most, z)
            ufunc(x, z, z)

        return body

    return make


def _population_count(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    (shape,) = shapes
    size = ctx.inputs[0].dtype.size
    reduce, shaped = np.add.reduce, (*shape, size)

    def count(x: Any, y: Any, found: Any) -> None:
        take(_COUNTS, x.reshape(-1).view(np.uint8).reshape(shaped), None, found, "clip")
        reduce(found, -1, np.uint8, y)

    return count, (Scratch(dtypes.uint8, shaped),)


def _cast_shape(ctx: BuildContext, shapes: Sequence[Shape]) -> Sequence[Shape]:
    (shape,), have, want = shapes, ctx.inputs[0].dtype.size, ctx.outputs[0].dtype.size
    if have >= want:
        return [shape if have == want else (*shape, have // want)]
    if not shape or shape[-1] * have != want:
        raise errors.InvalidArgumentError(f"Bitcast: the last dim of {list(shape)} must be {want // have}")
    return [shape[:-1]]


def _bitcast(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    return lambda x, y: copyto(y.reshape(-1).view(uint8), x.reshape(-1).view(uint8)), ()


_XY = {"z": ("x", "y")}

KERNELS = [
    ufunc_kernel("BitwiseAnd", np.bitwise_and, inplace=_XY),
    ufunc_kernel("BitwiseOr", np.bitwise_or, inplace=_XY),
    ufunc_kernel("BitwiseXor", np.bitwise_xor, inplace=_XY),
    ufunc_kernel("Invert", np.invert, inplace={"y": ("x",)}),
    body_kernel("LeftShift", _shift(np.left_shift), inplace={"z": ("y",)}),
    body_kernel("RightShift", _shift(np.right_shift), inplace={"z": ("y",)}),
    KernelDef("PopulationCount", "cpu", bind(_population_count, like_first)),
    KernelDef("Bitcast", "cpu", bind(_bitcast, _cast_shape)),
]
