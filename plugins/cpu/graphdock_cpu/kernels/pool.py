"""Pools over any dims of a batch, and their gradients.

A maximum or a sum over a window is one over its rows, then one over its columns: an axis at a time, as many calls per axis as
the window is long, on some images at once so that what is between the axes stays in the cache. Axes are those of the tensor as
it lies there, so that the place of the channels makes no difference. Gradients of maximum pools stand in ``pool_max_grad``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from graphdock.contracts import BuildContext, KernelDef, Scratch, dtypes, errors
from numpy import add, copyto, divide, equal, greater

from graphdock_cpu.kernels.sharing import Made, share
from graphdock_cpu.kernels.sliding import Shape, bind_sized, padding_before, sizes_in

__all__ = ["KERNELS", "Axis", "axes_of", "chunks_of", "fold", "joint_taps", "lowest", "share_images", "tap"]

#: Elements of the images that are pooled at once.
AT_ONCE = 1 << 16


@dataclass(frozen=True)
class Axis:
    """Windows over one axis.

    Attributes:
      taps: ``(out, in)`` slices for each element of the window: the windows that have it, and where they have it. Those
        that all windows have come first.
      counts: elements in each window, without padding.
    """

    at: int
    size: int
    out: int
    window: int
    stride: int
    taps: tuple[tuple[slice, slice], ...]

    @property
    def full(self) -> bool:
        """Return whether some tap is in every window, so that it can be written instead of added."""
        return bool(self.taps) and self.taps[0][0] == slice(0, self.out)

    @property
    def apart(self) -> bool:
        """Return whether no element is in two windows."""
        return self.stride >= self.window

    @property
    def counts(self) -> np.ndarray[Any, Any]:
        found = np.zeros(self.out)
        for out, _ in self.taps:
            found[out] += 1
        return found


def axes_of(ctx: BuildContext, shape: Shape) -> tuple[list[Axis], Shape]:
    """The axes that a pool of this shape goes over, and the shape that it makes."""
    attrs = ctx.node.attrs
    padding, explicit = attrs["padding"], tuple(attrs.get("explicit_paddings") or (0,) * (2 * len(shape)))
    axes, made = [], []
    for at, (size, window, stride) in enumerate(zip(shape, attrs["ksize"], attrs["strides"], strict=True)):
        around = explicit[2 * at : 2 * at + 2]
        out = -(-size // stride) if padding == "SAME" else max(0, (size + sum(around) - window) // stride + 1)
        before = padding_before(padding, around[0], size, out, stride, window)
        made.append(out)
        if (window, stride, out) != (1, 1, size) or before:
            there = range(max(0, before - (out - 1) * stride), min(window, before + size))  # beyond is padding alone
            taps = [tap(size, out, stride, k - before) for k in there]
            taps.sort(key=lambda tap: tap[0] != slice(0, out))
            axes.append(Axis(at, size, out, window, stride, tuple(t for t in taps if t[0].start < t[0].stop)))
    return axes, tuple(made)


def tap(size: int, out: int, stride: int, offset: int) -> tuple[slice, slice]:
    """The windows whose element at ``offset`` exists, and those elements."""
    first = max(0, -(offset // stride))
    last = min(out, (size - 1 - offset) // stride + 1) if size > offset else 0
    start = first * stride + offset
    return slice(first, max(first, last)), slice(start, start + (last - first - 1) * stride + 1, stride)


def _in(rank: int, at: int, where: slice) -> tuple[slice, ...]:
    return tuple(where if i == at else slice(None) for i in range(rank))


def chunks_of(shape: Shape) -> tuple[int, list[slice]]:
    """How many images are pooled at once, and which."""
    images = max(1, min(shape[0], AT_ONCE // max(1, math.prod(shape[1:]))))  # of no elements, windows of padding alone
    return images, [slice(b, min(b + images, shape[0])) for b in range(0, shape[0], images)]


def fold(axis: Axis, rank: int, combine: Callable[..., Any], start: Any) -> Callable[[Any, Any], None]:
    """``fold(x, y)``: one axis of windows into one axis of results."""
    taps = [(_in(rank, axis.at, out), _in(rank, axis.at, source)) for out, source in axis.taps]
    full = axis.full

    def fold_all(x: Any, y: Any) -> None:
        if full:
            copyto(y, x[taps[0][1]])
        else:
            y.fill(start)
        for out, source in taps[1:] if full else taps:
            part = y[out]
            combine(part, x[source], out=part)

    if not full or len(taps) < 2 or axis.taps[1][0] != slice(0, axis.out):
        return fold_all
    (_, first), (_, second), *rest = taps

    def fold_two(x: Any, y: Any) -> None:
        combine(x[first], x[second], out=y)
        for out, source in rest:
            part = y[out]
            combine(part, x[source], out=part)

    return fold_two


def _between(shape: Shape, axes: Sequence[Axis], images: int) -> list[Shape]:
    """Shapes after each axis but the last, for some images."""
    dims, found = [images, *shape[1:]], []
    for axis in axes[:-1]:
        dims[axis.at] = axis.out
        found.append(tuple(dims))
    return found


def share_images(
    ctx: BuildContext, axes: Sequence[Axis], shapes: Sequence[Shape], make: Callable[[Sequence[Shape]], Made]
) -> Made:
    """A kernel all of whose tensors begin with the images, shared by them where no window goes over images."""
    if not axes or axes[0].at == 0:
        return make(shapes)
    work = math.prod(shapes[0]) * sum(len(axis.taps) for axis in axes) * len(shapes) / 4
    return share(ctx, (0,) * len(shapes), shapes, make, work)


def _pool(make: Callable[[np.dtype[Any]], tuple[Callable[..., Any], Any]], mean: bool) -> Callable[..., Made]:
    """``(x) -> y`` by a function of two that has a neutral element."""

    def made(ctx: BuildContext, shapes: Sequence[Shape], out: Shape) -> Made:
        axes, _ = axes_of(ctx, shapes[0])
        return share_images(ctx, axes, (*shapes, out), lambda some: pool(ctx, some[0], some[1]))

    def pool(ctx: BuildContext, shape: Shape, out: Shape) -> Made:
        narrow = ctx.outputs[0].dtype
        axes, _ = axes_of(ctx, shape)
        wide = narrow.accumulator if mean else narrow
        combine, start = make(wide.np)
        folds = [fold(axis, len(shape), combine, start) for axis in axes]
        images, chunks = chunks_of(shape)
        counts = _counts(axes, len(shape), wide.np) if mean else None
        widened = wide is not narrow
        sizes = [(images, *shape[1:])] * widened + _between(shape, axes, images) + [(images, *out[1:])] * widened

        def compute(x: Any, y: Any, *scratch: Any) -> None:
            for chunk in chunks:
                n = chunk.stop - chunk.start
                part, result = x[chunk], y[chunk]
                buffers = [s[:n] for s in scratch]
                if widened:
                    copyto(buffers[0], part)
                    part = buffers[0]
                    between, into = buffers[1:-1], buffers[-1]
                else:
                    between, into = buffers, result
                for fold, target in zip(folds, [*between, into], strict=True):
                    fold(part, target)
                    part = target
                if counts is not None:
                    divide(part, counts, into)
                if into is not result:
                    copyto(result, into, "same_kind")

        return (compute if axes else _copied), tuple(Scratch(wide, s) for s in sizes) if axes else ()

    return made


def _copied(x: Any, y: Any) -> None:
    np.copyto(y, x)


def _counts(axes: Sequence[Axis], rank: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Elements of each window, as an array that broadcasts to the pool's shape; of rank 0 where all are full."""
    counts = np.ones((1,) * rank, dtype)
    for axis in axes:
        dims = [1] * rank
        dims[axis.at] = axis.out
        counts = counts * axis.counts.reshape(dims).astype(dtype)
    return counts.max(initial=1).astype(dtype)[()] if counts.size and (counts == counts.flat[0]).all() else counts


def lowest(dtype: np.dtype[Any]) -> tuple[Callable[..., Any], Any]:
    if dtype.kind in "iu":
        return np.maximum, np.iinfo(dtype).min
    return np.maximum, dtype.type(-np.inf)


def _zero(dtype: np.dtype[Any]) -> tuple[Callable[..., Any], Any]:
    return np.add, dtype.type(0)


def _spread(axis: Axis, rank: int) -> Callable[[Any, Any], None]:
    """``spread(y, x)``: the transpose of a sum over one axis of windows."""
    taps = [(_in(rank, axis.at, out), _in(rank, axis.at, source)) for out, source in axis.taps]
    apart = axis.apart

    def spread(y: Any, x: Any) -> None:
        x.fill(0)
        for out, source in taps:
            part = x[source]
            if apart:
                copyto(part, y[out])
            else:
                add(part, y[out], part)

    return spread


def _avg_pool_grad(ctx: BuildContext, shapes: Sequence[Shape], out: Shape) -> Made:
    """``(shape, grad) -> dx``: the gradients divided by the counts, spread axis by axis from the last to the first."""
    pooled, narrow = shapes[1], ctx.outputs[0].dtype
    axes, made = axes_of(ctx, out)
    _check(pooled, made)
    wide, rank = narrow.accumulator, len(out)
    if not axes:
        return (lambda shape, g, dx: np.copyto(dx, g)), ()
    counts = _counts(axes, rank, wide.np)
    spreads = [_spread(axis, rank) for axis in reversed(axes)]
    images, chunks = chunks_of(out)
    divided = (images, *pooled[1:])
    between = _between(out, axes, images)[::-1]
    widened = wide is not narrow
    sizes = [divided, *between, *([(images, *out[1:])] * widened)]

    def compute(_: Any, g: Any, dx: Any, *scratch: Any) -> None:
        for chunk in chunks:
            n = chunk.stop - chunk.start
            buffers = [s[:n] for s in scratch]
            part, result = buffers[0], dx[chunk]
            if widened:
                copyto(part, g[chunk])
                divide(part, counts, part)
            else:
                divide(g[chunk], counts, part)
            targets = buffers[1:] if widened else [*buffers[1:], result]
            for spread, target in zip(spreads, targets, strict=True):
                spread(part, target)
                part = target
            if widened:
                copyto(result, part, "same_kind")

    return compute, tuple(Scratch(wide, s) for s in sizes)


def _check(have: Shape, want: Shape) -> None:
    if tuple(have) != tuple(want):
        raise errors.InvalidArgumentError(
            "grad does not have the shape of the pool", expected=str(list(want)), got=str(list(have))
        )


def joint_taps(axes: Sequence[Axis], rank: int) -> list[tuple[tuple[slice, ...], tuple[slice, ...]]]:
    """Every element of a window over several axes, in row-major order: ``(out, in)`` indices."""
    ordered = [sorted(axis.taps, key=lambda tap: tap[1].start - tap[0].start * axis.stride) for axis in axes]
    found = []
    for chosen in itertools.product(*ordered):
        out, source = [slice(None)] * rank, [slice(None)] * rank
        for axis, (o, i) in zip(axes, chosen, strict=True):
            out[axis.at], source[axis.at] = o, i
        found.append((tuple(out), tuple(source)))
    return found


def _max_pool_grad_grad(ctx: BuildContext, shapes: Sequence[Shape], out: Shape) -> Made:
    """``(x, y, grad) -> d``, of the shape of y."""
    axes, _ = axes_of(ctx, shapes[0])
    taps = joint_taps(axes, len(out))
    images, chunks = chunks_of(shapes[0])
    part = (images, *out[1:])
    both = np.logical_and

    def compute(x: Any, y: Any, g: Any, d: Any, *buffers: Any) -> None:
        d.fill(0)
        for chunk in chunks:
            waiting, flags = (b[: chunk.stop - chunk.start] for b in buffers)
            xs, ys, gs, into = x[chunk], y[chunk], g[chunk], d[chunk]
            waiting.fill(True)
            for at, source in taps:
                flag, wait = flags[at], waiting[at]
                equal(xs[source], ys[at], flag)
                both(flag, wait, flag)
                copyto(into[at], gs[source], where=flag)
                greater(wait, flag, wait)

    return compute, (Scratch(dtypes.bool_, part), Scratch(dtypes.bool_, part))


def _pooled(ctx: BuildContext, x: Any, *_: Any) -> Shape:
    return axes_of(ctx, x.shape)[1]


_MAX, _AVG = bind_sized(_pool(lowest, mean=False), _pooled), bind_sized(_pool(_zero, mean=True), _pooled)
_MAX_GRAD_GRAD = bind_sized(_max_pool_grad_grad, _pooled)
_AVG_GRAD = bind_sized(_avg_pool_grad, sizes_in(0))

KERNELS = [
    KernelDef("MaxPool", "cpu", _MAX),
    KernelDef("MaxPoolGradGrad", "cpu", _MAX_GRAD_GRAD),
    KernelDef("AvgPool", "cpu", _AVG),
    KernelDef("AvgPoolGrad", "cpu", _AVG_GRAD),
    KernelDef("MaxPool3D", "cpu", _MAX),
    KernelDef("MaxPool3DGradGrad", "cpu", _MAX_GRAD_GRAD),
    KernelDef("AvgPool3D", "cpu", _AVG),
    KernelDef("AvgPool3DGrad", "cpu", _AVG_GRAD),
]
