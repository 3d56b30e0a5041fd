"""Rows that are reduced by segment ids: in any order, in ascending order, or chosen by indices.

The rows of a segment are combined in an order that depends on values and shapes alone; float16 and bfloat16 in float32, rounded
once. Sorted ids say how many segments there are, so that those kernels read the last one before they go on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from graphdock.contracts import DType, KernelDef, dtypes, errors

from graphdock_cuda.compiled import source
from graphdock_cuda.immediate import Run, dynamic_family
from graphdock_cuda.kernel import family
from graphdock_cuda.kernels.indices import DROP_NEGATIVE, THREADS, Rows, bad_index, fill_value, reduce_runs, sorted_rows
from graphdock_cuda.kernels.reduce import reducer
from graphdock_cuda.launch import i64
from graphdock_cuda.work import ErrorWord, Operand, Work, blocks

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)
dynamic = dynamic_family(KERNELS)


def _blank(name: str, dtype: DType, unsorted: bool) -> Any:
    """The element of a segment without rows."""
    if name == "product":
        return 1
    if not unsorted or name == "sum":
        return 0
    return dtype.min if name == "max" else dtype.max


def _unsorted(name: str) -> Callable[[Work], None]:
    def trace(w: Work) -> None:
        data, ids = w.input("data"), w.input("segment_ids")
        if data.shape[: ids.rank] != ids.shape:
            raise errors.InvalidArgumentError(
                f"the shape {list(data.shape)} of data does not begin with the shape {list(ids.shape)} of segment_ids"
            )
        count = max(int(w.host("num_segments")), 0)
        out = w.output((count, *data.shape[ids.rank :]))
        fill_value(w, out, _blank(name, out.dtype, True))
        rows = sorted_rows(
            w, ids, [count], 1, _beyond(bad_index(ids.shape, [count], "segment_ids"), count), DROP_NEGATIVE
        )
        flat = data.reshaped(ids.size, math.prod(data.shape[ids.rank :]))
        reduce_runs(w, reducer(name, data.dtype), flat, rows, out, flat.shape[1])

    return trace


def _beyond(word: ErrorWord, count: int) -> ErrorWord:
    """The error of an index out of bounds, told as one of segments."""

    def make(first: int, second: int) -> errors.GraphdockError:
        where = word.make(first, second).message.partition(" is ")[0]
        return errors.InvalidArgumentError(
            f"{where} is {second}, which is out of bounds for num_segments {count}", expected=f"below {count}"
        )

    return ErrorWord(make)


for _name, _how in {"Sum": "sum", "Prod": "product", "Max": "max", "Min": "min"}.items():
    kernel(f"UnsortedSegment{_name}")(_unsorted(_how))


def _ascending(r: Run, ids: Operand, limit: int | None = None) -> tuple[Operand, int]:
    """Keys of sorted ids, and how many segments they name. Raises InvalidArgumentError unless they are sorted and in bounds."""
    keys = r.scratch(dtypes.uint64 if ids.dtype.size == 8 else dtypes.uint32, ids.size)
    if not ids.size:
        return keys, 0
    facts = r.scratch(dtypes.int64, 2)
    r.fill(facts, 0xFF)
    made = source("report.cuh", "segment.cuh", INDEX=r.ctype(ids), KEY=r.ctype(keys))
    bound = i64((1 << 62) if limit is None else limit)
    r.launch(made, "check_sorted", blocks(ids.size, THREADS, 1 << 16), THREADS, ids, keys, facts, i64(ids.size), bound)
    bad, last = (int(v) for v in r.read(facts))
    if bad < 0:
        return keys, last + 1
    before, here = (
        (int(v) for v in r.read(ids.at(max(bad - 1, 0), (2,)))) if bad else (0, int(r.read(ids.at(0, (1,)))[0]))
    )
    if here < 0 and not bad:
        raise errors.InvalidArgumentError(f"segment_ids[0] is {here}", expected="0 or more")
    if here < before:
        raise errors.InvalidArgumentError(
            f"segment_ids[{bad}] is {here}, but the id before it is {before}",
            expected="ids that do not decrease",
            hint="tf.unsorted_segment_sum and its kin take ids in any order",
        )
    raise errors.InvalidArgumentError(f"segment_ids[{bad}] is {here}, which is out of bounds for num_segments {limit}")


def _no_error(r: Run) -> Operand:
    none = r.scratch(dtypes.uint64, 1)
    r.fill(none, 0xFF)
    return none


def _sorted(name: str) -> Callable[[Run], None]:
    def trace(r: Run) -> None:
        data, ids = r.input("data"), r.input("segment_ids")
        if ids.rank != 1 or not data.rank or ids.shape[0] != data.shape[0]:
            raise errors.InvalidArgumentError(
                f"segment_ids has shape {list(ids.shape)} for data of shape {list(data.shape)}",
                expected="one id per row",
            )
        keys, count = _ascending(r, ids)
        out = r.output((count, *data.shape[1:]))
        fill_value(r, out, _blank(name, out.dtype, False))
        rows = Rows(keys, None, _no_error(r), count)
        flat = data.reshaped(ids.size, math.prod(data.shape[1:]))
        reduce_runs(r, reducer(name, data.dtype), flat, rows, out, flat.shape[1])

    return trace


for _name, _how in {"Sum": "sum", "Mean": "mean", "Prod": "product", "Max": "max", "Min": "min"}.items():
    dynamic(f"Segment{_name}")(_sorted(_how))


def _sparse(name: str) -> Callable[[Run], None]:
    def trace(r: Run) -> None:
        data, indices, ids = r.input("data"), r.input("indices"), r.input("segment_ids")
        if indices.shape != ids.shape:
            raise errors.InvalidArgumentError(f"{indices.size} indices for {ids.size} segment_ids")
        given = max(int(r.host("num_segments")), 0) if r.has("num_segments") else None
        keys, count = _ascending(r, ids, given)
        out = r.output((count if given is None else given, *data.shape[1:]))
        size = data.shape[0]
        if size >= 1 << 31:
            raise r.refuse(f"data have {size} rows, and the kernel takes at most {(1 << 31) - 1}")
        fill_value(r, out, 0)
        bad = _no_error(r)
        chosen = r.scratch(dtypes.int32, ids.size)
        if ids.size:
            made = source("report.cuh", "segment.cuh", INDEX=r.ctype(indices), KEY="u32")
            facts = (i64(ids.size), i64(size))
            error = bad_index(indices.shape, [size])
            r.launch(made, "choose_rows", blocks(ids.size, THREADS, 1 << 16), THREADS, indices, chosen, bad, *facts)
            r.launch(made, "report_rows", 1, 1, indices, bad, error)
        rows = Rows(keys, chosen, bad, out.shape[0])
        width = math.prod(data.shape[1:])
        reduce_runs(r, reducer(name, data.dtype), data.reshaped(size, width), rows, out, width)

    return trace


for _name, _how in {"Sum": "sum", "Mean": "mean", "SqrtN": "root"}.items():
    dynamic(f"SparseSegment{_name}")(_sparse(_how))
