"""Distinct elements of a vector, and the elements of one vector that another does not hold, by sorting. Each NaN is distinct."""

from __future__ import annotations

from graphdock.contracts import KernelDef, dtypes

from graphdock_cuda.compiled import Source, source
from graphdock_cuda.immediate import Run, dynamic_family
from graphdock_cuda.kernel import PLAIN
from graphdock_cuda.kernels.indices import THREADS
from graphdock_cuda.kernels.scan import exclusive_sums
from graphdock_cuda.kernels.sort import argsort
from graphdock_cuda.kernels.where import chosen
from graphdock_cuda.launch import i64, u64
from graphdock_cuda.work import Operand, blocks

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
dynamic = dynamic_family(KERNELS)


def _source(r: Run, x: Operand) -> Source:
    part = x.dtype.size // (2 if x.dtype.is_complex else 1)
    out = r.ctype(r.out_dtype(1))
    return source(
        "complex.cuh", "sort_order.cuh", "unique.cuh", TX=r.ctype(x), OUT=out, KEY="u64" if part == 8 else "u32"
    )


@dynamic("Unique", "UniqueWithCounts", types={"T": PLAIN})
def unique(r: Run) -> None:
    x, counted = r.input("x"), r.output_count > 2
    n = x.size
    idx = r.output((n,), 1)
    if not n:
        r.output((0,))
        if counted:
            r.output((0,), 2)
        return
    order, _ = argsort(r, x)
    heads, firsts, starts = (r.scratch(dtypes.int32, n + 1) for _ in range(3))
    made = _source(r, x)
    grid = blocks(n + 1, THREADS, 1 << 16)
    r.launch(made, "mark_groups", grid, THREADS, x, order, heads, firsts, i64(n))
    exclusive_sums(r, heads)
    exclusive_sums(r, firsts)
    (total,) = r.read(heads.at(n, (1,)))
    r.launch(made, "start_groups", grid, THREADS, heads, starts, i64(n))
    y = r.output((int(total),))
    counts = r.output((int(total),), 2) if counted else u64(0)
    r.launch(made, "write_groups", grid, THREADS, x, order, heads, starts, firsts, y, idx, counts, i64(n))


@dynamic("ListDiff", types={"T": PLAIN})
def list_diff(r: Run) -> None:
    x, y = r.input("x"), r.input("y")
    flags = r.scratch(dtypes.uint8, x.size)
    made = _source(r, x)
    order, _ = argsort(r, y)
    if x.size:
        grid = blocks(x.size, THREADS, 1 << 16)
        r.launch(made, "not_among", grid, THREADS, x, y, order, flags, i64(x.size), i64(y.size))
    places = chosen(r, flags)
    out, idx = r.output((places.size,)), r.output((places.size,), 1)
    if places.size:
        grid = blocks(places.size, THREADS, 1 << 16)
        r.launch(made, "take", grid, THREADS, x, places, out, idx, i64(places.size))
