"""Dilation of images by a structuring function, with its gradients, tap by tap.

A sum of two and a maximum round no more in float16 than in float32, so only the gradients, which add many, are widened.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from graphdock.contracts import BuildContext, KernelDef, Scratch, dtypes
from numpy import add, copyto, dot, equal, greater, maximum

from graphdock_cpu.kernels.pool import tap as tap_of
from graphdock_cpu.kernels.sliding import Shape, bind_sized, padding_before

__all__ = ["KERNELS"]

Made = tuple[Callable[..., Any], tuple[Scratch, ...]]
#: Element of the filter, the windows that have it, and where they have it.
Tap = tuple[tuple[int, ...], tuple[slice, ...], tuple[slice, ...]]


def _taps(ctx: BuildContext, x: Shape, w: Shape) -> tuple[Shape, list[Tap]]:
    """The shape of the dilation, and its taps."""
    strides, rates, padding = (ctx.attr(name) for name in ("strides", "rates", "padding"))
    counts, found = [], []
    for size, window, stride, rate in zip(x[1:3], w[:2], strides[1:3], rates[1:3], strict=True):
        span = (window - 1) * rate + 1
        count = -(-size // stride) if padding == "SAME" else max(0, (size - span) // stride + 1)
        before = padding_before(padding, 0, size, count, stride, span)
        counts.append(count)
        found.append([(k, *tap_of(size, count, stride, k * rate - before)) for k in range(window)])
    taps: list[Tap] = []
    for (k, a, i), (m, b, j) in itertools.product(*found):
        if a.start < a.stop and b.start < b.stop:
            taps.append(((k, m), (slice(None), a, b), (slice(None), i, j)))
    return (x[0], *counts, x[3]), taps


def _dilate(ctx: BuildContext, x: Shape, w: Shape) -> tuple[Shape, list[Tap], Callable[..., None]]:
    out, taps = _taps(ctx, x, w)
    lowest = ctx.inputs[0].dtype.np.type(-np.inf)

    def dilate(x: Any, w: Any, y: Any, sums: Any) -> None:
        y.fill(lowest)
        for tap, at, source in taps:
            part, target = sums[at], y[at]
            add(x[source], w[tap], part)
            maximum(target, part, out=target)

    return out, taps, dilate


def _forward(ctx: BuildContext, shapes: Sequence[Shape], out: Shape) -> Made:
    dims, _, dilate = _dilate(ctx, *shapes)
    return dilate, (Scratch(ctx.inputs[0].dtype, dims),)


def _backprop(of_filter: bool) -> Callable[[BuildContext, Sequence[Shape], Shape], Made]:
    """``(x, w, dy) -> dx`` or ``-> dw``."""

    def made(ctx: BuildContext, shapes: Sequence[Shape], out: Shape) -> Made:
        dims, taps, dilate = _dilate(ctx, *shapes[:2])
        dtype = ctx.outputs[0].dtype
        wide, rows = dtype.accumulator, math.prod(dims[:3])
        scratch = [Scratch(dtype, dims), Scratch(dtype, dims), Scratch(dtypes.bool_, dims), Scratch(dtypes.bool_, dims)]
        scratch += [Scratch(wide, dims), Scratch(wide, out), Scratch(wide, (rows,))]
        both = np.logical_and

        def compute(x: Any, w: Any, dy: Any, result: Any, *buffers: Any) -> None:
            y, sums, waiting, flags, share, total, ones = buffers
            dilate(x, w, y, sums)
            waiting.fill(True)
            total.fill(0)
            ones.fill(1)
            for tap, at, source in taps:
                flag, wait = flags[at], waiting[at]
                add(x[source], w[tap], sums[at])
                equal(sums[at], y[at], flag)
                both(flag, wait, flag)
                greater(wait, flag, wait)
                if of_filter:
                    share.fill(0)
                    copyto(share[at], dy[at], where=flag)
                    dot(ones, share.reshape(rows, dims[3]), total[tap])
                else:
                    part, target = share[at], total[source]
                    part.fill(0)
                    copyto(part, dy[at], where=flag)
                    add(target, part, target)
            copyto(result, total, "same_kind")

        return compute, tuple(scratch)

    return made


def _pick(of_filter: bool) -> Callable[[BuildContext, Sequence[Shape], Shape], Made]:
    """``(x, w, g) -> picked``: g of the shape of x or w, picked of the shape of the dilation."""

    def made(ctx: BuildContext, shapes: Sequence[Shape], out: Shape) -> Made:
        dims, taps, dilate = _dilate(ctx, *shapes[:2])
        dtype = ctx.outputs[0].dtype
        scratch = (Scratch(dtype, dims), Scratch(dtype, dims), Scratch(dtypes.bool_, dims), Scratch(dtypes.bool_, dims))
        both = np.logical_and

        def compute(x: Any, w: Any, g: Any, result: Any, y: Any, sums: Any, waiting: Any, flags: Any) -> None:
            dilate(x, w, y, sums)
            waiting.fill(True)
            result.fill(0)
            for tap, at, source in taps:
                flag, wait = flags[at], waiting[at]
                add(x[source], w[tap], sums[at])
                equal(sums[at], y[at], flag)
                both(flag, wait, flag)
                greater(wait, flag, wait)
                copyto(result[at], g[tap] if of_filter else g[source], where=flag)

        return compute, scratch

    return made


def _output(ctx: BuildContext, x: Any, w: Any, *_: Any) -> Shape:
    return _taps(ctx, x.shape, w.shape)[0]


KERNELS = [
    KernelDef("Dilation2D", "cpu", bind_sized(_forward, _output)),
    KernelDef("Dilation2DBackpropInput", "cpu", bind_sized(_backprop(False), lambda ctx, x, w, dy: x.shape)),
    KernelDef("Dilation2DBackpropFilter", "cpu", bind_sized(_backprop(True), lambda ctx, x, w, dy: w.shape)),
    KernelDef("Dilation2DBackpropInputGrad", "cpu", bind_sized(_pick(False), _output)),
    KernelDef("Dilation2DBackpropFilterGrad", "cpu", bind_sized(_pick(True), _output)),
]
