"""Pools that say where their maxima are, and gradients that go by those indices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from graphdock.contracts import BuildContext, KernelDef, Scratch, dtypes, errors
from numpy import add, copyto, equal, greater, maximum

from graphdock_cpu.kernels.pool import axes_of, chunks_of, joint_taps
from graphdock_cpu.kernels.shaped import bind
from graphdock_cpu.kernels.sliding import Shape

__all__ = ["KERNELS"]

Made = tuple[Callable[..., Any], tuple[Scratch, ...]]


def _pool(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    """``(x) -> (y, argmax)``: the maximum tap by tap, then the first tap that equals it."""
    (shape,) = shapes
    axes, out = axes_of(ctx, shape)
    taps = joint_taps(axes, 4)
    images, chunks = chunks_of(shape)
    part, size = (images, *out[1:]), math.prod(shape[1:])
    positions = np.arange(size, dtype=ctx.outputs[1].dtype.np).reshape(1, *shape[1:])
    batched = bool(ctx.attr("include_batch_in_index"))
    starts = (np.arange(shape[0], dtype=positions.dtype) * size).reshape(-1, 1, 1, 1)
    lowest = ctx.outputs[0].dtype.np.type(-np.inf)
    both = np.logical_and

    def compute(x: Any, y: Any, argmax: Any, *buffers: Any) -> None:
        argmax.fill(0)
        y.fill(lowest)
        for chunk in chunks:
            waiting, flags = (b[: chunk.stop - chunk.start] for b in buffers)
            xs, ys, into = x[chunk], y[chunk], argmax[chunk]
            for at, source in taps:
                target = ys[at]
                maximum(target, xs[source], out=target)
            waiting.fill(True)
            for at, source in taps:
                flag, wait = flags[at], waiting[at]
                equal(xs[source], ys[at], flag)
                both(flag, wait, flag)
                copyto(into[at], positions[(slice(None), *source[1:])], where=flag)
                greater(wait, flag, wait)
            if batched:
                add(into, starts[chunk], into)

    return compute, (Scratch(dtypes.bool_, part), Scratch(dtypes.bool_, part))


def _index(ctx: BuildContext, shape: Shape, argmax: Any) -> Any:
    """Indices into the flat input.

    Raises:
      InvalidArgumentError: one is outside of it.
    """
    size = math.prod(shape[1:])
    batched = bool(ctx.attr("include_batch_in_index"))
    limit = size * shape[0] if batched else size
    if argmax.size and not (argmax.min() >= 0 and argmax.max() < limit):
        wrong = argmax[(argmax < 0) | (argmax >= limit)].flat[0]
        raise errors.InvalidArgumentError(
            "argmax has an index outside of the input", expected=f"0 to {limit - 1}", got=str(wrong)
        )
    return argmax if batched else argmax + (np.arange(shape[0]) * size).reshape(-1, 1, 1, 1)


def _grad(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    """``(x, grad, argmax) -> dx``."""
    shape, narrow = shapes[0], ctx.outputs[0].dtype
    wide = narrow.accumulator

    def compute(_: Any, g: Any, argmax: Any, dx: Any, *buffer: Any) -> None:
        target = buffer[0] if buffer else dx
        target.fill(0)
        np.add.at(target.reshape(-1), _index(ctx, shape, argmax).ravel(), g.ravel().astype(wide.np))
        if buffer:
            np.copyto(dx, target, "same_kind")

    return compute, () if wide is narrow else (Scratch(wide, shape),)


def _grad_grad(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    """``(x, grad, argmax) -> d``."""

    def compute(_: Any, g: Any, argmax: Any, d: Any) -> None:
        np.copyto(d, g.reshape(-1)[_index(ctx, shapes[0], argmax)])

    return compute, ()


def _pools(ctx: BuildContext, shapes: Sequence[Shape]) -> Sequence[Shape]:
    return [axes_of(ctx, shapes[0])[1]] * 2


KERNELS = [
    KernelDef("MaxPoolWithArgmax", "cpu", bind(_pool, _pools)),
    KernelDef("MaxPoolGradWithArgmax", "cpu", bind(_grad, lambda ctx, shapes: [shapes[0]])),
    KernelDef("MaxPoolGradGradWithArgmax", "cpu", bind(_grad_grad, lambda ctx, shapes: [shapes[2]])),
]
