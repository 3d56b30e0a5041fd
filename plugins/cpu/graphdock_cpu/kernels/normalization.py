"""Kernels of normalisation: of local responses and of batches.

Both run over blocks of rows that stay in cache. A window's sum is built of sums of 1, 2, 4, ... neighbours, so its cost grows with
the logarithm of the radius and an infinity stays within its window. float16 and bfloat16 are computed in float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from graphdock.contracts import BuildContext, KernelDef, Scratch, dtypes
from numpy import add, copyto, divide, multiply, power, reciprocal, sqrt, subtract

from graphdock_cpu.kernels.shaped import Made, Shape, bind, like_first
from graphdock_cpu.kernels.sharing import Shared, pieces, share_count

if TYPE_CHECKING:
    from graphdock_cpu.team import Part

__all__ = ["KERNELS"]

#: Elements of a block that stays in cache, and of rows of few channels that are computed as one.
BLOCK, ROW = 65536, 2048


def _blocks(rows: int, width: int) -> list[slice]:
    step = max(1, BLOCK // max(width, 1))
    return [slice(i, min(i + step, rows)) for i in range(0, rows, step)]


class _Window:
    """Sums over the channels at most ``radius`` away, for a block of rows at a time."""

    def __init__(self, channels: int, radius: int) -> None:
        self.channels, self.radius = channels, min(radius, max(channels - 1, 0))
        self.width = channels + 2 * self.radius

    def inner(self, padded: Any) -> Any:
        """The part of a padded block that the caller writes; the margins hold zeros."""
        return padded[:, self.radius : self.radius + self.channels]

    def clear(self, padded: Any) -> None:
        padded[:, : self.radius] = 0
        padded[:, self.radius + self.channels :] = 0

    def sums(self, padded: Any, spare: Any, out: Any) -> None:
        """Into ``out``; both buffers, of the padded width, are overwritten."""
        left, at, size, length = 2 * self.radius + 1, 0, 1, self.width
        have, other = padded, spare
        np.copyto(out, have[:, : self.channels])
        left, at = left - 1, 1
        # out holds the first neighbour; what is left, an even number, is made of sums of 2, 4, 8, ...
        while left:
            length -= size
            np.add(have[:, :length], have[:, size : size + length], other[:, :length])
            have, other, size = other, have, 2 * size
            if left & size:
                np.add(out, have[:, at : at + self.channels], out)
                left, at = left - size, at + size


def _power(beta: float) -> Callable[[Any, Any], None]:
    """``s, spare``: s to the power of ``-beta`` in place; the common exponents without a logarithm."""
    if beta == 1.0:
        return lambda s, spare: reciprocal(s, s)
    if beta == 0.5:

        def root(s: Any, spare: Any) -> None:
            sqrt(s, s)
            reciprocal(s, s)

        return root
    if beta == 0.75:

        def three_quarters(s: Any, spare: Any) -> None:
            sqrt(s, s)
            sqrt(s, spare)
            multiply(s, spare, s)
            reciprocal(s, s)

        return three_quarters
    return lambda s, spare: power(s, -beta, s)


def _lrn(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    (shape,), dtype = shapes, ctx.outputs[0].dtype
    wide = dtype.accumulator
    channels = shape[-1]
    rows = math.prod(shape[:-1])
    window = _Window(channels, ctx.attr("depth_radius"))
    bias, alpha, raise_to = (wide.np.type(ctx.attr("bias")), wide.np.type(ctx.attr("alpha")), _power(ctx.attr("beta")))
    pieces = _blocks(rows, window.width)
    size = pieces[0].stop if pieces else 0

    def lrn(x: Any, y: Any, padded: Any, spare: Any, sums: Any, thin: Any) -> None:
        x, y = x.reshape(rows, channels), y.reshape(rows, channels)
        for piece in pieces:
            count = piece.stop - piece.start
            p, t, s, block = padded[:count], spare[:count], sums[:count], x[piece]
            if wide is not dtype:
                block = thin[:count]
                copyto(block, x[piece])
            window.clear(p)
            multiply(block, block, window.inner(p))
            window.sums(p, t, s)
            multiply(s, alpha, s)
            add(s, bias, s)
            raise_to(s, t[:, :channels])
            multiply(s, block, y[piece], casting="same_kind")

    padded, plain = Scratch(wide, (size, window.width)), Scratch(wide, (size, channels))
    return lrn, (padded, padded, plain, plain if wide is not dtype else Scratch(wide, (0,)))


def _lrn_grad(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    """``g s^-b - 2 a b x W(g y / s)``."""
    shape, dtype = shapes[0], ctx.outputs[0].dtype
    wide = dtype.accumulator
    channels = shape[-1]
    rows = math.prod(shape[:-1])
    window = _Window(channels, ctx.attr("depth_radius"))
    bias, alpha, raise_to = (wide.np.type(ctx.attr("bias")), wide.np.type(ctx.attr("alpha")), _power(ctx.attr("beta")))
    factor = wide.np.type(2 * ctx.attr("alpha") * ctx.attr("beta"))
    pieces = _blocks(rows, window.width)
    size = pieces[0].stop if pieces else 0

    def lrn_grad(g: Any, x: Any, y: Any, out: Any, padded: Any, spare: Any, *work: Any) -> None:
        g, x, y, out = (a.reshape(rows, channels) for a in (g, x, y, out))
        for piece in pieces:
            count = piece.stop - piece.start
            p, t = padded[:count], spare[:count]
            gs, xs, s, mixed = (w[:count] for w in work)
            copyto(gs, g[piece])
            copyto(xs, x[piece])
            window.clear(p)
            multiply(xs, xs, window.inner(p))
            window.sums(p, t, s)
            multiply(s, alpha, s)
            add(s, bias, s)
            window.clear(p)
            inner = window.inner(p)
            multiply(gs, y[piece], inner)
            divide(inner, s, inner)
            window.sums(p, t, mixed)
            multiply(mixed, xs, mixed)
            multiply(mixed, factor, mixed)
            raise_to(s, t[:, :channels])
            multiply(s, gs, s)
            subtract(s, mixed, out[piece], casting="same_kind")

    padded = Scratch(wide, (size, window.width))
    return lrn_grad, (padded, padded, *(Scratch(wide, (size, channels)),) * 4)


class _Channels:
    """A tensor as blocks of two dims, one of them the channels; vectors of the channels are spread over such a block."""

    def __init__(self, ctx: BuildContext, shape: Shape, wide: np.dtype[Any]) -> None:
        self.first = ctx.attr("data_format").startswith("NC")
        if self.first:
            self.channels, inner = shape[1], math.prod(shape[2:])
            self.shape: Shape = (shape[0], self.channels, inner)
            self.pieces: list[Any] = list(range(shape[0]))
            self.block: Shape = (self.channels, inner)
            ones = inner
        else:
            self.channels = shape[-1]
            rows = math.prod(shape[:-1])
            self.shape = (rows, self.channels)
            self.pieces = _blocks(rows, self.channels)
            ones = self.pieces[0].stop if self.pieces else 0
            self.block = (ones, self.channels)
        self.count = math.prod(shape) // self.channels if self.channels else 0
        self.ones = np.ones(ones, wide)
        self.part = np.empty(self.channels, wide)

    def spread(self, vector: Any) -> Any:
        return vector[:, None] if self.first else vector

    def add_sum(self, block: Any, total: Any) -> None:
        """Add the sums of a block by channel to ``total``."""
        if self.first:
            np.dot(block, self.ones, self.part)
        else:
            np.dot(self.ones[: block.shape[0]], block, self.part)
        np.add(total, self.part, total)

    def add_product(self, a: Any, b: Any, total: Any, spare: Any) -> None:
        """Add the sums of ``a * b`` by channel to ``total``."""
        np.multiply(a, b, spare)
        self.add_sum(spare, total)


class _Affine:
    """``(x - mean) * factor + offset`` by channel: ``(x, y, *vectors, work)`` of arrays as ``view`` shapes them; threads share it.

    Of few channels that are last, many rows are one, beside vectors that hold the channels as often.
    """

    def __init__(self, ctx: BuildContext, view: _Channels, wide: dtypes.DType) -> None:
        self.view, self.direct = view, ctx.inputs[0].dtype is wide
        rows, channels = view.shape[0], view.channels
        self.times = 1 if view.first or not channels else max(1, min(rows, ROW // channels))
        self.long = [np.empty((self.times, channels), wide.np) for _ in range(3)]
        count = share_count(ctx, 3 * math.prod(view.shape)) if self.direct else 1
        blocks = view.pieces
        if not view.first:
            whole = rows // self.times * self.times
            blocks = [
                slice(self.times * p.start, self.times * p.stop)
                for p in _blocks(whole // self.times, self.times * channels)
            ]
            blocks += [slice(whole, rows)] * (whole < rows)
        self.shares = [blocks[share] for share in pieces(len(blocks), count)]
        self.compute = Shared(count, self._cut)

    def __call__(self, x: Any, y: Any, *rest: Any) -> None:
        *vectors, work = rest
        for long, vector in zip(self.long, vectors, strict=True):
            copyto(long, vector)
        self.compute(x, y, work)

    def _cut(self, x: Any, y: Any, work: Any) -> list[Part]:
        return [partial(self._some, share, x, y, work) for share in self.shares]

    def _some(self, share: Sequence[Any], x: Any, y: Any, work: Any) -> None:
        for piece in share:
            block, result = x[piece], y[piece]
            mean, factor, offset = (self.view.spread(v[0]) for v in self.long)
            if len(block) % self.times == 0 and self.times > 1:
                block, result = (a.reshape(-1, self.times * self.view.channels) for a in (block, result))
                mean, factor, offset = (v.reshape(-1) for v in self.long)
            target = result if self.direct else work.reshape(-1)[: block.size].reshape(block.shape)
            subtract(block, mean, target)
            multiply(target, factor, target)
            add(target, offset, target, casting="same_kind")
            if not self.direct:
                copyto(result, target, "same_kind")


def _common(ctx: BuildContext) -> dtypes.DType:
    """What the elements and the statistics are computed in."""
    x, u = ctx.inputs[0].dtype.accumulator, ctx.outputs[1].dtype
    return dtypes.float64 if dtypes.float64 in (x, u) else dtypes.float32


def _fused_batch_norm(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    shape, wide = shapes[0], _common(ctx)
    real = wide.np.type
    view, training = _Channels(ctx, shape, wide.np), ctx.attr("is_training")
    epsilon, count, rest = real(ctx.attr("epsilon")), real(view.count), real(max(view.count - 1, 1))
    direct = ctx.inputs[0].dtype is wide
    average, spread = np.empty(view.channels, wide.np), np.empty(view.channels, wide.np)
    affine = _Affine(ctx, view, wide)

    def statistics(x: Any, mean: Any, variance: Any, work: Any) -> None:
        mean.fill(0)
        for piece in view.pieces:
            block = x[piece]
            if not direct:
                block = work[: block.shape[0]]
                copyto(block, x[piece])
            view.add_sum(block, mean)
        with np.errstate(invalid="ignore"):
            divide(mean, count, mean)
        variance.fill(0)
        for piece in view.pieces:
            block = work[: x[piece].shape[0]]
            subtract(x[piece], view.spread(mean), block)
            multiply(block, block, block)
            view.add_sum(block, variance)

    def compute(
        x: Any,
        scale: Any,
        offset: Any,
        mean: Any,
        variance: Any,
        y: Any,
        m: Any,
        unbiased: Any,
        m2: Any,
        v: Any,
        work: Any,
    ) -> None:
        x, y = x.reshape(view.shape), y.reshape(view.shape)
        if training:
            statistics(x, average, spread, work)
            copyto(m, average, "same_kind")
            divide(spread, rest, unbiased, casting="same_kind")
            with np.errstate(invalid="ignore"):
                divide(spread, count, spread)
            copyto(v, spread, "same_kind")
            if not view.count:
                unbiased.fill(np.nan)
        else:
            copyto(average, mean)
            copyto(spread, variance)
            copyto(m, mean)
            copyto(unbiased, variance)
            copyto(v, variance)
        copyto(m2, m)
        add(spread, epsilon, spread)
        np.sqrt(spread, spread)
        divide(scale, spread, spread)
        affine(x, y, average, spread, offset, work)

    return compute, (Scratch(wide, view.block),)


def _fused_batch_norm_grad(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    shape, wide = shapes[1], _common(ctx)
    real = wide.np.type
    view, training = _Channels(ctx, shape, wide.np), ctx.attr("is_training")
    epsilon, count = real(ctx.attr("epsilon")), real(max(view.count, 1))
    totals, products, inverse, slope = (np.empty(view.channels, wide.np) for _ in range(4))

    def compute(
        dy: Any, x: Any, scale: Any, mean: Any, variance: Any, dx: Any, ds: Any, do: Any, a: Any, b: Any
    ) -> None:
        dy, x, dx = dy.reshape(view.shape), x.reshape(view.shape), dx.reshape(view.shape)
        totals.fill(0)
        products.fill(0)
        for piece in view.pieces:
            rows = x[piece].shape[0]
            grads, centred = a[:rows], b[:rows]
            copyto(grads, dy[piece])
            view.add_sum(grads, totals)
            subtract(x[piece], view.spread(mean), centred)
            view.add_product(grads, centred, products, grads)
        np.add(variance, epsilon, inverse)
        np.sqrt(inverse, inverse)
        np.reciprocal(inverse, inverse)
        multiply(products, inverse, ds, casting="same_kind")
        if not view.count:
            ds.fill(0)  # the variance of nothing is NaN, and its inverse with it
        copyto(do, totals, "same_kind")
        if training:
            divide(totals, count, totals)
            multiply(products, inverse, slope)
            multiply(slope, inverse, slope)
            divide(slope, count, slope)
        multiply(inverse, scale, inverse)
        for piece in view.pieces:
            rows = x[piece].shape[0]
            grads, centred = a[:rows], b[:rows]
            if training:
                subtract(x[piece], view.spread(mean), centred)
                multiply(centred, view.spread(slope), centred)
                subtract(dy[piece], centred, grads)
                subtract(grads, view.spread(totals), grads)
                multiply(grads, view.spread(inverse), dx[piece], casting="same_kind")
            else:
                multiply(dy[piece], view.spread(inverse), dx[piece], casting="same_kind")

    return compute, (Scratch(wide, view.block),) * 2


def _batch_shapes(ctx: BuildContext, shapes: Sequence[Shape]) -> Sequence[Shape]:
    x = shapes[0]
    vector = (x[1] if ctx.attr("data_format").startswith("NC") else x[-1],)
    return [x, *(vector,) * (len(ctx.outputs) - 1)]


KERNELS = [
    KernelDef("LRN", "cpu", bind(_lrn, like_first)),
    KernelDef("LRNGrad", "cpu", bind(_lrn_grad, like_first)),
    KernelDef("FusedBatchNorm", "cpu", bind(_fused_batch_norm, _batch_shapes)),
    KernelDef("FusedBatchNormGrad", "cpu", bind(_fused_batch_norm_grad, _batch_shapes)),
]
