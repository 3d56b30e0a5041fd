"""Row numbers in a stable order, for what gathers the gradients of each row: sorted, and where each stood."""

from __future__ import annotations

from graphdock.contracts import dtypes

from graphdock_cuda.compiled import source
from graphdock_cuda.launch import i32, i64
from graphdock_cuda.work import ErrorWord, Operand, Work

__all__ = ["order_rows"]

#: As in ``source/row_order.cuh``.
_TILE, _RADIX_BITS, _THREADS = 2048, 8, 256


def order_rows(w: Work, rows: Operand, limit: int, refusal: ErrorWord) -> tuple[Operand, Operand, Operand]:
    """``(sorted, order, refused)`` of row numbers from 0 to ``limit - 1``: uint32 in scratch memory.

    Rows that are equal keep their order. One outside of that range makes ``refused`` 1 and the step raise ``refusal``, whose first
    number is the lowest row if that is negative, else the highest; the order is worth nothing then.
    """
    count = rows.size
    if limit > 1 << 32 or count >= 1 << 32:
        raise w.refuse(f"{count} of {limit} rows are more than it can sort")
    passes = max(1, -(-max(limit - 1, 1).bit_length() // _RADIX_BITS))
    code = source("block.cuh", "row_order.cuh", INDEX=w.ctype(rows))
    keys, order, other_keys, other_order = (w.scratch(dtypes.uint32, count) for _ in range(4))
    refused = w.scratch(dtypes.uint32, 1)
    w.launch(code, "begin_order", 1, 1024, rows, keys, order, refused, i64(count), i64(limit), refusal)
    if count <= _TILE:
        w.launch(code, "order_tile", 1, _THREADS, keys, order, other_keys, other_order, i64(count), i32(passes))
        return (other_keys, other_order, refused) if passes % 2 else (keys, order, refused)
    tiles = -(-count // _TILE)
    totals = w.scratch(dtypes.uint32, tiles << _RADIX_BITS)
    for one in range(passes):
        shift = i32(_RADIX_BITS * one)
        w.launch(code, "count_tiles", tiles, _THREADS, keys, totals, i64(count), shift)
        w.launch(code, "scan_tiles", 1, 1024, totals, i64(totals.size))
        w.launch(code, "place_tiles", tiles, _THREADS, keys, order, other_keys, other_order, totals, i64(count), shift)
        keys, order, other_keys, other_order = other_keys, other_order, keys, order
    return keys, order, refused
