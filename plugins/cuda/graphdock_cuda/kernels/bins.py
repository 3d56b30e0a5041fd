"""Places in sorted rows, and what falls into bins."""

from __future__ import annotations

import math
from collections.abc import Callable

from graphdock.contracts import KernelDef, errors

from graphdock_cuda.compiled import source
from graphdock_cuda.kernel import family
from graphdock_cuda.kernels.indices import (
    DROP_BEYOND,
    THREADS,
    fill_value,
    reduce_runs,
    sorted_rows,
)
from graphdock_cuda.kernels.reduce import multiprocessors, reducer
from graphdock_cuda.launch import f64, i32, i64
from graphdock_cuda.work import ErrorWord, Work, blocks

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)

#: Bins that a block counts in shared memory.
_SHARED_BINS = 8192


def _search(upper: bool) -> Callable[[Work], None]:
    def trace(w: Work) -> None:
        rows, values = w.input("sorted_inputs"), w.input("values")
        if rows.shape[0] != values.shape[0]:
            raise errors.InvalidArgumentError(f"{values.shape[0]} rows of values for {rows.shape[0]} sorted rows")
        out = w.output(values.shape)
        if out.size:
            made = source("search.cuh", TX=w.ctype(rows), OUT=w.ctype(out))
            facts = (i64(rows.shape[0]), i64(rows.shape[1]), i64(values.shape[1]), i32(upper))
            w.launch(made, "search", blocks(out.size, THREADS, 1 << 20), THREADS, rows, values, out, *facts)

    return trace


kernel("LowerBound")(_search(False))
kernel("UpperBound")(_search(True))


@kernel("HistogramFixedWidth")
def histogram(w: Work) -> None:
    values, count = w.input("values"), int(w.host("nbins"))
    low, high = w.host("value_range").tolist()
    if not low < high or math.inf in (-low, high):
        expected = "finite numbers, the first below the second"
        raise errors.InvalidArgumentError(f"value_range is {[low, high]}", expected=expected)
    if count < 1:
        raise errors.InvalidArgumentError(f"nbins is {count}", expected="1 or more")
    out = w.output((count,))
    w.fill(out)
    if not values.size:
        return
    wide = "double" if values.dtype.is_integer else w.ctype(values)
    made = source("block.cuh", "histogram.cuh", TX=w.ctype(values), WIDE=wide, OUT=w.ctype(out))
    shared = count <= _SHARED_BINS
    grid = blocks(values.size, 16 * THREADS, 4 * multiprocessors(w))
    facts = (i64(values.size), f64(low), f64(high), f64(high - low), i32(count), i32(shared))
    w.launch(made, "histogram", grid, THREADS, values, out, *facts, shared=4 * count if shared else 0)


@kernel("Bincount")
def bincount(w: Work) -> None:
    """Counts, or sums of weights in the order of the numbers."""
    arr, weights, size = w.input("arr"), w.input("weights"), int(w.host("size"))
    if size < 0:
        raise errors.InvalidArgumentError(f"size is {size}", expected="0 or more")
    if weights.size and weights.shape != arr.shape:
        raise errors.InvalidArgumentError(
            f"weights has shape {list(weights.shape)}", expected=f"that of arr, {list(arr.shape)}, or an empty one"
        )
    out = w.output((size,))
    w.fill(out)

    def negative(first: int, second: int) -> errors.GraphdockError:
        return errors.InvalidArgumentError(f"arr holds {second}, at {first}", expected="0 or more")

    rows = sorted_rows(w, arr, [size], 1, ErrorWord(negative), DROP_BEYOND)
    if weights.size:
        terms = weights.reshaped(weights.size)
    else:
        terms = w.scratch(out.dtype, ())
        fill_value(w, terms, 1)
    reduce_runs(w, reducer("sum", out.dtype), terms, rows, out, 1)
