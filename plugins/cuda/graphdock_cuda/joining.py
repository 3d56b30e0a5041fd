"""Pieces of one shape, joined along an axis: one launch, which takes the addresses of all pieces by value."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from graphdock_cuda.compiled import Source, source
from graphdock_cuda.launch import i64
from graphdock_cuda.moving import as_bits
from graphdock_cuda.work import Operand, Table, Work, blocks

__all__ = ["batches", "grid_of", "join", "source_of"]

#: Addresses that a launch takes along. All parameters of a kernel must fit in 4 KiB.
_FEW, _MANY = 32, 480


def batches(count: int) -> Iterator[tuple[int, int, int]]:
    """Launches for so many pieces: the first piece of each, how many it has, and the length of its table."""
    length = _FEW if count <= _FEW else _MANY
    for begin in range(0, count, length):
        yield begin, min(length, count - begin), length


def source_of(size: int, length: int) -> Source:
    """``join`` for elements of so many bytes, and tables of so many addresses."""
    return source("word.cuh", "join.cuh", SIZE=str(size), COUNT=str(length))


def grid_of(size: int, pieces: int) -> tuple[int, int]:
    """Blocks of 256 threads for pieces of so many elements."""
    return blocks(size, 1024, 1 << 16), pieces


def join(w: Work, parts: Sequence[Operand], target: Operand, axis: int) -> None:
    """Parts of one shape, one after the other along an axis of ``target``."""
    first = parts[0]
    if not first.size:
        return
    run = math.prod(first.shape[axis:])
    to = as_bits(target)
    for begin, count, length in batches(len(parts)):
        table = Table(tuple(as_bits(p) for p in parts[begin : begin + count]), length)
        sizes = (i64(first.size), i64(run), i64(run * len(parts)))
        w.launch(
            source_of(to.dtype.size, length), "join", grid_of(first.size, count), 256, table, to.at(begin * run), *sizes
        )
