"""Common parts of kernels of several families: binding a ufunc, running several ufuncs as one kernel, half-precision rules.

Conventions. A bare ufunc is the best kernel there is: NumPy takes its output array positionally, so ``np.add`` itself
is a legal ``compute(x, y, z)``. NumPy returns a scalar object where a result has rank 0; mode ``fresh`` promises an
array, so only there is a wrapper needed. float16 and bfloat16 go through float32 wherever more than one rounding
would otherwise happen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from graphdock.contracts import Bound, BuildContext, In, KernelDef, Lit, Mode, Out, Scratch, dtypes

from graphdock_cpu.kernels.sharing import elementwise

__all__ = [
    "Body",
    "bind_body",
    "bind_ufunc",
    "body_kernel",
    "constant",
    "copy_bound",
    "fresh_array",
    "is_half",
    "known",
    "maximum",
    "minimum",
    "ufunc_kernel",
]

#: Computes ``body(*inputs, out)`` into ``out``, whose shape is the broadcast shape of the inputs.
Body: TypeAlias = Callable[..., None]


#: Cheap passes that a body of several ufunc calls takes, about.
_PASSES = 3
#: Largest constant that is searched for being one number throughout.
_UNIFORM_LIMIT = 65536


def known(shape: Sequence[int | None] | None) -> bool:
    """Return whether a static shape has no unknown dim."""
    return shape is not None and None not in shape


def is_half(dtype: dtypes.DType) -> bool:
    """float16 or bfloat16: what is accumulated in float32."""
    return dtype.accumulator is not dtype


def constant(value: float, dtype: np.dtype[Any]) -> np.ndarray:
    """A rank-0 operand; cheaper to call a ufunc with than a Python number, and never promotes. Nobody can write it."""
    array = np.array(value, dtype)
    array.flags.writeable = False
    return array


def fresh_array(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, with a rank-0 result as an array instead of NumPy's scalar object."""

    def compute(*args: Any) -> np.ndarray:
        return np.asarray(function(*args))

    return compute


def maximum(x: Any, y: Any, out: np.ndarray) -> None:
    """``numpy.maximum`` into ``out``; NumPy deprecates its output as a positional argument, for this ufunc and the next
    alone.
    """
    np.maximum(x, y, out=out)


def minimum(x: Any, y: Any, out: np.ndarray) -> None:
    """``numpy.minimum`` into ``out``."""
    np.minimum(x, y, out=out)


#: What an element costs, where that is more than one cheap pass.
_WEIGHTS: dict[np.ufunc, float] = {
    **dict.fromkeys((np.exp, np.log, np.tanh, np.divide, np.sqrt, np.true_divide, np.reciprocal), 2),
    **dict.fromkeys((np.expm1, np.log1p, np.sin, np.cos, np.floor_divide, np.remainder), 8),
    **dict.fromkeys((np.power, np.tan, np.arcsin, np.arccos, np.arctan, np.arctan2, np.sinh, np.cosh), 16),
    **dict.fromkeys((np.arcsinh, np.arccosh, np.arctanh), 16),
}
_BY_KEYWORD = {np.maximum: maximum, np.minimum: minimum}


def bind_ufunc(ctx: BuildContext, ufunc: np.ufunc) -> Bound | Callable[..., Any]:
    """The ufunc itself; wrapped only where the result is returned and may have rank 0.

    A constant operand whose elements are all equal (the gradient of a mean, spread over the batch) is handed over as a
    scalar: broadcasting a dim of 1 costs NumPy four times as much.
    """
    if ctx.fresh:
        return ufunc if ctx.outputs[0].shape else fresh_array(ufunc)
    ufunc_call, weight = _BY_KEYWORD.get(ufunc, ufunc), _WEIGHTS.get(ufunc, 1)
    shapes: list[Any] = [i.shape for i in ctx.inputs]
    for index, info in enumerate(ctx.inputs):
        if info.value is not None and len(ctx.inputs) == 2:
            scalar, other = _uniform(info.value), ctx.inputs[1 - index]
            if scalar is not None and known(other.shape) and other.shape == ctx.outputs[0].shape:
                operands = (In(0), Lit(scalar)) if index == 1 else (Lit(scalar), In(1))
                shapes[index] = ()
                return Bound(elementwise(ctx, ufunc_call, shapes, weight), args=(*operands, Out(0)))
    return elementwise(ctx, ufunc_call, shapes, weight)


def _uniform(value: np.ndarray) -> np.ndarray | None:
    """The element that a small array of rank 1 or more consists of, as a rank-0 array."""
    if value.ndim == 0 or not 0 < value.size <= _UNIFORM_LIMIT or value.dtype.kind == "O":
        return None
    first = value[(0,) * value.ndim]
    # byte for byte: 0.0 and -0.0 are equal, but not under division
    return np.array(first) if value.tobytes() == first.tobytes() * value.size else None


def ufunc_kernel(
    op: str,
    ufunc: np.ufunc,
    *,
    inplace: Mapping[str, tuple[str, ...]] | None = None,
    types: Mapping[str, Sequence[str]] | None = None,
) -> KernelDef:
    """A kernel that is one ufunc over all inputs, whose natural result dtype is the output's."""
    return KernelDef(
        op,
        "cpu",
        lambda ctx: bind_ufunc(ctx, ufunc),
        types=types or {},
        layout="strided",
        inplace=inplace or {},
        modes=_modes(inplace),
    )


def body_kernel(
    op: str,
    make: Callable[[np.dtype[Any]], Body],
    *,
    inplace: Mapping[str, tuple[str, ...]] | None = None,
    widen: bool = True,
    weight: float = _PASSES,
) -> KernelDef:
    """A kernel of several ufunc calls. ``make(dtype)`` returns the body for that dtype of the output.

    ``inplace`` names only inputs that the body no longer reads once it has begun to write. With ``widen`` float16 and
    bfloat16 are computed in float32 and rounded once. ``weight``: cheap passes that the body takes, about.
    """
    return KernelDef(
        op,
        "cpu",
        lambda ctx: bind_body(ctx, make, widen, weight),
        layout="strided",
        inplace=inplace or {},
        modes=_modes(inplace),
    )


def bind_body(
    ctx: BuildContext, make: Callable[[np.dtype[Any]], Body], widen: bool = True, weight: float = _PASSES
) -> Bound | Callable[..., Any]:
    """The Bound of a body: planned (with float32 scratch for half types where shapes are known) or fresh."""
    out, count = ctx.outputs[0], len(ctx.inputs)
    wide = widen and is_half(out.dtype)
    dtype = np.dtype(np.float32) if wide else out.dtype.np
    body = make(dtype)
    if ctx.fresh:
        result = out.dtype.np

        def fresh(*args: Any) -> np.ndarray:
            inputs = [a.astype(dtype) for a in args] if wide else args
            made = np.empty(np.broadcast_shapes(*(a.shape for a in args)), dtype)
            body(*inputs, made)
            return made.astype(result) if wide else made

        return fresh
    if not wide:
        return elementwise(ctx, body, [i.shape for i in ctx.inputs], weight)
    if not all(known(i.shape) for i in ctx.inputs):

        def widened(*args: Any) -> None:
            made = np.empty(args[count].shape, dtype)
            body(*(a.astype(dtype) for a in args[:count]), made)
            np.copyto(args[count], made, "unsafe")

        return widened

    def compute(*args: Any) -> None:
        inputs, out, wide_inputs, wide_out = args[:count], args[count], args[count + 1 : -1], args[-1]
        for narrow, buffer in zip(inputs, wide_inputs, strict=True):
            np.copyto(buffer, narrow)
        body(*wide_inputs, wide_out)
        np.copyto(out, wide_out, "unsafe")

    scratch = tuple(Scratch(dtypes.float32, tuple(i.shape)) for i in ctx.inputs)
    return Bound(compute, scratch=(*scratch, Scratch(dtypes.float32, tuple(out.shape))))


def copy_bound(ctx: BuildContext) -> Bound | Callable[..., Any]:
    """Input 0 as output 0, whatever the mode: the array itself for a view, else a copy."""
    mode = ctx.outputs[0].mode.kind
    if mode == "view":
        return Bound(_itself, args=(In(0),))
    if mode == "fresh":
        return Bound(np.ndarray.copy, args=(In(0),))
    return Bound(np.copyto, args=(Out(0), In(0)))


def _itself(x: Any) -> Any:
    return x


def fill_bound(ctx: BuildContext, value: Any) -> Bound | Callable[..., Any]:
    """Output 0 of the shape of input 0, all ``value``."""
    dtype = ctx.outputs[0].dtype.np
    if ctx.fresh:
        return lambda x: np.full(x.shape, value, dtype)
    return Bound(np.ndarray.fill, args=(Out(0), Lit(value)))


def _modes(inplace: Mapping[str, tuple[str, ...]] | None) -> tuple[str, ...]:
    modes = ["planned", "fresh"]
    if inplace:
        modes.append("inplace")
    return tuple(modes)


def mode_input(mode: Mode) -> int | None:
    """Index of the input whose buffer an in-place output takes over, else None."""
    return mode.input if mode.kind == "inplace" else None
