"""Kernels of neural networks: activations, biases, the L2 loss; those of softmax stand in their own module.

``np.maximum`` and ``np.minimum`` get their output by keyword: given by position it is deprecated, and the warning costs
more than the call.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from graphdock.contracts import BuildContext, KernelDef, Scratch, dtypes
from numpy import (
    absolute,
    add,
    copyto,
    divide,
    exp,
    expm1,
    greater,
    log1p,
    maximum,
    minimum,
    multiply,
    negative,
    vdot,
)

from graphdock_cpu.kernels import softmax
from graphdock_cpu.kernels.common import constant
from graphdock_cpu.kernels.shaped import Made, Make, Shape, bind, like_first, widened
from graphdock_cpu.kernels.sharing import Rows

__all__ = ["KERNELS"]


def _relu(dtype: np.dtype[Any]) -> Callable[..., None]:
    zero = constant(0, dtype)

    def relu(x: Any, y: Any) -> None:
        maximum(x, zero, out=y)

    return relu


def _relu_grad(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    zero = constant(0, ctx.outputs[0].dtype.np)

    def relu_grad(g: Any, x: Any, y: Any, mask: Any) -> None:
        greater(x, zero, mask)
        copyto(y, mask)
        multiply(y, g, y)

    return relu_grad, (Scratch(dtypes.bool_, shapes[0]),)


def _leaky_relu_grad(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    dtype = ctx.outputs[0].dtype.np
    zero, slope = np.zeros((), dtype), np.full((), ctx.attr("alpha"), dtype)

    def leaky_relu_grad(g: Any, x: Any, y: Any, mask: Any) -> None:
        greater(x, zero, mask)
        multiply(g, slope, y)
        copyto(y, g, where=mask)

    return leaky_relu_grad, (Scratch(dtypes.bool_, shapes[0]),)


def _activation(make: Callable[..., Callable[..., None]], *attrs: str, scratch: int = 1) -> Make:
    """A kernel ``make(dtype, **attrs) -> f(x, y, *scratch)`` of one input and one output of the same shape."""

    def made(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
        values = [ctx.attr(a) for a in attrs]
        return widened(ctx, lambda dtype: make(dtype, *values), 1, shapes[0], scratch)

    return made


def _relu6(dtype: np.dtype[Any]) -> Callable[..., None]:
    zero, six = constant(0, dtype), constant(6, dtype)

    def relu6(x: Any, y: Any) -> None:
        maximum(x, zero, out=y)
        minimum(y, six, out=y)

    return relu6


def _elu(dtype: np.dtype[Any]) -> Callable[..., None]:
    zero = constant(0, dtype)

    def elu(x: Any, y: Any, t: Any) -> None:
        minimum(x, zero, out=t)
        expm1(t, t)
        maximum(x, zero, out=y)
        add(y, t, y)

    return elu


#: Klambauer, Unterthiner, Mayr and Hochreiter, "Self-normalizing neural networks", 2017: alpha and lambda.
SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def _selu(dtype: np.dtype[Any]) -> Callable[..., None]:
    zero, alpha, scale = constant(0, dtype), constant(SELU_ALPHA, dtype), constant(SELU_SCALE, dtype)

    def selu(x: Any, y: Any, t: Any) -> None:
        minimum(x, zero, out=t)
        expm1(t, t)
        multiply(t, alpha, t)
        maximum(x, zero, out=y)
        add(y, t, y)
        multiply(y, scale, y)

    return selu


def _leaky_relu(dtype: np.dtype[Any], alpha: float) -> Callable[..., None]:
    zero, slope = constant(0, dtype), constant(alpha, dtype)

    if not np.isfinite(slope):  # no zeros may meet it

        def steep(x: Any, y: Any, t: Any) -> None:
            multiply(x, slope, t)
            copyto(t, x, where=x > zero)
            copyto(y, t)

        return steep

    def leaky_relu(x: Any, y: Any, t: Any) -> None:
        minimum(x, zero, out=t)
        multiply(t, slope, t)
        maximum(x, zero, out=y)
        add(y, t, y)

    return leaky_relu


def _softplus(dtype: np.dtype[Any]) -> Callable[..., None]:
    zero = constant(0, dtype)

    def softplus(x: Any, y: Any, t: Any) -> None:
        absolute(x, t)
        negative(t, t)
        exp(t, t)
        log1p(t, t)
        maximum(x, zero, out=y)
        add(y, t, y)

    return softplus


def _softsign(dtype: np.dtype[Any]) -> Callable[..., None]:
    one = np.ones((), dtype)

    def softsign(x: Any, y: Any, t: Any) -> None:
        absolute(x, t)
        add(t, one, t)
        divide(x, t, y)

    return softsign


def _bias_shape(ctx: BuildContext, shapes: Sequence[Shape]) -> Shape:
    """The bias's shape as it is broadcast over the value."""
    (channels,) = shapes[1]
    return (channels,) + (1,) * (len(shapes[0]) - 2) if ctx.attr("data_format") == "NCHW" else (channels,)


def _bias_add(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    shape = _bias_shape(ctx, shapes)
    if len(shape) == 1:
        return add, ()
    return lambda value, bias, y: add(value, bias.reshape(shape), y), ()


def _bias_add_grad(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    """The sum over all axes but the channels'. One row of ones times the matrix is the cheapest such sum."""
    (shape,), dtype = shapes, ctx.outputs[0].dtype
    wide = dtype.accumulator
    last = ctx.attr("data_format") != "NCHW" or len(shape) == 2
    axes = tuple(i for i in range(len(shape)) if i != (len(shape) - 1 if last else 1))
    reduce = np.add.reduce
    if last and wide is dtype and dtype.is_floating and math.prod(shape):
        rows, channels = math.prod(shape[:-1]), shape[-1]
        ones = np.ones(rows, dtype.np)
        if len(shape) == 2:
            return lambda g, out: np.ndarray.dot(ones, g, out), ()
        return lambda g, out: np.ndarray.dot(ones, g.reshape(rows, channels), out), ()
    if wide is dtype:
        return lambda g, out: reduce(g, axes, None, out), ()

    def narrow(g: Any, out: Any, total: Any) -> None:
        reduce(g, axes, wide.np, total)
        copyto(out, total, "same_kind")

    return narrow, (Scratch(wide, (shape[-1] if last else shape[1],)),)


def _without_channels(ctx: BuildContext, shapes: Sequence[Shape]) -> int:
    """How many dims lie in front of the channels'."""
    return 1 if ctx.attr("data_format") == "NCHW" else len(shapes[0]) - 1


def _channels(ctx: BuildContext, shapes: Sequence[Shape]) -> Sequence[Shape]:
    return [(shapes[0][1 if ctx.attr("data_format") == "NCHW" else -1],)]


def _l2_loss(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    (shape,), dtype = shapes, ctx.outputs[0].dtype
    wide, size = dtype.accumulator, math.prod(shape)
    half = constant(0.5, dtype.np)

    def l2_loss(t: Any, y: Any) -> None:
        flat = t.reshape(size)
        np.ndarray.dot(flat, flat, y)
        multiply(y, half, y)

    if wide is dtype:
        return l2_loss, ()

    def narrow(t: Any, y: Any, w: Any, total: Any) -> None:
        copyto(w, t)
        l2_loss(w, total)
        copyto(y, total, "same_kind")

    return narrow, (Scratch(wide, shape), Scratch(wide, ()))


def _l2_loss_sum(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    """Left to right, each as of one tensor; narrow floats are rounded once, at the end."""
    dtype, count = ctx.outputs[0].dtype, len(shapes)
    wide = dtype.accumulator.np
    half = wide.type(0.5)

    def l2_loss_sum(*args: Any) -> None:
        total = wide.type(0)
        for t in args[:count]:
            flat = t.reshape(-1) if t.dtype == wide else t.astype(wide).reshape(-1)
            total += vdot(flat, flat) * half
        args[count][...] = total

    return l2_loss_sum, ()


_X = {"activations": ("features",)}
_MODES = ("planned", "fresh", "inplace")


def _of_each(op: str, make: Make, weight: float) -> KernelDef:
    """The kernel of an activation; ``weight`` as in :class:`Rows`."""
    computes = bind(make, like_first, Rows("rr", weight))
    return KernelDef(op, "cpu", computes, layout="strided", inplace=_X, modes=_MODES)


KERNELS = [
    *softmax.KERNELS,
    _of_each("Relu", _activation(_relu, scratch=0), 1),
    _of_each("Relu6", _activation(_relu6, scratch=0), 2),
    _of_each("Elu", _activation(_elu), 4),
    _of_each("Selu", _activation(_selu), 5),
    _of_each("LeakyRelu", _activation(_leaky_relu, "alpha"), 4),
    _of_each("Softplus", _activation(_softplus), 8),
    _of_each("Softsign", _activation(_softsign), 4),
    *(
        KernelDef(
            op,
            "cpu",
            bind(compute, like_first, Rows("rrr", 3)),
            layout="strided",
            inplace={"backprops": ("features",)},
            modes=_MODES,
        )
        for op, compute in (("ReluGrad", _relu_grad), ("LeakyReluGrad", _leaky_relu_grad))
    ),
    KernelDef(
        "BiasAdd",
        "cpu",
        bind(_bias_add, like_first, Rows("r.r", 1, _without_channels)),
        layout="strided",
        inplace={"output": ("value",)},
        modes=_MODES,
    ),
    KernelDef("BiasAddGrad", "cpu", bind(_bias_add_grad, _channels, Rows("r+", 1, _without_channels))),
    KernelDef("L2Loss", "cpu", bind(_l2_loss, lambda ctx, shapes: [()])),
    KernelDef("L2LossSum", "cpu", bind(_l2_loss_sum, lambda ctx, shapes: [()])),
]
