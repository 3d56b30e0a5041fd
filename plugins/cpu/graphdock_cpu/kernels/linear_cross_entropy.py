"""A linear layer with its cross-entropy, by chunks of classes: the logits of one chunk exist at a time.

Largest logit and sum of each row are carried from chunk to chunk (Milakov and Gimelshein, 2018). Weights of a chunk have their
gradient at once, that of the rows is summed over chunks. Narrow floats are computed in float32.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from graphdock.contracts import BuildContext, DType, KernelDef, Scratch, dtypes

from graphdock_cpu.kernels.shaped import Made, Shape, bind
from graphdock_cpu.kernels.softmax import label_check

__all__ = ["KERNELS"]

#: Logits of a chunk, and classes that it has at least.
CHUNK, LEAST = 1 << 22, 256


class _Logits:
    """The chunks of a node: where each begins and ends, and its logits.

    Args:
      x, w: shapes. ``narrow``: the dtype of both.
    """

    def __init__(self, ctx: BuildContext, x: Shape, w: Shape, narrow: DType, wide: DType) -> None:
        self.turned = bool(ctx.attr("transpose_w"))
        self.rows, self.inner = x
        self.classes = w[0] if self.turned else w[1]
        self.wide = wide.np
        most = min(self.classes, max(CHUNK // max(self.rows, 1), LEAST))
        self.step = max(most, 1)
        self.scratch = (Scratch(wide, (self.rows * most,)),)
        if narrow is not wide:
            self.scratch += (Scratch(wide, tuple(x)), Scratch(wide, (self.inner * most,)))

    def chunks(
        self, x: Any, w: Any, bias: Sequence[Any], buffers: Sequence[Any]
    ) -> Iterator[tuple[int, Any, Any, Any]]:
        """First class, logits, rows and weights [inner, classes] of each. ``bias``: one, or none; ``buffers``: of ``scratch``."""
        logits, *widened = buffers
        if widened:
            np.copyto(widened[0], x)
            x = widened[0]
        for begin in range(0, self.classes, self.step):
            end = min(begin + self.step, self.classes)
            part = w[begin:end] if self.turned else w[:, begin:end]
            if widened:
                held = widened[1][: part.size].reshape(part.shape)
                np.copyto(held, part)
                part = held
            part = part.T if self.turned else part
            z = logits[: self.rows * (end - begin)].reshape(self.rows, end - begin)
            np.matmul(x, part, out=z)
            for added in bias:
                np.add(z, added[begin:end], out=z, casting="same_kind")
            yield begin, z, x, part


def _wide(ctx: BuildContext) -> DType:
    """What is computed in: float64 where any tensor is that."""
    return dtypes.float64 if dtypes.float64 in [t.dtype for t in (*ctx.inputs, *ctx.outputs)] else dtypes.float32


def _hits(labels: Any, begin: int, width: int) -> tuple[Any, Any]:
    """The rows whose label is of a chunk, and where it is there."""
    rows = np.flatnonzero((labels >= begin) & (labels < begin + width))
    return rows, labels[rows] - begin


def _loss(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    """``(x, w, labels, bias?) -> (loss, log_sum)``."""
    logits = _Logits(ctx, shapes[0], shapes[1], ctx.inputs[0].dtype, _wide(ctx))
    check, rows = label_check(ctx, logits.classes, 2), logits.rows

    def compute(x: Any, w: Any, labels: Any, *rest: Any) -> None:
        bias, (loss, log_sum), buffers = _cut(rest, len(ctx.inputs) - 3, 2)
        if not rows:
            return
        check(labels)
        high = np.full(rows, -np.inf, logits.wide)
        total, mine = np.zeros_like(high), np.zeros_like(high)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            for begin, z, _, _ in logits.chunks(x, w, bias, buffers):
                hit, at = _hits(labels, begin, z.shape[1])
                mine[hit] = z[hit, at]
                now = np.maximum(high, z.max(1))
                shift = np.where(now == -np.inf, 0, now)
                np.subtract(z, shift[:, None], out=z)
                np.exp(z, out=z)
                total = total * np.exp(high - shift) + z.sum(1)
                high = now
            log_total = np.log(total)
            loss[...] = log_total - (mine - high)
            log_sum[...] = log_total + high

    return compute, logits.scratch


def _loss_grad(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    """``(dloss, x, w, labels, log_sum, bias?) -> (dx, dw, dbias)``. An output that nothing reads is not computed."""
    wide = _wide(ctx)
    logits = _Logits(ctx, shapes[1], shapes[2], ctx.inputs[1].dtype, wide)
    to_x, to_w, to_bias = (o.used for o in ctx.outputs)
    sums = (Scratch(wide, tuple(shapes[1])),) * 2 if to_x else ()

    def compute(dloss: Any, x: Any, w: Any, labels: Any, log_sum: Any, *rest: Any) -> None:
        bias, (dx, dw, dbias), held = _cut(rest, len(ctx.inputs) - 5, 3)
        buffers, own = held[: len(logits.scratch)], held[len(logits.scratch) :]
        for whole in own[:1]:
            whole.fill(0)
        with np.errstate(invalid="ignore", over="ignore"):
            for begin, z, rows, weights in logits.chunks(x, w, bias, buffers):
                end = begin + z.shape[1]
                np.subtract(z, log_sum[:, None], out=z, casting="same_kind")
                np.exp(z, out=z)
                z[_hits(labels, begin, end - begin)] -= 1
                np.multiply(z, dloss[:, None], out=z, casting="same_kind")
                if to_x:
                    np.matmul(z, weights.T, out=own[1])
                    np.add(own[0], own[1], out=own[0])
                if to_w and logits.turned:
                    dw[begin:end] = z.T @ rows
                elif to_w:
                    dw[:, begin:end] = rows.T @ z
                if to_bias:
                    dbias[begin:end] = z.sum(0)
        if to_x:
            dx[...] = own[0]

    return compute, (*logits.scratch, *sums)


def _cut(rest: Sequence[Any], biases: int, outputs: int) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
    """The bias or none, outputs, and scratch."""
    return rest[:biases], rest[biases : biases + outputs], rest[biases + outputs :]


def _losses(ctx: BuildContext, shapes: Sequence[Shape]) -> Sequence[Shape]:
    return [shapes[2], shapes[2]]


def _gradients(ctx: BuildContext, shapes: Sequence[Shape]) -> Sequence[Shape]:
    w = shapes[2]
    return [shapes[1], w, w[:1] if ctx.attr("transpose_w") else w[1:]]


KERNELS = [
    KernelDef("LinearSparseSoftmaxCrossEntropy", "cpu", bind(_loss, _losses)),
    KernelDef("LinearSparseSoftmaxCrossEntropyGrad", "cpu", bind(_loss_grad, _gradients)),
]
