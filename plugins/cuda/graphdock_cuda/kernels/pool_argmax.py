"""Pools that say where their maxima are, and gradients that go by those indices.

An index may be any element of its image, so that a gradient is scattered: the windows of an element are chained into a list, which
one thread sums in the order of the windows.
"""

from __future__ import annotations

import math

from graphdock.contracts import KernelDef, dtypes, errors

from graphdock_cuda.compiled import Source, source
from graphdock_cuda.kernel import family
from graphdock_cuda.kernels.pool import pool_of
from graphdock_cuda.launch import i32, i64
from graphdock_cuda.work import Arg, ErrorWord, Operand, Work, blocks

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)


def _source(w: Work, x: Operand, index: dtypes.DType) -> Source:
    return source("windows.cuh", "pool_argmax.cuh", TYPE=w.ctype(x), INDEX=w.ctype(index))


@kernel("MaxPoolWithArgmax")
def max_pool_with_argmax(w: Work) -> None:
    """``x -> (y, argmax)``."""
    x = w.input(0)
    shape, packed = pool_of(w, x.shape)
    y, argmax = w.output(shape), w.output(shape, 1)
    if not y.size:
        return
    counts = (i64(y.size), i64(math.prod(x.shape[1:])), i32(w.attr("include_batch_in_index")))
    w.launch(_source(w, x, argmax.dtype), "max_pool_argmax", blocks(y.size), 256, x, y, argmax, *counts, packed)


def _meant(x: Operand, argmax: Operand) -> tuple[Arg, ...]:
    """Windows and elements of an image, and of the batch."""
    return i64(math.prod(argmax.shape[1:])), i64(math.prod(x.shape[1:]))


def _outside(index: int, size: int) -> errors.GraphdockError:
    return errors.InvalidArgumentError(
        "argmax holds an index outside of the input", expected=f"indices from 0 to {size - 1}", got=str(index)
    )


@kernel("MaxPoolGradGradWithArgmax")
def max_pool_grad_grad_with_argmax(w: Work) -> None:
    """``(x, grad of x's shape, argmax) -> of argmax's shape``."""
    x, grad, argmax = w.inputs
    out = w.output(argmax.shape)
    if out.size:
        batch = i32(w.attr("include_batch_in_index"))
        args = (i64(out.size), *_meant(x, argmax), i64(x.size), batch, ErrorWord(_outside))
        w.launch(_source(w, x, argmax.dtype), "max_pool_argmax_pick", blocks(out.size), 256, grad, argmax, out, *args)


@kernel("MaxPoolGradWithArgmax")
def max_pool_grad_with_argmax(w: Work) -> None:
    """``(x, dy, argmax) -> dx``."""
    x, dy, argmax = w.inputs
    dx = w.output(x.shape)
    heads, following = w.scratch(dtypes.int64, x.shape), w.scratch(dtypes.int64, argmax.shape)
    made, batch = _source(w, x, argmax.dtype), i32(w.attr("include_batch_in_index"))
    w.fill(heads, 0xFF)
    if argmax.size:
        args = (i64(argmax.size), *_meant(x, argmax), i64(x.size), batch, ErrorWord(_outside))
        w.launch(made, "max_pool_argmax_lists", blocks(argmax.size), 256, argmax, heads, following, *args)
    if dx.size:
        sizes = (i64(dx.size), i64(argmax.size), *_meant(x, argmax), batch)
        w.launch(made, "max_pool_argmax_gather", blocks(dx.size), 256, dy, argmax, heads, following, dx, *sizes)
