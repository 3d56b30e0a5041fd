"""Shape rules of Fourier transforms between real numbers and half of their spectrum."""

from __future__ import annotations

from typing import Any

from graphdock.ops import ShapeContext, symbolic

from graphdock_std.shape_support import Dims, known


@symbolic
def rfft(ctx: ShapeContext) -> list[Dims]:
    """``(input, fft_length)``; the last axis gets ``fft_length // 2 + 1``, of 0 none."""
    return _transformed(ctx, True)


@symbolic
def irfft(ctx: ShapeContext) -> list[Dims]:
    """``(input, fft_length)``; the last axes get ``fft_length``."""
    return _transformed(ctx, False)


def _transformed(ctx: ShapeContext, half: bool) -> list[Dims]:
    x = ctx.shape("input")
    if x is None:
        return [None]
    axes = int(ctx.opdef.name[-2]) if ctx.opdef.name.endswith("D") else 1
    values = ctx.values("fft_length")
    lengths: tuple[Any, ...] = values if isinstance(values, tuple) else (None,) * axes
    for n in lengths:
        if known(n) and n < 0:
            raise ctx.fail(f"fft_length must not be negative, but it is {list(lengths)}")
    last = lengths[-1]
    if half:
        last = ((last // 2 + 1) if last else 0) if known(last) else None if last is None else ctx.derived("half", last)
    return [(*x[: len(x) - len(lengths)], *lengths[:-1], last)]
