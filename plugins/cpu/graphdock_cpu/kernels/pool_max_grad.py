"""Gradients of maximum pools: each window hands its gradient to its first maximum, in row-major order.

Tap by tap, the windows that still wait and whose element equals their maximum hand over. Who waits and who equals is kept in bytes,
a quarter of a float; what is handed over is the gradient's bits times 0 or 1, so that an infinite one stays where it is.

Where windows overlap by much, it goes an axis at a time: the maxima over all axes but the first are made again, each window hands
to the first of them that equals it, and these to what they are the maximum of. For windows of 3x3 that is 6 taps, not 9. The first
maximum is the same one: the first row that has it, then the first in that row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from graphdock.contracts import BuildContext, DType, KernelDef, Scratch, dtypes
from numpy import add, copyto, equal, multiply

from graphdock_cpu.kernels.pool import Axis, axes_of, chunks_of, fold, joint_taps, lowest, share_images
from graphdock_cpu.kernels.sharing import Made
from graphdock_cpu.kernels.sliding import Shape, bind_sized

__all__ = ["KERNELS"]

#: Windows that are handed over at once: some lines of an image, while what they read and write is in the cache.
AT_ONCE = 1 << 17

#: Integers as wide as a float of so many bytes.
_BITS = {4: dtypes.int32, 8: dtypes.int64}

Index = tuple[slice, ...]


class _Stage:
    """Windows over some axes: what hands their gradients to elements.

    Attributes:
      part: the shape of the largest block of windows, which the buffers have.
    """

    def __init__(self, axes: Sequence[Axis], windows: Shape, bits: np.dtype[Any]) -> None:
        # blocks of lines along the first dim of an image, whether windows go along it or not
        stride = next((axis.stride for axis in axes if axis.at == 1), 1)
        taps, count = joint_taps(axes, len(windows)), windows[1]
        lines = max(1, min(count, AT_ONCE * count // max(1, math.prod(windows))))
        self.part = (windows[0], lines, *windows[2:])
        plain = slice(0, count)
        self.blocks = [_block(plain, stride, taps, a, min(a + lines, count)) for a in range(0, count, lines)]
        self.apart = all(axis.apart for axis in axes)
        # each element is in one window, so that all are written
        self.covers = self.apart and all(axis.counts.sum() == axis.size for axis in axes)
        self.last = len(taps) - 1
        self.bits = bits

    def __call__(self, x: Any, y: Any, g: Any, dx: Any, shares: Any, flags: Any, waiting: Any) -> None:
        """``dx`` of ``g``, for elements ``x`` whose maxima are ``y``; the last three are buffers of ``part``."""
        both, without = np.bitwise_and, np.bitwise_xor
        kind, moved, last, apart, count = dx.dtype, dx.view(self.bits), self.last, self.apart, len(y)
        if not self.covers:
            dx.fill(0)
        for lines, taps in self.blocks:
            maxima, given = y[:, lines], g[:, lines].view(self.bits)
            share, flag, wait = (buffer[:count, : lines.stop - lines.start] for buffer in (shares, flags, waiting))
            wait.fill(True)
            for number, at, source in taps:
                hit, rest, part = flag[at], wait[at], share[at]
                equal(x[source], maxima[at], hit)
                both(hit, rest, hit)
                if number < last:
                    without(rest, hit, rest)
                copyto(part, hit.view(np.int8))
                if apart:
                    multiply(part, given[at], moved[source])
                else:
                    multiply(part, given[at], part)
                    target = dx[source]
                    add(target, part.view(kind), target)


def _block(plain: slice, stride: int, taps: Sequence[tuple[Index, Index]], a: int, b: int) -> tuple[slice, list[Any]]:
    """Lines ``a`` to ``b`` of the windows; of each tap its number, the windows of these, their elements.

    plain: all lines, of a dim along which no windows go; the taps say nothing of it.
    """
    found = []
    for number, (at, source) in enumerate(taps):
        windows, elements = (plain if whole == slice(None) else whole for whole in (at[1], source[1]))
        start, stop = max(windows.start, a), min(windows.stop, b)
        if start < stop:
            offset = elements.start - windows.start * stride
            begin, end = start * stride + offset, (stop - 1) * stride + offset + 1
            found.append((number, _lines(at, slice(start - a, stop - a)), _lines(source, slice(begin, end, stride))))
    return slice(a, b), found


def _lines(index: Index, lines: slice) -> Index:
    return (index[0], lines, *index[2:])


def _between(shape: Shape, axes: Sequence[Axis], images: int) -> list[Shape]:
    """Shapes of some images pooled over all axes, over all but the first, and so on; last the images themselves."""
    dims = [images, *shape[1:]]
    found = [tuple(dims)]
    for axis in reversed(axes):
        dims[axis.at] = axis.out
        found.append(tuple(dims))
    return found[::-1]


def _one_by_one(axes: Sequence[Axis], levels: Sequence[Shape]) -> bool:
    """Return whether an axis at a time costs less: taps times windows, and a fifth of it for the maxima that are made again."""
    sizes = [len(axis.taps) * math.prod(level) for axis, level in zip(axes, levels[:-1], strict=True)]
    joint = math.prod(len(axis.taps) for axis in axes) * math.prod(levels[0])
    return len(axes) > 1 and sum(sizes) + sum(sizes[1:]) / 5 < joint


def _max_pool_grad(ctx: BuildContext, shapes: Sequence[Shape], out: Shape) -> Made:
    """``(x, y, grad) -> dx``."""
    axes, _ = axes_of(ctx, shapes[0])
    if not axes:
        return (lambda x, y, g, dx: np.copyto(dx, g)), ()
    return share_images(ctx, axes, (*shapes, out), lambda some: _grad_of(ctx, some[0]))


def _grad_of(ctx: BuildContext, shape: Shape) -> Made:
    narrow = ctx.outputs[0].dtype
    axes, _ = axes_of(ctx, shape)
    wide: DType = narrow.accumulator
    bits = _BITS[wide.size]
    images, chunks = chunks_of(shape)
    levels = _between(shape, axes, images)
    stages, inner = [_Stage(axes, levels[0], bits.np)], []
    if _one_by_one(axes, levels):
        stages = [_Stage([axis], level, bits.np) for axis, level in zip(axes, levels[:-1], strict=True)]
        inner = levels[1:-1]
    combine, start = lowest(narrow.np)
    # from the last axis to the second
    folds = [fold(axis, len(shape), combine, start) for axis in reversed(axes[1:])] if inner else []
    widened = wide is not narrow
    buffers = [Scratch(kind, stage.part) for stage in stages for kind in (bits, dtypes.bool_, dtypes.bool_)]
    maxima, grads = [Scratch(narrow, s) for s in inner], [Scratch(wide, s) for s in inner]
    ends = [Scratch(wide, levels[0]), Scratch(wide, levels[-1])] if widened else []
    depth, own = len(inner), len(buffers)

    def compute(x: Any, y: Any, g: Any, dx: Any, *scratch: Any) -> None:
        masks = [scratch[i : i + 3] for i in range(0, own, 3)]
        for chunk in chunks:
            rest = [s[: chunk.stop - chunk.start] for s in scratch[own:]]
            pooled, between = rest[:depth], rest[depth : 2 * depth]
            given, result = (g[chunk], dx[chunk]) if not widened else rest[2 * depth :]
            if widened:
                copyto(given, g[chunk])
            elements = [*pooled, x[chunk]]
            for place, fold_axis in enumerate(folds):
                fold_axis(elements[depth - place], elements[depth - place - 1])
            values, slopes = [y[chunk], *elements], [given, *between, result]
            for i, stage in enumerate(stages):
                stage(values[i + 1], values[i], slopes[i], slopes[i + 1], *masks[i])
            if widened:
                copyto(dx[chunk], result, "same_kind")

    return compute, (*buffers, *maxima, *grads, *ends)


def _input_shape(ctx: BuildContext, x: Any, *_: Any) -> Shape:
    return tuple(x.shape)


_GRAD = bind_sized(_max_pool_grad, _input_shape)

KERNELS = [KernelDef("MaxPoolGrad", "cpu", _GRAD), KernelDef("MaxPool3DGrad", "cpu", _GRAD)]
