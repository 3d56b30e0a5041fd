"""Running sums and products along an axis, and the exclusive sums of counts that other families place their results by.

A row is scanned by one block, tile by tile, or by several, each of which begins with the total of those before it: what is added
to what depends on shapes alone. float16 and bfloat16 are accumulated in float32.
"""

from __future__ import annotations

import math

from graphdock.contracts import KernelDef, dtypes

from graphdock_cuda.compiled import source
from graphdock_cuda.kernel import family
from graphdock_cuda.kernels.reduce import axes_of, multiprocessors, reducer
from graphdock_cuda.launch import i32, i64, u64
from graphdock_cuda.work import Operand, Work, blocks

__all__ = ["KERNELS", "exclusive_sums", "scan"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)

THREADS = 256
#: Elements of a row from which on several blocks share it, where there are few rows.
_LONG_ROW = 16384


def scan(
    w: Work, name: str, x: Operand, out: Operand, shape: tuple[int, int, int], exclusive: bool, reverse: bool
) -> None:
    """Scan the middle axis of ``x``, seen as an array of three axes; ``out`` may be ``x``.

    Args:
      name: ``sum`` or ``product``.
    """
    outer, n, inner = shape
    if not outer * n * inner:
        return
    how = reducer(name, x.dtype)
    made = source(
        "complex.cuh",
        "scalar.cuh",
        "block.cuh",
        "reducers.cuh",
        "scan.cuh",
        TX=w.ctype(x),
        REDUCER=how.struct,
    )
    flags = (i32(exclusive), i32(reverse))
    if inner > 1:
        args = (i64(outer), i64(n), i64(inner), *flags)
        w.launch(made, "scan_columns", blocks(outer * inner, THREADS, 1 << 20), THREADS, x, out, *args)
        return
    parts = 1 if n < _LONG_ROW else max(1, min(-(-2 * multiprocessors(w) // outer), n // (_LONG_ROW // 4)))
    size = -(-n // parts)
    parts = -(-n // size)
    grid, by_part = blocks(outer * parts, 1, 1 << 20), (i64(outer), i64(n), i64(parts), i64(size))
    if parts == 1:
        w.launch(made, "scan_rows", grid, THREADS, x, out, u64(0), *by_part, *flags)
        return
    carries = w.scratch(dtypes.uint8, outer * parts * how.acc_bytes)
    w.launch(made, "scan_totals", grid, THREADS, x, carries, *by_part, i32(reverse))
    w.launch(made, "scan_carry", blocks(outer, 1, 1 << 20), THREADS, carries, i64(outer), i64(parts))
    w.launch(made, "scan_rows", grid, THREADS, x, out, carries, *by_part, *flags)


def exclusive_sums(w: Work, counts: Operand) -> None:
    """Replace each row of integers by the sums of those before each: the last one is the total, when the row ended with a zero."""
    n = counts.shape[-1]
    scan(w, "sum", counts, counts, (counts.size // max(n, 1), n, 1), exclusive=True, reverse=False)


@kernel("Cumsum", "Cumprod")
def running(w: Work) -> None:
    x = w.input("x")
    axis = axes_of(w.host("axis"), x.rank)[0]
    shape = (math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :]))
    name = "sum" if w.node.op == "Cumsum" else "product"
    scan(w, name, x, w.output(x.shape), shape, w.attr("exclusive"), w.attr("reverse"))
