"""A linear layer with its cross-entropy, by chunks of classes: the logits of one chunk exist at a time, in scratch memory.

A chunk's logits are one product of the matrix library, a launch joins them to what is known of each row, or makes their gradient in
their place. Weights of a chunk have their gradient at once; that of the rows is summed over chunks, in float32 at least. Chunks of
rows would have it the other way round: all weights' gradients, read and written for each few hundred rows.

Weights [D, V] go through a copy of the chunk's columns, whose rows are aligned whatever V is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from graphdock.contracts import DType, KernelDef

from graphdock_cuda.compiled import Source, source
from graphdock_cuda.kernel import FLOATS, family
from graphdock_cuda.kernels.elementwise import elementwise
from graphdock_cuda.kernels.matmul import gemm_of, library_or_own, multiply, product_of
from graphdock_cuda.kernels.reduce import reduce_axes, reducer
from graphdock_cuda.kernels.rows import THREADS, over_rows
from graphdock_cuda.kernels.softmax import no_class
from graphdock_cuda.launch import i64
from graphdock_cuda.moving import copy_box
from graphdock_cuda.work import Arg, ErrorWord, Operand, Work, blocks

__all__ = ["KERNELS", "chunks_of"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)

#: Classes that a chunk has at least, where there are as many: a product with fewer reads and writes more than it multiplies.
LEAST = 1024
#: What the classes of a chunk are a multiple of.
ALIGNED = 64
#: Warps of a multiprocessor that hide what they wait for: a guess.
WARPS = 16


def chunks_of(rows: int, classes: int, element_bytes: int, most_bytes: int) -> list[tuple[int, int]]:
    """Return where chunks begin and end: as few as there must be for ``most_bytes`` of logits each, and as long as one another."""
    longest = max(most_bytes // max(rows * element_bytes, 1), LEAST)
    count = -(-classes // longest)
    length = -(-classes // max(count, 1) // ALIGNED) * ALIGNED
    return [(begin, min(begin + length, classes)) for begin in range(0, classes, length)] if classes else [(0, 0)]


@dataclass(frozen=True, slots=True)
class _Layer:
    """The operands of a node, and how its classes are cut. ``turned``: weights are [classes, inner]."""

    x: Operand
    w: Operand
    bias: Operand | None
    turned: bool
    chunks: list[tuple[int, int]]

    @property
    def rows(self) -> int:
        return self.x.shape[0]

    @property
    def inner(self) -> int:
        return self.x.shape[1]

    @property
    def classes(self) -> int:
        return self.w.shape[0 if self.turned else 1]


def _layer(w: Work) -> _Layer:
    x, weights = w.input("x"), w.input("w")
    turned = bool(w.attr("transpose_w"))
    chunks = chunks_of(x.shape[0], weights.shape[0 if turned else 1], x.dtype.size, w.device.workspace)
    return _Layer(x, weights, w.input("bias") if w.has("bias") else None, turned, chunks)


def _source(w: Work, layer: _Layer, labels: Operand, statistics: DType) -> Source:
    types = {"TYPE": w.ctype(layer.x), "LABEL": w.ctype(labels), "STATISTICS": w.ctype(statistics)}
    return source("block.cuh", "rows.cuh", "exponentials.cuh", "linear_cross_entropy.cuh", **types)


def _logits(w: Work, layer: _Layer) -> Iterator[tuple[int, int, Operand, Operand]]:
    """Of each chunk: its begin and end, its logits, and its weights. What is taken of scratch for one is free for the next."""
    for begin, end in layer.chunks:
        with w.temporary():
            z = w.scratch(layer.x.dtype, (layer.rows, end - begin))
            if layer.turned:
                weights = layer.w.at(begin * layer.inner, (end - begin, layer.inner))
            elif end - begin == layer.classes:
                weights = layer.w
            else:
                weights = w.scratch(layer.x.dtype, (layer.inner, end - begin))
                copy_box(w, weights, (0, 0), layer.w, (0, begin), weights.shape)
            bias = None if layer.bias is None else layer.bias.at(begin, (end - begin,))
            with w.temporary():
                _layer_of(w, layer.x, weights, z, layer.turned, bias)
            yield begin, end, z, weights


def _layer_of(w: Work, x: Operand, weights: Operand, z: Operand, turned: bool, bias: Operand | None) -> None:
    """``z = x op(weights) + bias``, by the matrix library where it takes that, else by the own tiles."""
    product = product_of(x.shape, weights.shape, False, turned)
    gemm = gemm_of(w, product, x.dtype.name, bias=bias is not None)
    if z.size and (gemm is None or not w.gemm(gemm, x, weights, z, bias)):
        multiply(w, x, weights, z, product, bias)


def _over_rows(w: Work, made: Source, rows: int, width: int, entry: str, *args: Arg) -> None:
    """A warp has a row of a chunk where there are warps enough, and waits for no other one."""
    if rows >= WARPS * w.multiprocessors:
        w.launch(made, entry.format("warp"), blocks(rows, THREADS // 32, 16 * w.multiprocessors), THREADS, *args)
    else:
        over_rows(w, made, rows, width, entry, *args)


@kernel("LinearSparseSoftmaxCrossEntropy", types={"T": FLOATS})
def linear_cross_entropy(w: Work) -> None:
    """``(x, w, labels, bias?) -> (loss, log_sum)``."""
    layer, labels = _layer(w), w.input("labels")
    loss, log_sum = w.output(labels.shape), w.output(labels.shape, 1)
    made = _source(w, layer, labels, loss.dtype)
    kept = w.scratch(layer.x.dtype.accumulator, (layer.rows, 3 if len(layer.chunks) > 1 else 0))
    for begin, end, z, _ in _logits(w, layer):
        sizes = (i64(layer.rows), i64(end - begin), i64(begin), i64(layer.classes))
        args = (z, labels, kept, loss, log_sum, *sizes, ErrorWord(no_class(layer.classes)))
        _over_rows(w, made, layer.rows, end - begin, "chunk_{}", *args)


@kernel("LinearSparseSoftmaxCrossEntropyGrad", types={"T": FLOATS})
def linear_cross_entropy_grad(w: Work) -> None:
    """``(loss_backprop, x, w, labels, log_sum, bias?) -> (x_backprop, w_backprop, bias_backprop)``, as far as they are used."""
    layer = _layer(w)
    dloss, labels, log_sum = (w.input(name) for name in ("loss_backprop", "labels", "log_sum"))
    dx, dw, dbias = w.output(layer.x.shape), w.output(layer.w.shape, 1), w.output((layer.classes,), 2)
    if not layer.rows:
        w.fill(dw)
        w.fill(dbias)
        return
    made = _source(w, layer, labels, log_sum.dtype)
    wide = layer.x.dtype.accumulator
    total = w.scratch(wide, dx.shape) if w.used(0) and wide is not dx.dtype and len(layer.chunks) > 1 else dx
    for begin, end, z, weights in _logits(w, layer):
        sizes = (i64(layer.rows), i64(end - begin), i64(begin))
        _over_rows(w, made, layer.rows, end - begin, "slope_{}", z, labels, log_sum, dloss, *sizes)
        if w.used(0):
            with w.temporary():
                product = product_of(z.shape, weights.shape, False, not layer.turned)
                library_or_own(w, z, weights, total, product, adds=begin > 0)
        _by_weights(w, layer, z, begin, dw, dbias.at(begin, (end - begin,)))
    if total is not dx:
        elementwise(w, "t", [("t", total)], dx)


def _by_weights(w: Work, layer: _Layer, z: Operand, begin: int, dw: Operand, dbias: Operand) -> None:
    """Of a chunk: its part of ``dw``, and ``dbias``, by one product of the library where it makes both."""
    width = z.shape[1]
    whole = layer.turned or width == layer.classes
    sums_too = w.used(2)
    if w.used(1):
        shape = (width, layer.inner) if layer.turned else (layer.inner, width)
        part = dw.at(begin * layer.inner if layer.turned else begin, shape) if whole else w.scratch(dw.dtype, shape)
        a, b = (z, layer.x) if layer.turned else (layer.x, z)
        product = product_of(a.shape, b.shape, True, False)
        gemm = gemm_of(w, product, dw.dtype.name, activation="sums_a" if layer.turned else "sums_b")
        with w.temporary():
            if sums_too and gemm is not None and w.gemm(gemm, a, b, part, dbias):
                sums_too = False
            else:
                library_or_own(w, a, b, part, product)
        if not whole:
            copy_box(w, dw, (0, begin), part, (0, 0), shape)
    if sums_too:
        with w.temporary():
            reduce_axes(w, reducer("sum", z.dtype), z, [0], dbias)
