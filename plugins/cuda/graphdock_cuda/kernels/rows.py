"""Launches of kernels over the rows of a matrix: a warp for a short row, a block for a long one."""

from __future__ import annotations

from graphdock_cuda.compiled import Source
from graphdock_cuda.work import Arg, Work, blocks

__all__ = ["THREADS", "over_rows"]

#: Elements of a row up to which a warp has it.
SHORT = 1024
THREADS = 256


def over_rows(w: Work, source: Source, rows: int, width: int, entry: str, *args: Arg) -> None:
    """Launch ``entry`` of a source, where ``{}`` stands for ``warp`` or ``block``: kernels over ``rows.cuh``."""
    if width <= SHORT and rows > 1:
        grid = blocks(rows, THREADS // 32, 16 * w.multiprocessors)
        w.launch(source, entry.format("warp"), grid if rows else 0, THREADS, *args)
    else:
        grid = min(rows, 16 * w.multiprocessors)
        w.launch(source, entry.format("block"), grid, THREADS, *args)
