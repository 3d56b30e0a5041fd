"""Softmax, its logarithm and its cross-entropies, over the last axis of ``[*B, C]``.

A row is read twice: once for its largest logit and its sum, once for the results. float16 and bfloat16 are computed in float32.
"""

from __future__ import annotations

import math

from graphdock.contracts import KernelDef, errors

from graphdock_cuda.compiled import source
from graphdock_cuda.kernel import family
from graphdock_cuda.kernels.rows import over_rows
from graphdock_cuda.launch import i64
from graphdock_cuda.work import ErrorWord, Work

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)

_PARTS = ("block.cuh", "rows.cuh", "exponentials.cuh")
_MODES = ("planned", "fresh", "inplace")


def _one_output(w: Work, function: str) -> None:
    x = w.input(0)
    y = w.output(x.shape)
    rows, width = math.prod(x.shape[:-1]), x.shape[-1]
    if x.size:
        made = source(*_PARTS, "softmax.cuh", TYPE=w.ctype(x), FUNCTION=function)
        over_rows(w, made, rows, width, "softmax_{}", x, y, i64(rows), i64(width))


@kernel("Softmax", inplace={"softmax": ("logits",)}, modes=_MODES)
def softmax(w: Work) -> None:
    _one_output(w, "softmax")


@kernel("LogSoftmax", inplace={"logsoftmax": ("logits",)}, modes=_MODES)
def log_softmax(w: Work) -> None:
    _one_output(w, "log_softmax")


@kernel("SoftmaxCrossEntropyWithLogits")
def cross_entropy(w: Work) -> None:
    """``(features, labels) -> (loss, backprop)``."""
    x, labels = w.inputs
    loss, backprop = w.output(x.shape[:-1]), w.output(x.shape, 1)
    made = source(*_PARTS, "cross_entropy.cuh", TYPE=w.ctype(x))
    rows, width = loss.size, x.shape[-1]
    over_rows(w, made, rows, width, "cross_entropy_{}", x, labels, loss, backprop, i64(rows), i64(width))


@kernel("SparseSoftmaxCrossEntropyWithLogits")
def sparse_cross_entropy(w: Work) -> None:
    """``(features, labels) -> (loss, backprop)`` with one class index per row."""
    x, labels = w.inputs
    loss, backprop = w.output(x.shape[:-1]), w.output(x.shape, 1)
    classes = x.shape[-1]

    def wrong(label: int, row: int) -> errors.GraphdockError:
        return errors.InvalidArgumentError(
            "a label is no class index",
            expected=f"labels from 0 to {classes - 1}",
            got=str(label),
            hint="features end in one column per class",
        )

    made = source(*_PARTS, "sparse_cross_entropy.cuh", TYPE=w.ctype(x), LABEL=w.ctype(labels))
    args = (x, labels, loss, backprop, i64(loss.size), i64(classes), ErrorWord(wrong))
    over_rows(w, made, loss.size, classes, "sparse_cross_entropy_{}", *args)
