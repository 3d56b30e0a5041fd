"""Softmax and its cross-entropies, over the last axis of ``[*B, C]``.

A call of a NumPy function on a [10, 10] array costs its overhead, not its arithmetic, so each kernel picks the calls
that are cheapest at small sizes and no worse at large ones: row maxima by ``argmax`` and ``take`` (two thirds of
``maximum.reduce``), row sums by a dot product with ones (a third of ``add.reduce``), and a column is first spread over
a small matrix with ``copyto``, which costs less than a broadcast inside a ufunc. float16 and bfloat16 are computed in
float32 and rounded once.

Vectors of one number per row are kept by the kernel itself, with the views of them that it needs; whole matrices are
scratch buffers of the plan.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from graphdock.contracts import BuildContext, KernelDef, Scratch, dtypes, errors
from numpy import add, copyto, divide, exp, log, multiply, reciprocal, subtract

from graphdock_cpu.kernels.shaped import Made, Make, Shape, bind, like_first, widened
from graphdock_cpu.kernels.sharing import Rows

__all__ = ["KERNELS", "label_check"]

#: Elements up to which spreading a column over a matrix beats a broadcast.
SMALL = 4096
#: Elements of a block of rows that stays in cache.
BLOCK = 65536

_argmax = np.ndarray.argmax
_take = np.ndarray.take
_dot = np.ndarray.dot


class _Rows:
    """What a kernel over the rows of ``[*B, C]`` keeps: offsets, ones, and vectors of one number per row."""

    def __init__(self, shape: Shape, dtype: np.dtype[Any]) -> None:
        self.batch, self.classes = shape[:-1], shape[-1]
        rows = math.prod(self.batch)
        self.offsets = (np.arange(rows, dtype=np.intp) * self.classes).reshape(self.batch)
        self.indices = np.empty(self.batch, np.intp)
        self.ones = np.ones(self.classes, dtype)
        self.maxima = np.empty(self.batch, dtype)
        self.sums = np.empty(self.batch, dtype)
        self.spread = rows * self.classes <= SMALL
        self.empty = rows * self.classes == 0


def _nothing(*args: Any) -> None:
    """A kernel over no elements."""


def _softmax(shape: Shape, dtype: np.dtype[Any]) -> Callable[..., Any]:
    rows = _Rows(shape, dtype)
    if rows.empty:
        return _nothing
    offsets, indices, ones, maxima, sums, spread = (
        rows.offsets,
        rows.indices,
        rows.ones,
        rows.maxima,
        rows.sums,
        rows.spread,
    )
    maxcol, sumcol = maxima[..., None], sums[..., None]

    def softmax(x: Any, y: Any, t: Any) -> None:
        _argmax(x, -1, indices)
        add(indices, offsets, indices)
        _take(x, indices, None, maxima, "clip")
        if spread:
            copyto(t, maxcol)
            subtract(x, t, y)
            exp(y, y)
            _dot(y, ones, sums)
            copyto(t, sumcol)
            divide(y, t, y)
        else:
            subtract(x, maxcol, y)
            exp(y, y)
            _dot(y, ones, sums)
            divide(y, sumcol, y)

    return softmax


def _log_softmax(shape: Shape, dtype: np.dtype[Any]) -> Callable[..., Any]:
    rows = _Rows(shape, dtype)
    if rows.empty:
        return _nothing
    offsets, indices, ones, maxima, sums = rows.offsets, rows.indices, rows.ones, rows.maxima, rows.sums
    maxcol, sumcol = maxima[..., None], sums[..., None]

    def log_softmax(x: Any, y: Any, t: Any) -> None:
        _argmax(x, -1, indices)
        add(indices, offsets, indices)
        _take(x, indices, None, maxima, "clip")
        subtract(x, maxcol, y)
        exp(y, t)
        _dot(t, ones, sums)
        log(sums, sums)
        subtract(y, sumcol, y)

    return log_softmax


def _over_rows(make: Callable[[Shape, np.dtype[Any]], Callable[..., Any]]) -> Make:
    return lambda ctx, shapes: widened(ctx, lambda dtype: make(shapes[0], dtype), 1, shapes[0], 1)


def _cross_entropy(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    """``(features, labels) -> (loss, backprop)``. An output that nothing reads is not computed."""
    shape, dtype = shapes[0], ctx.outputs[0].dtype
    wide = dtype.accumulator
    loss_used, back_used = (o.used for o in ctx.outputs)
    rows = _Rows(shape, wide.np)
    if rows.empty:
        return lambda x, labels, loss, backprop: loss.fill(0), ()
    offsets, indices, ones, maxima, sums, spread = (
        rows.offsets,
        rows.indices,
        rows.ones,
        rows.maxima,
        rows.sums,
        rows.spread,
    )
    maxcol, sumcol = maxima[..., None], sums[..., None]
    logs = np.empty_like(sums)
    logcol = logs[..., None]

    def both(x: Any, labels: Any, loss: Any, backprop: Any, z: Any, e: Any) -> None:
        _argmax(x, -1, indices)
        add(indices, offsets, indices)
        _take(x, indices, None, maxima, "clip")
        if spread:
            copyto(e, maxcol)
            subtract(x, e, z)
        else:
            subtract(x, maxcol, z)
        exp(z, e)
        _dot(e, ones, sums)
        log(sums, logs)
        if spread:
            copyto(backprop, logcol)
            subtract(backprop, z, z)
        else:
            subtract(logcol, z, z)
        multiply(z, labels, z)
        _dot(z, ones, loss)
        if back_used:
            if spread:
                copyto(backprop, sumcol)
                divide(e, backprop, e)
            else:
                divide(e, sumcol, e)
            subtract(e, labels, backprop)

    def backprop_only(x: Any, labels: Any, loss: Any, backprop: Any, e: Any) -> None:
        _argmax(x, -1, indices)
        add(indices, offsets, indices)
        _take(x, indices, None, maxima, "clip")
        if spread:
            copyto(e, maxcol)
            subtract(x, e, e)
            exp(e, e)
            _dot(e, ones, sums)
            copyto(backprop, sumcol)
            divide(e, backprop, backprop)
        else:
            subtract(x, maxcol, e)
            exp(e, e)
            _dot(e, ones, sums)
            divide(e, sumcol, backprop)
        subtract(backprop, labels, backprop)

    compute, matrices = (both, 2) if loss_used else (backprop_only, 1)
    matrix, vector = Scratch(wide, shape), Scratch(wide, shape[:-1])
    if wide is dtype:
        return compute, (matrix,) * matrices

    def narrow(x: Any, y: Any, loss: Any, backprop: Any, wx: Any, wy: Any, wl: Any, wb: Any, *matrices: Any) -> None:
        copyto(wx, x)
        copyto(wy, y)
        compute(wx, wy, wl, wb, *matrices)
        if loss_used:
            copyto(loss, wl, "same_kind")
        copyto(backprop, wb, "same_kind")

    return narrow, (matrix, matrix, vector, matrix) + (matrix,) * matrices


def _sparse_cross_entropy(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    """``(features, labels) -> (loss, backprop)`` with one class index per row."""
    shape, dtype = shapes[0], ctx.outputs[0].dtype
    wide = dtype.accumulator
    loss_used, back_used = (o.used for o in ctx.outputs)
    rows = _Rows(shape, wide.np)
    if math.prod(shape[:-1]) == 0:
        return _nothing, ()
    check = label_check(ctx, rows.classes)
    if rows.empty:
        return lambda x, labels, loss, backprop: check(labels), ()
    if wide is dtype and back_used and not rows.spread:
        return _sparse_by_blocks(rows, wide.np, check), ()
    offsets, at, ones, spread = rows.offsets, rows.indices, rows.ones, rows.spread
    maxima, sums = rows.maxima, rows.sums
    maxcol, sumcol = maxima[..., None], sums[..., None]
    picked, one = np.empty_like(sums), np.ones((), wide.np)
    put = np.ndarray.put

    def compute(x: Any, labels: Any, loss: Any, backprop: Any, t: Any) -> None:
        check(labels)
        _argmax(x, -1, at)
        add(at, offsets, at)
        _take(x, at, None, maxima, "clip")
        add(labels, offsets, at)
        if spread:
            copyto(t, maxcol)
            subtract(x, t, t)
        else:
            subtract(x, maxcol, t)
        if loss_used:
            _take(t, at, None, picked, "clip")
        exp(t, t)
        _dot(t, ones, sums)
        if back_used:
            if spread:
                copyto(backprop, sumcol)
                divide(t, backprop, backprop)
            else:
                divide(t, sumcol, backprop)
        if loss_used:
            log(sums, sums)
            subtract(sums, picked, loss)
        if back_used:
            _take(backprop, at, None, picked, "clip")
            subtract(picked, one, picked)
            put(backprop, at, picked, "clip")

    matrix, vector = Scratch(wide, shape), Scratch(wide, shape[:-1])
    if wide is dtype:
        return compute, (matrix,)

    def narrow(x: Any, labels: Any, loss: Any, backprop: Any, wx: Any, wl: Any, wb: Any, t: Any) -> None:
        copyto(wx, x)
        compute(wx, labels, wl, wb, t)
        if loss_used:
            copyto(loss, wl, "same_kind")
        if back_used:
            copyto(backprop, wb, "same_kind")

    return narrow, (matrix, vector, matrix, matrix)


def _sparse_by_blocks(rows: _Rows, dtype: np.dtype[Any], check: Callable[[Any], None]) -> Callable[..., None]:
    """The sparse cross-entropy of a large matrix, some rows at a time: the exponentials stay in cache, in backprop itself."""
    count, classes = math.prod(rows.batch), rows.classes
    offsets, at, ones = rows.offsets.reshape(count), rows.indices.reshape(count), rows.ones
    maxima, sums = rows.maxima.reshape(count), rows.sums.reshape(count)
    largest, picked, inverse, one = np.empty_like(at), np.empty_like(sums), np.empty_like(sums), np.ones((), dtype)
    step = max(1, BLOCK // classes)
    pieces = [slice(i, i + step) for i in range(0, count, step)]
    put = np.ndarray.put

    def compute(x: Any, labels: Any, loss: Any, backprop: Any) -> None:
        check(labels)
        x, backprop, loss = x.reshape(count, classes), backprop.reshape(count, classes), loss.reshape(count)
        add(labels.reshape(count), offsets, at)
        _take(x, at, None, picked, "clip")
        for piece in pieces:
            part, back, index, top, total, factor = (v[piece] for v in (x, backprop, largest, maxima, sums, inverse))
            _argmax(part, -1, index)
            add(index, offsets[piece], index)
            _take(x, index, None, top, "clip")
            subtract(part, top[:, None], back)
            exp(back, back)
            _dot(back, ones, total)
            reciprocal(total, factor)
            multiply(back, factor[:, None], back)
        subtract(picked, maxima, picked)
        log(sums, sums)
        subtract(sums, picked, loss)
        _take(backprop, at, None, picked, "clip")
        subtract(picked, one, picked)
        put(backprop, at, picked, "clip")

    return compute


def label_check(ctx: BuildContext, classes: int, index: int = 1) -> Callable[[Any], None]:
    """Raises InvalidArgumentError for a label outside ``[0, classes)``; read as unsigned, a negative one is large.

    Args:
      index: of the input that the labels are.
    """
    unsigned = np.dtype(np.uint32 if ctx.inputs[index].dtype is dtypes.int32 else np.uint64)

    def check(labels: Any) -> None:
        bits = labels.view(unsigned)
        if bits.item(bits.argmax()) >= classes:
            wrong = labels[(labels < 0) | (labels >= classes)].flat[0]
            raise errors.InvalidArgumentError(
                "a label is no class index",
                expected=f"labels from 0 to {classes - 1}",
                got=str(wrong),
                hint="features end in one column per class",
            )

    return check


def _with_gradient(make: Make) -> Make:
    """The kernel of a loss and its gradient for what arrives, by that of the loss and its derivative."""

    def made(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
        compute, scratch = make(ctx, shapes)
        used, wide = ctx.outputs[1].used, ctx.outputs[1].dtype.accumulator.np

        def scaled(x: Any, labels: Any, slope: Any, loss: Any, gradient: Any, *more: Any) -> None:
            compute(x, labels, loss, gradient, *more)
            if used:
                gradient[...] = np.multiply(gradient, slope[..., None], dtype=wide)

        return scaled, scratch

    return made


def _losses(ctx: BuildContext, shapes: Sequence[Shape]) -> Sequence[Shape]:
    return [shapes[0][:-1], shapes[0]]


def _batch(ctx: BuildContext, shapes: Sequence[Shape]) -> int:
    return len(shapes[0]) - 1


_MODES = ("planned", "fresh", "inplace")

KERNELS = [
    *(
        KernelDef(op, "cpu", bind(_over_rows(make), like_first, Rows("rr", 6, _batch)), inplace=inplace, modes=_MODES)
        for op, make, inplace in (
            ("Softmax", _softmax, {"softmax": ("logits",)}),
            ("LogSoftmax", _log_softmax, {"logsoftmax": ("logits",)}),
        )
    ),
    KernelDef("SoftmaxCrossEntropyWithLogits", "cpu", bind(_cross_entropy, _losses, Rows("rrrr", 8, _batch))),
    KernelDef(
        "SparseSoftmaxCrossEntropyWithLogits", "cpu", bind(_sparse_cross_entropy, _losses, Rows("rrrr", 6, _batch))
    ),
    KernelDef("SoftmaxCrossEntropyWithGradient", "cpu", bind(_with_gradient(_cross_entropy), _losses)),
    KernelDef("SparseSoftmaxCrossEntropyWithGradient", "cpu", bind(_with_gradient(_sparse_cross_entropy), _losses)),
]
