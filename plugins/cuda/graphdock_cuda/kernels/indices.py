"""Common parts of families that read or write where integers say: rows that index tuples name, and reductions by such rows.

Indices are checked on the GPU before anything is written; a bad one makes the fence of the queue raise what the cpu raises. What
falls on one row is combined in the order of the indices, after a stable sort of the rows' numbers, in an order that depends on
values and shapes alone.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from graphdock.contracts import DType, dtypes, errors

from graphdock_cuda.compiled import source
from graphdock_cuda.kernels.reduce import Reducer
from graphdock_cuda.kernels.sort import key_dtype, sort_keys
from graphdock_cuda.launch import i32, i64, raw, u64
from graphdock_cuda.work import ErrorWord, Operand, Work, blocks

__all__ = [
    "BY_TUPLE",
    "DROP_BEYOND",
    "DROP_NEGATIVE",
    "Rows",
    "bad_index",
    "dims_param",
    "fill_value",
    "reduce_runs",
    "rows_of",
    "sorted_rows",
    "starts_of",
    "word",
    "write_last",
]

THREADS = 256
#: As source/base.cuh has it.
MAX_RANK = 8
#: Flags of :func:`rows_of`, as source/places.cuh has them.
DROP_NEGATIVE, DROP_BEYOND, BY_TUPLE = 1, 2, 4
_WORDS = {1: "u8", 2: "u16", 4: "u32", 8: "u64", 16: "pack<u64, 2>"}


def word(dtype: DType) -> str:
    """The type that sources move elements of a dtype as."""
    return _WORDS[dtype.size]


def dims_param(w: Work, dims: Sequence[int]) -> bytes:
    """The struct ``Dims`` of the sources."""
    if len(dims) > MAX_RANK:
        raise w.refuse(f"index tuples have {len(dims)} elements, and the kernel takes at most {MAX_RANK}")
    return raw(struct.pack(f"<{MAX_RANK}q", *dims, *(0,) * (MAX_RANK - len(dims))))


def bad_index(
    shape: Sequence[int], dims: Sequence[int], name: str = "indices", what: Sequence[str] | None = None
) -> ErrorWord:
    """The error of an index out of bounds, which a kernel notes as ``axis * n + i`` and its value.

    Args:
      shape: of the index tuples' places, whose product is n. ``dims``: what each index of a tuple is held to.
    """
    count = math.prod(shape)

    def make(first: int, second: int) -> errors.GraphdockError:
        axis, at = divmod(first, count)
        place = "".join(f"[{int(i)}]" for i in np.unravel_index(at, tuple(shape))) if shape else ""
        of = f"axis {axis}" if what is None else what[axis]
        return errors.InvalidArgumentError(
            f"{name}{place} is {second}, which is out of bounds for {of} of size {dims[axis]}",
            expected=f"from 0 to {dims[axis] - 1}",
        )

    return ErrorWord(make)


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that are named, in order of their numbers.

    Attributes:
      keys: their numbers, ascending; ``limit`` and above for what is dropped. ``order``: which of the tuples names each; None where
        they came in order.
      bad: a word that is not all ones once an index was out of bounds: nothing is to be written then.
    """

    keys: Operand
    order: Operand | None
    bad: Operand
    limit: int


def rows_of(
    w: Work, indices: Operand, dims: Sequence[int], depth: int, error: ErrorWord, flags: int = 0
) -> tuple[Operand, Operand]:
    """The number of the row that each index tuple names, and the word that says whether one is bad.

    Args:
      indices: tuples of ``depth`` numbers, flat. ``dims``: that they lie within.
      flags: DROP_NEGATIVE, DROP_BEYOND: such ones name no row, and get the number of rows. BY_TUPLE: the error's first number is
        ``i * depth + axis``.
    """
    limit = math.prod(dims)
    n = indices.size // depth if depth else math.prod(indices.shape[:-1])
    dtype = key_dtype(max(limit, 1).bit_length())
    keys = w.scratch(dtype, n)
    bad = w.scratch(dtypes.uint64, 1)
    w.fill(bad, 0xFF)
    if n:
        made = source("report.cuh", "places.cuh", INDEX=w.ctype(indices), KEY=w.ctype(dtype))
        facts = (i64(n), i32(depth))
        grid = blocks(n, THREADS, 1 << 16)
        w.launch(made, "places", grid, THREADS, indices, keys, bad, *facts, dims_param(w, dims), i64(limit), i32(flags))
        w.launch(made, "report_places", 1, 1, indices, bad, *facts, i32(flags), error)
    return keys, bad


def sorted_rows(w: Work, indices: Operand, dims: Sequence[int], depth: int, error: ErrorWord, flags: int = 0) -> Rows:
    """The rows that index tuples name, sorted; see :func:`rows_of`."""
    keys, bad = rows_of(w, indices, dims, depth, error, flags)
    limit = math.prod(dims)
    found, order = sort_keys(w, keys, max(limit, 1).bit_length())
    return Rows(found, order, bad, limit)


def reduce_runs(
    w: Work, how: Reducer, updates: Operand, rows: Rows, out: Operand, width: int, into: str = "none"
) -> None:
    """Reduce the rows of ``updates`` that share a key, each into the row of ``out`` that the key names.

    Args:
      updates: ``width`` elements for each of the tuples, or one element for all.
      into: what becomes of the row of ``out``: ``none`` forgets it; ``add``, ``sub``, ``mul``, ``div``, ``min``, ``max``.
    """
    n = rows.keys.size
    if not n * width or not out.size:
        return
    made = source(
        "complex.cuh",
        "scalar.cuh",
        "reducers.cuh",
        *how.parts,
        "runs.cuh",
        TX=w.ctype(updates),
        KEY=w.ctype(rows.keys),
        REDUCER=how.struct,
        INTO=f"into_{into}",
    )
    chunk = max(16, -(-n * width // (1 << 18)), math.isqrt(n) // 4)
    chunks = -(-n // chunk)
    pieces = w.scratch(dtypes.uint8, 2 * chunks * width * how.acc_bytes if chunks > 1 else 1)
    steps = (i64(0), i32(0)) if updates.rank == 0 else (i64(width), i32(1))
    order = u64(0) if rows.order is None else rows.order
    facts = (i64(n), i64(width), i64(rows.limit), i64(chunk))
    grid = blocks(chunks * width, 64, 1 << 20)
    w.launch(made, "runs_within", grid, 64, updates, order, rows.keys, out, pieces, rows.bad, *facts, *steps)
    if chunks > 1:
        w.launch(made, "runs_across", grid, 64, rows.keys, out, pieces, rows.bad, *facts)


def write_last(w: Work, updates: Operand, rows: Rows, out: Operand, width: int) -> None:
    """Write rows of ``updates``, or one element, where sorted keys say: of those of one key the last."""
    n = rows.keys.size
    if not n * width or not out.size:
        return
    assert rows.order is not None
    made = source("last_rows.cuh", WORD=word(updates.dtype), KEY=w.ctype(rows.keys))
    steps = (i64(0), i32(0)) if updates.rank == 0 else (i64(width), i32(1))
    facts = (i64(n), i64(width), i64(rows.limit))
    grid = blocks(n * width, THREADS, 1 << 20)
    w.launch(made, "last_rows", grid, THREADS, updates, rows.order, rows.keys, out, rows.bad, *facts, *steps)


def starts_of(w: Work, keys: Operand, count: int) -> Operand:
    """Return where each number from 0 to ``count`` begins among ascending keys: ``count + 1`` places, int64."""
    starts = w.scratch(dtypes.int64, count + 1)
    made = source("starts.cuh", KEY=w.ctype(keys))
    grid = blocks(count + 1, THREADS, 1 << 16)
    w.launch(made, "find_starts", grid, THREADS, keys, starts, i64(keys.size), i64(count))
    return starts


def fill_value(w: Work, out: Operand, value: object) -> None:
    """Set every element to a number."""
    bits = np.array(value).astype(out.dtype.np).tobytes()
    if len(set(bits)) == 1:
        w.fill(out, bits[0])
    elif out.size:
        made = source("fill.cuh", WORD=word(out.dtype))
        w.launch(made, "fill", blocks(out.size, THREADS, 1 << 16), THREADS, out, i64(out.size), raw(bits))
