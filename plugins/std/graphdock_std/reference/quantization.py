"""Oracles of specs/quantization.yaml: one number at a time in float64, by the index of the nearest of those that are left."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np


def _away(x: float) -> int:
    """Rounded, halves away from zero."""
    return int(math.copysign(math.floor(abs(x) + 0.5), x))


def _levels(low: float, high: float, num_bits: int, narrow: bool) -> tuple[int, int, float]:
    """Return how many steps lie below and above zero, and how long one is."""
    least, most = int(narrow), 2**num_bits - 1
    step = (high - low) / (most - least)
    zero = min(max(_away(least - low / step), least), most)
    return zero - least, most - zero, step


def _fake(x: float, low: float, high: float, num_bits: int, narrow: bool) -> float:
    if low == high == 0:
        return 0.0
    below, above, step = _levels(low, high, num_bits, narrow)
    return min(max(math.floor(x / step + 0.5), -below), above) * step


def _inside(x: float, low: float, high: float, num_bits: int, narrow: bool) -> int:
    """-1 below the range, 1 above it, 0 inside."""
    if low == high == 0:
        return 0
    below, above, step = _levels(low, high, num_bits, narrow)
    return -1 if x < -below * step else 1 if x > above * step else 0


def _each(function: Callable[[float], float], x: Any) -> np.ndarray:
    return np.array([function(float(v)) for v in np.ravel(x)], np.float32).reshape(np.shape(x))


def fake_quant(
    inputs: Any, min: Any = -6.0, max: Any = 6.0, num_bits: int = 8, narrow_range: bool = False, **_: Any
) -> np.ndarray:
    return _each(lambda v: _fake(v, float(min), float(max), num_bits, narrow_range), inputs)


def fake_quant_gradient(
    gradients: Any,
    inputs: Any,
    min: Any = -6.0,
    max: Any = 6.0,
    num_bits: int = 8,
    narrow_range: bool = False,
    **_: Any,
) -> np.ndarray:
    sides = _each(lambda v: _inside(v, float(min), float(max), num_bits, narrow_range), inputs)
    return np.where(sides == 0, gradients, 0).astype(np.float32)


def fake_quant_vars_gradient(
    gradients: Any, inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False, **_: Any
) -> tuple[np.ndarray, ...]:
    sides = _each(lambda v: _inside(v, float(min), float(max), num_bits, narrow_range), inputs)
    wide = np.asarray(gradients).astype(np.float64)
    sums = [np.array(math.fsum(np.ravel(wide[sides == s]).tolist()), np.float32) for s in (-1, 1)]
    return np.where(sides == 0, gradients, 0).astype(np.float32), *sums


def fake_quant_per_channel(
    inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False, **_: Any
) -> np.ndarray:
    made = np.empty_like(inputs)
    for d in range(inputs.shape[-1]):
        made[..., d] = fake_quant(inputs[..., d], min[d], max[d], num_bits, narrow_range)
    return made


def fake_quant_per_channel_gradient(
    gradients: Any, inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False, **_: Any
) -> tuple[np.ndarray, ...]:
    slope, low, high = np.empty_like(inputs), np.empty_like(min), np.empty_like(max)
    for d in range(inputs.shape[-1]):
        slope[..., d], low[d], high[d] = fake_quant_vars_gradient(
            gradients[..., d], inputs[..., d], min[d], max[d], num_bits, narrow_range
        )
    return slope, low, high


def quantize_and_dequantize(
    input: Any,
    input_min: Any,
    input_max: Any,
    num_bits: Any = 8,
    signed_input: bool = True,
    range_given: bool = False,
    round_mode: str = "HALF_TO_EVEN",
    narrow_range: bool = False,
    **_: Any,
) -> np.ndarray:
    x = np.asarray(input).astype(np.float64)
    bits = int(num_bits)
    if not x.size:
        return np.array(input)
    low, high = (float(input_min), float(input_max)) if range_given else (x.min(), x.max())
    least = -(2 ** (bits - 1)) + int(narrow_range) if signed_input else 0
    most = 2 ** (bits - 1) - 1 if signed_input else 2**bits - 1
    steps = [end / n for end, n in ((low, least), (high, most)) if end * n > 0]
    step = max(steps)
    rounded = round if round_mode == "HALF_TO_EVEN" else lambda v: math.floor(v + 0.5)

    def one(v: float) -> float:
        v = min(max(v, least * step), most * step) if range_given else v
        return rounded(v / step) * step

    return np.array([one(v) for v in x.ravel().tolist()]).reshape(x.shape).astype(input.dtype)


def _range(low: float, high: float, least_width: float) -> tuple[float, float]:
    start = min(0.0, low)
    return start, max(0.0, high, start + max(1.0, abs(low), abs(high)) * least_width)


def quantize(
    input: Any,
    min_range: Any,
    max_range: Any,
    T: Any,
    mode: str = "MIN_COMBINED",
    round_mode: str = "HALF_AWAY_FROM_ZERO",
    narrow_range: bool = False,
    ensure_minimum_range: float = 0.01,
    **_: Any,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    dtype = np.dtype(getattr(T, "name", T))
    info = np.iinfo(dtype)
    low, high = _range(float(min_range), float(max_range), ensure_minimum_range)
    if mode == "SCALED":
        least = int(info.min) + int(narrow_range)
        step = max((end / n for end, n in ((low, least), (high, int(info.max))) if end * n > 0), default=0.0)
        low, high = least * step, int(info.max) * step
        near = round if round_mode == "HALF_TO_EVEN" else _away
        made = _all(input, lambda v: near(min(max(v, low), high) / (step or 1.0)))
    elif mode == "MIN_FIRST":
        step = (high - low) / (2**info.bits - 1)
        made = _all(input, lambda v: _away(v / step) - _away(low / step) + int(info.min))
    else:
        step = (high - low) / (int(info.max) - int(info.min))
        offset = 2 ** (info.bits - 1) if info.min < 0 else 0
        made = _all(input, lambda v: _away((min(max(v, low), high) - low) / step - offset))
    clipped = np.array([min(max(v, int(info.min)), int(info.max)) for v in made], dtype).reshape(np.shape(input))
    return clipped, np.array(low, np.float32), np.array(high, np.float32)


def _all(x: Any, function: Callable[[float], int]) -> list[int]:
    return [function(float(v)) for v in np.ravel(x)]


def dequantize(
    input: Any, min_range: Any, max_range: Any, mode: str = "MIN_COMBINED", narrow_range: bool = False, **_: Any
) -> np.ndarray:
    info = np.iinfo(input.dtype)
    low, high, least = float(min_range), float(max_range), int(info.min)
    if mode == "SCALED":
        ends = [(high, int(info.max))] if least == 0 else [(low, least + int(narrow_range)), (high, int(info.max))]
        step = max(end / n for end, n in ends)
        return _each(lambda v: v * step, input)
    step = (high - low) / (int(info.max) - least)
    if mode == "MIN_FIRST":
        start = _away(low / step) * step if step else low
        return _each(lambda v: start + (v - least) * step, input)
    offset = 2 ** (info.bits - 1) if least < 0 else 0
    return _each(lambda v: (v + offset) * step + low, input)
