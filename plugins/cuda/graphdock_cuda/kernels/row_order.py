"""Row numbers in a stable order, for what gathers the gradients of each row: sorted, and where each stood."""

from __future__ import annotations

from graphdock.contracts import dtypes

from graphdock_cuda.compiled import source
from graphdock_cuda.kernels.sort import sort_keys
from graphdock_cuda.launch import i64
from graphdock_cuda.work import ErrorWord, Operand, Work

__all__ = ["order_rows"]


def order_rows(w: Work, rows: Operand, limit: int, refusal: ErrorWord) -> tuple[Operand, Operand, Operand]:
    """``(sorted, order, refused)`` of row numbers from 0 to ``limit - 1``: uint32, int32 and uint32 in scratch memory.

    Rows that are equal keep their order. One outside of that range makes ``refused`` 1 and the step raise ``refusal``, whose first
    number is the lowest row if that is negative, else the highest; the order is worth nothing then.
    """
    if limit > 1 << 32:
        raise w.refuse(f"a variable of {limit} rows has more than it can sort")
    keys, refused = w.scratch(dtypes.uint32, rows.size), w.scratch(dtypes.uint32, 1)
    code = source("block.cuh", "row_order.cuh", INDEX=w.ctype(rows))
    threads = 32 if rows.size <= 256 else 1024
    w.launch(code, "begin_order", 1, threads, rows, keys, refused, i64(rows.size), i64(limit), refusal)
    ordered, order = sort_keys(w, keys, max(limit - 1, 1).bit_length())
    return ordered, order, refused
