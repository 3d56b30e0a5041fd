"""Numbers rounded to those of a range: as floats that integers could stand for, and as the integers."""

from __future__ import annotations

from typing import Any

import numpy as np
from graphdock.contracts import KernelDef, dtypes, errors

from graphdock_cuda.compiled import source
from graphdock_cuda.kernel import family
from graphdock_cuda.kernels.reduce import reduce_axes, reducer
from graphdock_cuda.launch import f32, f64, i32, i64
from graphdock_cuda.work import ErrorWord, Operand, Work, blocks

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)


def _no_range(text: str) -> ErrorWord:
    return ErrorWord(lambda first, second: errors.InvalidArgumentError(text))


def _fixed_range(w: Work) -> tuple[bytes, ...]:
    """The ends of the attributes' range, moved so that zero is one of its numbers, and the step between these."""
    low, high = np.float32(w.attr("min")), np.float32(w.attr("max"))
    if not (low < high or (low == 0 and high == 0)):
        raise errors.InvalidArgumentError("min must be below max, or both be 0", got=f"{low} and {high}")
    if low == 0 and high == 0:
        return f32(0.0), f32(0.0), f32(1.0)
    least, most = np.float32(int(w.attr("narrow_range"))), np.float32(2 ** w.attr("num_bits") - 1)
    step = (high - low) / (most - least)
    start = least - low / step
    zero = np.clip(np.copysign(np.floor(np.abs(start) + np.float32(0.5)), start), least, most)
    return f32(float((least - zero) * step)), f32(float((most - zero) * step)), f32(float(step))


def _fake(w: Work, entry: str, size: int, *args: Any) -> None:
    if size:
        w.launch(source("report.cuh", "fake_quant.cuh"), entry, blocks(size, 1024), 256, *args)


@kernel("FakeQuantWithMinMaxArgs")
def fake_quant_args(w: Work) -> None:
    x = w.input(0)
    _fake(w, "fixed", x.size, x, w.output(x.shape), i64(x.size), *_fixed_range(w))


@kernel("FakeQuantWithMinMaxArgsGradient")
def fake_quant_args_gradient(w: Work) -> None:
    g, x = w.inputs
    low, high, _ = _fixed_range(w)
    _fake(w, "fixed_gradient", x.size, g, x, w.output(x.shape), i64(x.size), low, high)


def _facts(w: Work, x: Operand, low: Operand) -> tuple[Any, ...]:
    """Sizes, what an index may be, and the error, as the sources take them."""
    bad = _no_range("min must be below max, or both be 0")
    most, least = 2 ** w.attr("num_bits") - 1, int(w.attr("narrow_range"))
    return i64(x.size), i64(low.size), f32(least), f32(most), bad


@kernel("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def fake_quant_vars(w: Work) -> None:
    x, low, high = w.inputs
    _fake(w, "learnt", x.size, x, low, high, w.output(x.shape), *_facts(w, x, low))


@kernel("FakeQuantWithMinMaxVarsGradient", "FakeQuantWithMinMaxVarsPerChannelGradient")
def fake_quant_vars_gradient(w: Work) -> None:
    """Lay aside what is outside of the range, and summed over all dims but the ranges'."""
    g, x, low, high = w.inputs
    out, sides = w.output(x.shape), [w.output(low.shape, 1), w.output(high.shape, 2)]
    beyond = [w.scratch(dtypes.float32, max(x.size, 1)).reshaped(*x.shape) for _ in sides]
    _fake(w, "learnt_gradient", x.size, g, x, low, high, out, *beyond, *_facts(w, x, low))
    for part, side in zip(beyond, sides, strict=True):
        reduce_axes(w, reducer("sum", dtypes.float32), part, range(x.rank - low.rank), side)


@kernel("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3")
def there_and_back(w: Work) -> None:
    x, low, high = w.inputs[:3]
    bits = int(w.host("num_bits")) if w.has("num_bits") else w.attr("num_bits")
    if not 1 <= bits <= 62:
        raise errors.InvalidArgumentError(f"num_bits is {bits}", expected="1 to 62")
    out = w.output(x.shape)
    if not x.size:
        return
    if not w.attr("range_given"):
        low, high = (w.scratch(x.dtype, 1).reshaped() for _ in range(2))
        for name, end in (("min", low), ("max", high)):
            reduce_axes(w, reducer(name, x.dtype), x, range(x.rank), end)
    signed, narrow = bool(w.attr("signed_input")), int(w.attr("narrow_range"))
    least = -(2 ** (bits - 1)) + narrow if signed else 0
    most = 2 ** (bits - 1) - 1 if signed else 2**bits - 1
    up = w.node.op == "QuantizeAndDequantizeV2" and w.attr("round_mode") == "HALF_UP"
    kept = source(
        "report.cuh", "there_and_back.cuh", ELEMENT=w.ctype(x), GIVEN=str(int(w.attr("range_given"))), UP=str(int(up))
    )
    bad = _no_range("input_min is above input_max")
    w.launch(
        kept, "there_and_back", blocks(x.size, 1024), 256, x, low, high, out, i64(x.size), f64(least), f64(most), bad
    )


_MODES = {"MIN_COMBINED": "0", "MIN_FIRST": "1", "SCALED": "2"}


@kernel("QuantizeV2")
def quantize(w: Work) -> None:
    x, low, high = w.inputs
    out, ends = w.output(x.shape), [w.output((), 1), w.output((), 2)]
    info = np.iinfo(out.dtype.np)
    kept = source(
        "complex.cuh", "scalar.cuh", "report.cuh", "quantize.cuh", ELEMENT=w.ctype(out), MODE=_MODES[w.attr("mode")]
    )
    facts = (f64(info.min), f64(info.max), i32(info.bits), f64(w.attr("ensure_minimum_range")))
    how = (i32(w.attr("round_mode") == "HALF_TO_EVEN"), f64(int(w.attr("narrow_range"))))
    bad = _no_range("min_range and max_range are no range")
    w.launch(kept, "quantize", blocks(x.size, 1024), 256, x, low, high, out, *ends, i64(x.size), *facts, *how, bad)


@kernel("Dequantize")
def dequantize(w: Work) -> None:
    x, low, high = w.inputs
    out = w.output(x.shape)
    if not x.size:
        return
    info = np.iinfo(x.dtype.np)
    kept = source(
        "complex.cuh", "scalar.cuh", "report.cuh", "quantize.cuh", ELEMENT=w.ctype(x), MODE=_MODES[w.attr("mode")]
    )
    facts = (f64(info.min), f64(info.max), i32(info.bits), f64(int(w.attr("narrow_range"))))
    w.launch(kept, "dequantize", blocks(x.size, 1024), 256, x, low, high, out, i64(x.size), *facts)
