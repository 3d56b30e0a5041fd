"""Stable sorts, for families that order, group or choose: of rows of unsigned keys, and of elements through such keys.

A short row is sorted in the shared memory of one block; long ones by passes over 8 bits each, of which there are only as many
as the keys have. What is sorted along are places in the row, of 32 bits: a row has less than 2^31 elements.
"""

from __future__ import annotations

from graphdock.contracts import dtypes

from graphdock_cuda.compiled import source
from graphdock_cuda.kernels.scan import exclusive_sums
from graphdock_cuda.launch import i32, i64, u64
from graphdock_cuda.work import Operand, Work, blocks

__all__ = ["SHORT_ROW", "argsort", "key_dtype", "keys_of", "sort_keys"]

THREADS = 256
#: As source/sort.cuh has them.
SHORT_ROW = 2048
_TILE = 4096


def key_dtype(bits: int) -> dtypes.DType:
    """The dtype of keys of so many bits."""
    return dtypes.uint32 if bits <= 32 else dtypes.uint64


def sort_keys(
    w: Work, keys: Operand, bits: int, values: Operand | None = None, *, rows: int = 1
) -> tuple[Operand, Operand]:
    """Sort rows of keys.

    Args:
      keys: uint32 or uint64; only its lowest ``bits`` differ. It may be written.
      values: int32, what goes along; by default the places in the row.

    Returns the keys and the values in order, both scratch.
    """
    n = keys.size // max(rows, 1)
    if n >= 1 << 31:
        raise w.refuse(f"it sorts {n} elements, and the kernel at most {(1 << 31) - 1}")
    made = source("block.cuh", "sort.cuh", KEY=w.ctype(keys))
    out, order = w.scratch(keys.dtype, keys.size), w.scratch(dtypes.int32, keys.size)
    if not keys.size:
        return out, order
    given = u64(0) if values is None else values
    if n <= SHORT_ROW:
        padded = 1 << max(n - 1, 1).bit_length()
        threads = min(THREADS, max(32, padded // 2))
        grid = blocks(rows, 1, 1 << 20)
        w.launch(made, "sort_short", grid, threads, keys, given, out, order, i64(rows), i32(n), i32(padded))
        return out, order
    tiles = -(-n // _TILE)
    counts = w.scratch(dtypes.int32, (rows, 256 * tiles))
    passes = max(1, -(-bits // 8))
    spare = (keys, w.scratch(dtypes.int32, keys.size)) if passes > 1 else (keys, order)
    here, into = (keys, given), (out, order)
    for step in range(passes):
        shift = i32(8 * step)
        w.launch(made, "sort_count", rows * tiles, THREADS, here[0], counts, i64(n), i64(tiles), shift)
        exclusive_sums(w, counts)
        args = (*here, counts, *into, i64(n), i64(tiles), shift)
        w.launch(made, "sort_place", rows * tiles, THREADS, *args)
        here, into = into, (spare if into[0] is out else (out, order))
    return here  # type: ignore[return-value]


def keys_of(
    w: Work, x: Operand, order: Operand | None = None, *, rows: int = 1, part: int = 0, descending: bool = False
) -> Operand:
    """Keys that are ordered as the elements of rows are, of as many bits as these have; NaN comes after all numbers.

    Args:
      order: places in each row that the elements are taken from.
      part: of complex numbers 0 for the real part, 1 for the imaginary one.
      descending: keys that are ordered the other way round.
    """
    pair = x.dtype.is_complex
    real = {8: dtypes.float32, 16: dtypes.float64}[x.dtype.size] if pair else x.dtype
    keys = w.scratch(key_dtype(8 * real.size), x.size)
    if x.size:
        made = source("sort_order.cuh", "sort_keys.cuh", TX=w.ctype(real), KEY=w.ctype(keys))
        args = (i64(rows), i64(x.size // rows), i32(2 if pair else 1), i32(part), i32(descending))
        given = u64(0) if order is None else order
        w.launch(made, "make_keys", blocks(x.size, THREADS, 1 << 16), THREADS, x, given, keys, *args)
    return keys


def argsort(w: Work, x: Operand, *, rows: int = 1, descending: bool = False) -> tuple[Operand, Operand]:
    """The places of the elements of each row in ascending order, int32, and their keys; equal ones in the order of the row.

    NaN comes after all numbers, or before them when ``descending``; complex numbers go by their real parts first.
    """
    order: Operand | None = None
    keys = None
    for part in (1, 0) if x.dtype.is_complex else (0,):
        made = keys_of(w, x, order, rows=rows, part=part, descending=descending)
        bits = 8 * x.dtype.size // (2 if x.dtype.is_complex else 1)
        keys, order = sort_keys(w, made, bits, order, rows=rows)
    assert order is not None and keys is not None
    return order, keys
