"""Softmax, its logarithm and its cross-entropies, over the last axis of ``[*B, C]``.

A row is read twice: once for its largest logit and its sum, once for the results. float16 and bfloat16 are computed in float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from graphdock.contracts import KernelDef, errors

from graphdock_cuda.compiled import source
from graphdock_cuda.kernel import family
from graphdock_cuda.kernels.rows import over_rows
from graphdock_cuda.launch import i64
from graphdock_cuda.work import ErrorWord, Operand, Work

__all__ = ["KERNELS", "no_class"]

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
    _dense(w, None)


@kernel("SoftmaxCrossEntropyWithGradient", inplace={"gradient": ("features",)}, modes=_MODES)
def cross_entropy_with_gradient(w: Work) -> None:
    """``(features, labels, slope) -> (loss, gradient)``."""
    _dense(w, w.input(2))


@kernel("SparseSoftmaxCrossEntropyWithLogits")
def sparse_cross_entropy(w: Work) -> None:
    """``(features, labels) -> (loss, backprop)`` with one class index per row."""
    _sparse(w, None)


@kernel("SparseSoftmaxCrossEntropyWithGradient", inplace={"gradient": ("features",)}, modes=_MODES)
def sparse_cross_entropy_with_gradient(w: Work) -> None:
    """``(features, labels, slope) -> (loss, gradient)`` with one class index per row."""
    _sparse(w, w.input(2))


def _dense(w: Work, slope: Operand | None) -> None:
    x, labels = w.inputs[:2]
    loss, slopes = w.output(x.shape[:-1]), w.output(x.shape, 1)
    made = source(*_PARTS, "cross_entropy.cuh", TYPE=w.ctype(x), SCALED=str(int(slope is not None)))
    rows, width = loss.size, x.shape[-1]
    over_rows(w, made, rows, width, "cross_entropy_{}", x, labels, slope or x, loss, slopes, i64(rows), i64(width))


def _sparse(w: Work, slope: Operand | None) -> None:
    x, labels = w.inputs[:2]
    loss, slopes = w.output(x.shape[:-1]), w.output(x.shape, 1)
    classes = x.shape[-1]
    scaled = str(int(slope is not None))
    made = source(*_PARTS, "sparse_cross_entropy.cuh", TYPE=w.ctype(x), LABEL=w.ctype(labels), SCALED=scaled)
    args = (x, labels, slope or x, loss, slopes, i64(loss.size), i64(classes), ErrorWord(no_class(classes)))
    over_rows(w, made, loss.size, classes, "sparse_cross_entropy_{}", *args)


def no_class(classes: int) -> Callable[[int, int], errors.GraphdockError]:
    """Return what makes the error of a label, and its row, that is not below ``classes``."""

    def wrong(label: int, row: int) -> errors.GraphdockError:
        return errors.InvalidArgumentError(
            "a label is no class index",
            expected=f"labels from 0 to {classes - 1}",
            got=str(label),
            hint="features end in one column per class",
        )

    return wrong
