"""Elementwise arithmetic, comparisons and logic: tables from op to ufunc, and short bodies where one ufunc is not
enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from graphdock.contracts import Bound, BuildContext, In, KernelDef, Out, Scratch, dtypes, errors

from graphdock_cpu.kernels.common import (
    Body,
    bind_ufunc,
    body_kernel,
    constant,
    known,
    maximum,
    minimum,
    mode_input,
    ufunc_kernel,
)

__all__ = ["KERNELS"]

#: x, y -> z of the same dtype.
_BINARY: dict[str, np.ufunc] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "RealDiv": np.true_divide,
    "FloorDiv": np.floor_divide,
    "FloorMod": np.remainder,
    "Maximum": np.maximum,
    "Minimum": np.minimum,
    "Atan2": np.arctan2,
    "LogicalAnd": np.logical_and,
    "LogicalOr": np.logical_or,
    "LogicalXor": np.logical_xor,
}

#: x, y -> bool.
_COMPARISON: dict[str, np.ufunc] = {
    "Less": np.less,
    "LessEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
    "Equal": np.equal,
    "NotEqual": np.not_equal,
}

#: x -> y of the same dtype.
_UNARY: dict[str, np.ufunc] = {
    "Neg": np.negative,
    "Abs": np.absolute,
    "Sign": np.sign,
    "Square": np.square,
    "Sqrt": np.sqrt,
    "Reciprocal": np.reciprocal,
    "Exp": np.exp,
    "Expm1": np.expm1,
    "Log": np.log,
    "Log1p": np.log1p,
    "Sin": np.sin,
    "Cos": np.cos,
    "Tan": np.tan,
    "Asin": np.arcsin,
    "Acos": np.arccos,
    "Atan": np.arctan,
    "Sinh": np.sinh,
    "Cosh": np.cosh,
    "Tanh": np.tanh,
    "Asinh": np.arcsinh,
    "Acosh": np.arccosh,
    "Atanh": np.arctanh,
    "Floor": np.floor,
    "Ceil": np.ceil,
    "Round": np.rint,
    "Rint": np.rint,
    "LogicalNot": np.logical_not,
}

#: x -> bool.
_TEST: dict[str, np.ufunc] = {"IsNan": np.isnan, "IsInf": np.isinf, "IsFinite": np.isfinite}


def _rsqrt(dtype: np.dtype[Any]) -> Body:
    def body(x: np.ndarray, y: np.ndarray) -> None:
        np.sqrt(x, y)
        np.reciprocal(y, y)

    return body


def _sigmoid(dtype: np.dtype[Any]) -> Body:
    """1 / (1 + exp(-x)): accurate to the last bits for negative x, where tanh's form cancels."""
    one = constant(1, dtype)

    def body(x: np.ndarray, y: np.ndarray) -> None:
        np.negative(x, y)
        np.exp(y, y)
        np.add(y, one, y)
        np.reciprocal(y, y)

    return body


def _sigmoid_grad(dtype: np.dtype[Any]) -> Body:
    one = constant(1, dtype)

    def body(y: np.ndarray, dy: np.ndarray, dx: np.ndarray) -> None:
        np.subtract(one, y, dx)
        np.multiply(dx, y, dx)
        np.multiply(dx, dy, dx)

    return body


def _tanh_grad(dtype: np.dtype[Any]) -> Body:
    one = constant(1, dtype)

    def body(y: np.ndarray, dy: np.ndarray, dx: np.ndarray) -> None:
        np.multiply(y, y, dx)
        np.subtract(one, dx, dx)
        np.multiply(dx, dy, dx)

    return body


def _unless_none_arrives(slope: Callable[[np.ndarray, np.ndarray], None]) -> Callable[[np.dtype[Any]], Body]:
    """``dy`` times the slope, which ``slope`` writes for an output, and 0 where ``dy`` is 0."""

    def make(dtype: np.dtype[Any]) -> Body:
        zero = constant(0, dtype)

        def body(y: np.ndarray, dy: np.ndarray, dx: np.ndarray) -> None:
            slope(np.conj(y) if dtype.kind == "c" else y, dx)
            np.multiply(dx, dy, dx)
            np.copyto(dx, zero, where=dy == 0)

        return body

    return make


def _half_over(y: np.ndarray, dx: np.ndarray) -> None:
    np.divide(0.5, y, dx)


def _half_cube(y: np.ndarray, dx: np.ndarray) -> None:
    np.multiply(y, y, dx)
    np.multiply(dx, y, dx)
    np.multiply(dx, -0.5, dx)


def _less_square(y: np.ndarray, dx: np.ndarray) -> None:
    np.multiply(y, y, dx)
    np.negative(dx, dx)


def _squared_difference(dtype: np.dtype[Any]) -> Body:
    def body(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> None:
        np.subtract(x, y, z)
        np.multiply(z, z, z)

    return body


def _clip(dtype: np.dtype[Any]) -> Body:
    def body(x: np.ndarray, low: np.ndarray, high: np.ndarray, y: np.ndarray) -> None:
        minimum(x, high, y)
        maximum(y, low, y)

    return body


def _pow(ctx: BuildContext) -> Bound | Callable[..., Any]:
    """numpy.power; a constant exponent of 2 is a square, a tenth of the time."""
    exponent = ctx.inputs[1].value
    if exponent is not None and exponent.size == 1 and exponent.item() == 2 and not ctx.fresh:
        shape = ctx.outputs[0].shape
        if known(shape) and ctx.inputs[0].shape == shape:
            return Bound(np.square, args=(In(0), Out(0)))
    if ctx.outputs[0].dtype.kind == "i":
        return _integer_pow(ctx)
    return _complex_pow(ctx) if ctx.outputs[0].dtype.kind == "c" else bind_ufunc(ctx, np.power)


def _complex_pow(ctx: BuildContext) -> Callable[..., Any]:
    """``exp(y log x)``: 0 to the power of 0 is no number, of a negative one infinite, as C and TensorFlow have it."""

    def compute(x: np.ndarray, y: np.ndarray, *z: np.ndarray) -> Any:
        odd = (x == 0) & (y.real <= 0) & (y.imag == 0)
        ends = np.where(y.real == 0, complex(np.nan, np.nan), complex(np.inf, np.nan)) if odd.any() else None
        made = np.asarray(np.power(x, y, *z))
        if ends is not None:
            np.copyto(made, ends, casting="same_kind", where=odd)
        return made

    return compute


def _integer_pow(ctx: BuildContext) -> Callable[..., Any]:
    """numpy.power, with NumPy's refusal of negative exponents as an error of the node."""

    def compute(x: np.ndarray, y: np.ndarray, *z: np.ndarray) -> Any:
        try:
            return np.asarray(np.power(x, y, *z))
        except ValueError as error:
            raise errors.InvalidArgumentError(
                "Pow: an integer to a negative power is not an integer", hint="cast both operands to a floating dtype"
            ) from error

    return compute


#: Elements from which on a choice is made by bits, how many of them are chosen at once, and of how many neighbours it is asked
#: whether they go together: one in so many that does not, and the processor guesses too often what a masked copy does next.
SELECT_BITS, SELECT_BLOCK, SELECT_ASKED, SELECT_CHANGES = 2048, 1 << 14, 512, 24
_WORDS = {1: dtypes.int8, 2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}


def _select(ctx: BuildContext) -> Bound | Callable[..., Any]:
    """Two copies into the output, the second under the mask; the first is spared where the output is y's own buffer.

    Where the mask changes often, bits are chosen instead, without a jump: a masked copy takes ten times as long there.
    """
    if ctx.fresh:
        dtype = ctx.outputs[0].dtype.np
        return lambda condition, x, y: np.asarray(np.where(condition, x, y), dtype)
    over = mode_input(ctx.outputs[0].mode) == 2

    def copied(condition: np.ndarray, x: np.ndarray, y: np.ndarray, z: np.ndarray) -> None:
        if not over:
            np.copyto(z, y)
        np.copyto(z, x, "no", condition)

    shape, dtype = ctx.outputs[0].shape, ctx.outputs[0].dtype.np
    word = None if dtype.kind == "O" else _WORDS.get(dtype.itemsize)
    fits = known(shape) and ctx.inputs[0].shape == shape and all(i.shape in (shape, ()) for i in ctx.inputs[1:])
    if word is None or not fits or math.prod(shape) < SELECT_BITS:
        return copied

    def chosen(condition: np.ndarray, x: np.ndarray, y: np.ndarray, z: np.ndarray, mask: np.ndarray) -> None:
        arrays = condition, x, y, z
        if not all(a.flags.c_contiguous for a in arrays) or not _changes(condition):
            copied(*arrays)
            return
        taken = condition.reshape(-1).view(np.int8)
        a, b, c = (each.reshape(-1).view(mask.dtype) for each in arrays[1:])
        nothing = next((each for each in (b, a) if each.size == 1 and not each[0]), None)
        for start in range(0, c.size, mask.size):
            part = slice(start, start + mask.size)
            bits, found = mask[: c.size - start], c[part]
            mine, other = (each if each.size == 1 else each[part] for each in (a, b))
            if nothing is b:
                np.negative(taken[part], bits)
                np.bitwise_and(mine, bits, found)
                continue
            np.subtract(taken[part], 1, bits)  # none of x's bits are kept out, or all
            if nothing is a:
                np.bitwise_and(other, bits, found)
                continue
            np.bitwise_xor(mine, other, found)
            np.bitwise_and(found, bits, found)
            np.bitwise_xor(found, mine, found)

    return Bound(chosen, scratch=(Scratch(word, (min(SELECT_BLOCK, math.prod(shape)),)),))


def _changes(condition: np.ndarray) -> bool:
    """Return whether neighbours in the midst of a mask are often different."""
    flat = condition.reshape(-1)
    middle = flat[flat.size // 2 :][:SELECT_ASKED]
    return bool(np.count_nonzero(middle[1:] != middle[:-1]) > SELECT_ASKED // SELECT_CHANGES)


_XY = {"z": ("x", "y")}
_X = {"y": ("x",)}

KERNELS = [
    *(ufunc_kernel(op, ufunc, inplace=_XY) for op, ufunc in _BINARY.items()),
    *(ufunc_kernel(op, ufunc) for op, ufunc in _COMPARISON.items()),
    *(ufunc_kernel(op, ufunc, inplace=_X) for op, ufunc in _UNARY.items()),
    *(ufunc_kernel(op, ufunc) for op, ufunc in _TEST.items()),
    KernelDef("Pow", "cpu", _pow, layout="strided", inplace=_XY, modes=("planned", "fresh", "inplace")),
    body_kernel("Rsqrt", _rsqrt, inplace=_X),
    body_kernel("Sigmoid", _sigmoid, inplace=_X),
    body_kernel("SigmoidGrad", _sigmoid_grad),
    body_kernel("TanhGrad", _tanh_grad, inplace={"dx": ("y",)}),
    body_kernel("SqrtGrad", _unless_none_arrives(_half_over), inplace={"dx": ("y",)}),
    body_kernel("RsqrtGrad", _unless_none_arrives(_half_cube)),
    body_kernel("ReciprocalGrad", _unless_none_arrives(_less_square), inplace={"dx": ("y",)}),
    body_kernel("SquaredDifference", _squared_difference, inplace=_XY),
    body_kernel("ClipByValue", _clip, inplace=_X, widen=False),
    KernelDef(
        "Select",
        "cpu",
        _select,
        layout="strided",
        inplace={"z": ("y",)},
        modes=("planned", "fresh", "inplace"),
    ),
]
