"""The largest elements of rows, the element at a place of a sorted row, and whether a class is among the largest.

Rows are sorted by keys that order elements as NumPy does, NaN above all; of equal elements the first comes first. Of a long row
only the best of each tile go on, until a block can sort what is left.
"""

from __future__ import annotations

import math

from graphdock.contracts import KernelDef, dtypes, errors

from graphdock_cuda.compiled import source
from graphdock_cuda.kernel import family
from graphdock_cuda.kernels.indices import THREADS
from graphdock_cuda.kernels.sort import SHORT_ROW, argsort, keys_of, sort_keys
from graphdock_cuda.launch import i64, u64
from graphdock_cuda.work import Operand, Work, blocks

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)

#: From so many elements a row is not sorted whole for an eighth of a tile.
_TILE = 1024


def _best(w: Work, x: Operand, rows: int, k: int) -> tuple[Operand, int]:
    """Places in each row, the first k of which are those of the largest elements; and how many there are for each row."""
    n = x.size // max(rows, 1)
    if n <= SHORT_ROW or k > _TILE // 8:
        return argsort(w, x, rows=rows, descending=True)[0], n
    keys, values = keys_of(w, x, rows=rows, descending=True), None
    bits = 8 * keys.dtype.size
    made = source("top_k_tiles.cuh", KEY=w.ctype(keys))
    while n > SHORT_ROW:
        tiles = -(-n // _TILE)
        padded = rows * tiles * _TILE
        spread = w.scratch(keys.dtype, padded), w.scratch(dtypes.int32, padded)
        given = u64(0) if values is None else values
        facts = (i64(rows), i64(n), i64(tiles * _TILE))
        w.launch(made, "tile_rows", blocks(padded, THREADS, 1 << 20), THREADS, keys, given, *spread, *facts)
        ordered = sort_keys(w, spread[0], bits, spread[1], rows=rows * tiles)
        n = tiles * k
        keys, values = w.scratch(keys.dtype, rows * n), w.scratch(dtypes.int32, rows * n)
        facts = (i64(rows * tiles), i64(_TILE), i64(k))
        w.launch(made, "head_of_tiles", blocks(rows * n, THREADS, 1 << 20), THREADS, *ordered, keys, values, *facts)
    return sort_keys(w, keys, bits, values, rows=rows)[1], n


@kernel("TopKV2")
def top_k(w: Work) -> None:
    x, k = w.input("input"), int(w.host("k"))
    if not x.rank:
        raise errors.InvalidArgumentError("input is a scalar and has no rows")
    width, lead = x.shape[-1], x.shape[:-1]
    if not 0 <= k <= width:
        raise errors.InvalidArgumentError(f"k is {k}, but a row of input has {width} elements")
    rows = math.prod(lead)
    values, places = w.output((*lead, k)), w.output((*lead, k), 1)
    if not rows * k:
        return
    order, step = _best(w, x, rows, k)
    made = source("top_k.cuh", TX=w.ctype(x), OUT=w.ctype(places))
    facts = (i64(rows), i64(width), i64(step), i64(k))
    w.launch(made, "take_first", blocks(rows * k, THREADS, 1 << 20), THREADS, x, order, values, places, *facts)


@kernel("NthElement")
def nth_element(w: Work) -> None:
    x, at = w.input("input"), int(w.host("n"))
    if not x.rank or not 0 <= at < x.shape[-1]:
        raise errors.InvalidArgumentError(
            f"n is {at} for input of shape {list(x.shape)}", expected="a place in its rows"
        )
    width, rows = x.shape[-1], math.prod(x.shape[:-1])
    out = w.output(x.shape[:-1])
    if not rows:
        return
    order, _ = argsort(w, x, rows=rows)
    made = source("top_k.cuh", TX=w.ctype(x), OUT="i32")
    place = width - 1 - at if w.attr("reverse") else at
    facts = (i64(rows), i64(width), i64(place))
    w.launch(made, "take_nth", blocks(rows, THREADS, 1 << 20), THREADS, x, order, out, *facts)


@kernel("InTopKV2")
def in_top_k(w: Work) -> None:
    predictions, targets = w.input("predictions"), w.input("targets")
    rows, classes = predictions.shape
    out = w.output(targets.shape)
    if rows:
        made = source("block.cuh", "in_top_k.cuh", INDEX=w.ctype(targets))
        facts = (i64(rows), i64(classes), i64(int(w.host("k"))))
        w.launch(made, "in_top_k", blocks(rows, THREADS // 32, 1 << 20), THREADS, predictions, targets, out, *facts)
