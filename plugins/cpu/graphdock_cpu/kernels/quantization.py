"""Kernels that round numbers to those of a range: as floats that integers could stand for, and as the integers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from graphdock.contracts import BuildContext, KernelDef, Scratch, dtypes, errors

from graphdock_cpu.kernels import sized
from graphdock_cpu.kernels.shaped import Made, Make, Shape, bind, like_first
from graphdock_cpu.kernels.sized import Values

__all__ = ["KERNELS"]

f32 = np.float32


def _away(x: Any) -> Any:
    """Rounded, halves away from zero."""
    return np.copysign(np.floor(np.abs(x) + x.dtype.type(0.5)), x)


def _nudged(low: Any, high: Any, num_bits: int, narrow: bool) -> tuple[Any, Any, Any]:
    """Both ends of ranges that hold zero as one of their numbers, and the steps between these; ``[0, 0]`` has the step 1."""
    least, most = f32(int(narrow)), f32(2**num_bits - 1)
    none = (low == 0) & (high == 0)
    step = np.where(none, f32(1), (high - low) / (most - least))
    zero = np.clip(_away(least - low / step), least, most)
    return np.where(none, f32(0), (least - zero) * step), np.where(none, f32(0), (most - zero) * step), step


def _ends(ctx: BuildContext) -> Callable[[Any, Any], tuple[Any, Any, Any]]:
    bits, narrow = ctx.attr("num_bits"), ctx.attr("narrow_range")

    def ends(low: Any, high: Any) -> tuple[Any, Any, Any]:
        if not np.all((low < high) | ((low == 0) & (high == 0))):
            raise errors.InvalidArgumentError("min must be below max, or both be 0", got=f"{low} and {high}")
        return _nudged(low, high, bits, narrow)

    return ends


def _quantise(x: Any, out: Any, low: Any, high: Any, step: Any) -> None:
    np.maximum(x, low, out=out)
    np.minimum(out, high, out=out)
    np.divide(out, step, out)
    np.add(out, f32(0.5), out)
    np.floor(out, out)
    np.multiply(out, step, out)


def _args(ctx: BuildContext) -> tuple[Any, Any, Any]:
    low, high = np.asarray(ctx.attr("min"), f32), np.asarray(ctx.attr("max"), f32)
    return _ends(ctx)(low, high)


def _fake_args(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    ends = _args(ctx)
    return lambda x, out: _quantise(x, out, *ends), ()


def _fake_vars(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    ends = _ends(ctx)
    return lambda x, low, high, out: _quantise(x, out, *ends(low, high)), ()


def _fake_args_gradient(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    low, high, _ = _args(ctx)
    mask = Scratch(dtypes.bool_, shapes[0])

    def compute(g: Any, x: Any, out: Any, below: Any, above: Any) -> None:
        np.greater_equal(x, low, below)
        np.less_equal(x, high, above)
        np.logical_and(below, above, below)
        np.multiply(g, below, out)

    return compute, (mask, mask)


def _fake_vars_gradient(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    """Sums of what is outside go over all dims but the last where each element of that has a range."""
    ends, shape = _ends(ctx), shapes[0]
    axes = tuple(range(len(shape) - len(shapes[2])))
    mask = Scratch(dtypes.bool_, shape)

    def compute(
        g: Any, x: Any, low: Any, high: Any, out: Any, by_low: Any, by_high: Any, outside: Any, part: Any
    ) -> None:
        first, last, _ = ends(low, high)
        unlimited = (low == 0) & (high == 0)
        np.copyto(out, g)
        for beyond, end, total in ((np.less, first, by_low), (np.greater, last, by_high)):
            beyond(x, end, outside)
            np.logical_and(outside, ~unlimited, outside)
            np.multiply(g, outside, part)
            np.add.reduce(part, axes, None, total)
            np.copyto(out, 0, where=outside)

    return compute, (mask, Scratch(dtypes.float32, shape))


def _gradient_shapes(ctx: BuildContext, shapes: Sequence[Shape]) -> Sequence[Shape]:
    return [shapes[0], shapes[2], shapes[3]]


def _scale(low: float, high: float, bits: int, signed: bool, narrow: bool) -> tuple[float, float, float]:
    """Both ends of the range that the integers reach, and the number that 1 stands for."""
    least = -(2 ** (bits - 1)) + int(narrow) if signed else 0
    most = 2 ** (bits - 1) - 1 if signed else 2**bits - 1
    steps = [end / n for end, n in ((low, least), (high, most)) if end * n > 0]
    step = max(steps, default=0.0)
    return least * step, most * step, step


def _there_and_back(ctx: BuildContext, shapes: Sequence[Shape], bits: int) -> Made:
    if not 1 <= bits <= 62:
        raise errors.InvalidArgumentError(f"num_bits is {bits}", expected="1 to 62")
    signed, given, narrow = (bool(ctx.attr(a)) for a in ("signed_input", "range_given", "narrow_range"))
    up = ctx.node.op == "QuantizeAndDequantizeV2" and ctx.attr("round_mode") == "HALF_UP"
    dtype = ctx.outputs[0].dtype
    wide = dtype.accumulator
    kind = wide.np.type

    def compute(x: Any, low: Any, high: Any, *rest: Any) -> None:
        out = rest[-2]
        t = rest[-1]
        if not t.size:
            return
        np.copyto(t, x)
        if given and low > high:
            raise errors.InvalidArgumentError("input_min is above input_max", got=f"{low} and {high}")
        ends = (float(low), float(high)) if given else (float(t.min()), float(t.max()))
        first, last, step = _scale(*ends, bits, signed, narrow)
        if not step:
            out.fill(0)
            return
        if given:
            np.clip(t, kind(first), kind(last), t)
        np.divide(t, kind(step), t)
        if up:
            np.add(t, kind(0.5), t)
            np.floor(t, t)
        else:
            np.rint(t, t)
        np.multiply(t, kind(step), t)
        np.copyto(out, t, "same_kind")

    return compute, (Scratch(wide, shapes[0]),)


def _there_and_back_v2(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    return _there_and_back(ctx, shapes, ctx.attr("num_bits"))


def _there_and_back_v3(ctx: BuildContext, shapes: Sequence[Shape], values: Values) -> Made:
    return _there_and_back(ctx, shapes, values[3][0])


def _first_of(ctx: BuildContext, shapes: Sequence[Shape], values: Values) -> Sequence[Shape]:
    return [shapes[0]]


def _quantize(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    mode, info = ctx.attr("mode"), np.iinfo(ctx.outputs[0].dtype.np)
    least, most, width = int(info.min), int(info.max), ctx.attr("ensure_minimum_range")
    even, narrow = ctx.attr("round_mode") == "HALF_TO_EVEN", int(ctx.attr("narrow_range"))

    def compute(x: Any, low: Any, high: Any, out: Any, out_low: Any, out_high: Any, t: Any) -> None:
        if not -math.inf < low <= high < math.inf:
            raise errors.InvalidArgumentError("min_range and max_range are no range", got=f"{low} and {high}")
        first = min(0.0, float(low))
        last = max(0.0, float(high), first + max(1.0, abs(float(low)), abs(float(high))) * width)
        np.copyto(t, x)
        if mode == "SCALED":
            step = max((end / n for end, n in ((first, least + narrow), (last, most)) if end * n > 0), default=0.0)
            first, last = (least + narrow) * step, most * step
            np.clip(t, first, last, t)
            np.divide(t, step or 1.0, t)  # without a step all are 0: what is unsigned holds no negative range
            t[...] = np.rint(t) if even else _away(t)
        elif mode == "MIN_FIRST":
            step = (last - first) / (2**info.bits - 1)
            np.divide(t, step, t)
            t[...] = _away(t)
            np.subtract(t, float(_away(np.float64(first / step))) - least, t)
        else:
            np.clip(t, first, last, t)
            np.subtract(t, first, t)
            np.multiply(t, (most - least) / (last - first), t)
            np.subtract(t, 2.0 ** (info.bits - 1) if least else 0.0, t)
            t[...] = _away(t)
        np.clip(t, least, most, t)
        np.copyto(out, t, "unsafe")
        out_low[...], out_high[...] = first, last

    return compute, (Scratch(dtypes.float64, shapes[0]),)


def _dequantize(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    mode, info = ctx.attr("mode"), np.iinfo(ctx.inputs[0].dtype.np)
    least, most = int(info.min), int(info.max)
    start = least + int(ctx.attr("narrow_range"))

    def compute(x: Any, low: Any, high: Any, out: Any, t: Any) -> None:
        first, last = float(low), float(high)
        if mode == "SCALED":
            step = max(first / start, last / most) if least else last / most
            np.multiply(x, step, t)
        else:
            step = (last - first) / (most - least)
            if mode == "MIN_FIRST" and step:
                first = float(_away(np.float64(first / step))) * step
            zero = least if mode == "MIN_FIRST" else -(2 ** (info.bits - 1)) if least else 0
            np.subtract(x, float(zero), t)
            np.multiply(t, step, t)
            np.add(t, first, t)
        np.copyto(out, t, "same_kind")

    return compute, (Scratch(dtypes.float64, shapes[0]),)


def _scalars(ctx: BuildContext, shapes: Sequence[Shape]) -> Sequence[Shape]:
    return [shapes[0], (), ()]


def _plain(op: str, make: Make) -> KernelDef:
    return KernelDef(op, "cpu", bind(make, like_first))


KERNELS = [
    _plain("FakeQuantWithMinMaxArgs", _fake_args),
    _plain("FakeQuantWithMinMaxArgsGradient", _fake_args_gradient),
    _plain("FakeQuantWithMinMaxVars", _fake_vars),
    KernelDef("FakeQuantWithMinMaxVarsGradient", "cpu", bind(_fake_vars_gradient, _gradient_shapes)),
    _plain("FakeQuantWithMinMaxVarsPerChannel", _fake_vars),
    KernelDef("FakeQuantWithMinMaxVarsPerChannelGradient", "cpu", bind(_fake_vars_gradient, _gradient_shapes)),
    _plain("QuantizeAndDequantizeV2", _there_and_back_v2),
    KernelDef("QuantizeAndDequantizeV3", "cpu", sized.bind(_there_and_back_v3, _first_of, 3), host=("num_bits",)),
    KernelDef("QuantizeV2", "cpu", bind(_quantize, _scalars)),
    _plain("Dequantize", _dequantize),
]
