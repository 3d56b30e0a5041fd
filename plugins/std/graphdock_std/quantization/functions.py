"""Public functions of quantisation: names, arguments and defaults are TensorFlow 1's.

Plain integer dtypes stand for TensorFlow's quantised ones: uint8 for quint8, int8 for qint8, and so on.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from graphdock import ops as _ops
from graphdock.typing import DTypeLike, TensorLike


class Quantized(NamedTuple):
    """Integers, and the range that they stand for."""

    output: Any
    output_min: Any
    output_max: Any


def quantize(
    input: TensorLike,
    min_range: TensorLike,
    max_range: TensorLike,
    T: DTypeLike,
    mode: str = "MIN_COMBINED",
    round_mode: str = "HALF_AWAY_FROM_ZERO",
    name: str | None = None,
    narrow_range: bool = False,
    ensure_minimum_range: float = 0.01,
) -> Quantized:
    """Floats as integers of dtype ``T`` (uint8, int8, uint16, int16, int32) that stand for the range; by the op QuantizeV2.

    Args:
      mode: ``"MIN_COMBINED"``, ``"MIN_FIRST"`` or ``"SCALED"``.
      round_mode: ``"HALF_AWAY_FROM_ZERO"``, or ``"HALF_TO_EVEN"`` with mode SCALED.

    Returns:
      ``(output, output_min, output_max)``: the range is widened to hold zero and to be wide enough.
    """
    made = _ops.apply_op(
        "QuantizeV2",
        input=input,
        min_range=min_range,
        max_range=max_range,
        T=T,
        mode=mode,
        round_mode=round_mode,
        narrow_range=narrow_range,
        ensure_minimum_range=ensure_minimum_range,
        name=name,
    )
    return Quantized(*made)


def quantize_v2(
    input: TensorLike,
    min_range: TensorLike,
    max_range: TensorLike,
    T: DTypeLike,
    mode: str = "MIN_COMBINED",
    name: str | None = None,
    round_mode: str = "HALF_AWAY_FROM_ZERO",
    narrow_range: bool = False,
    ensure_minimum_range: float = 0.01,
) -> Quantized:
    """:func:`quantize` under its older name, with ``name`` before ``round_mode``."""
    return quantize(input, min_range, max_range, T, mode, round_mode, name, narrow_range, ensure_minimum_range)
