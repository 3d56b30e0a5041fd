"""Kernels that reduce rows by segment ids: sums, means, products, extremes, of all rows or of chosen ones.

The rows of a segment are reduced in the order of the rows. float16 and bfloat16 are reduced in float32 and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from graphdock.contracts import Bound, BuildContext, KernelDef, dtypes, errors

from graphdock_cpu.kernels.array import bind_writer
from graphdock_cpu.kernels.common import is_half
from graphdock_cpu.kernels.indexing import check_indices

__all__ = ["KERNELS"]

#: The element of a segment without rows, of a dtype.
Empty = Callable[[dtypes.DType], Any]


def _zero(dtype: dtypes.DType) -> Any:
    return 0


def _one(dtype: dtypes.DType) -> Any:
    return 1


def _lowest(dtype: dtypes.DType) -> Any:
    return dtype.min


def _highest(dtype: dtypes.DType) -> Any:
    return dtype.max


def _sorted_ids(ids: Any, limit: int | None = None) -> int:
    """Number of segments that the ids name. Raises InvalidArgumentError unless they are sorted and in bounds."""
    if not ids.size:
        return 0
    if ids[0] < 0:
        raise errors.InvalidArgumentError(f"segment_ids[0] is {int(ids[0])}", expected="0 or more")
    falls = np.flatnonzero(ids[1:] < ids[:-1])
    if falls.size:
        at = int(falls[0]) + 1
        raise errors.InvalidArgumentError(
            f"segment_ids[{at}] is {int(ids[at])}, but the id before it is {int(ids[at - 1])}",
            expected="ids that do not decrease",
            hint="tf.unsorted_segment_sum and its kin take ids in any order",
        )
    if limit is not None and ids[-1] >= limit:
        at = int(np.searchsorted(ids, limit))
        raise errors.InvalidArgumentError(
            f"segment_ids[{at}] is {int(ids[at])}, which is out of bounds for num_segments {limit}"
        )
    return int(ids[-1]) + 1


def _reduce_runs(ufunc: np.ufunc, rows: Any, ids: Any, out: Any, scale: str, wide: Any) -> None:
    """Reduce runs of equal ids into ``out[id]``; rows that no id names are left as they are."""
    if not ids.size or not rows.shape[1]:
        return
    starts = np.flatnonzero(ids[1:] != ids[:-1]) + 1
    starts = np.concatenate([np.zeros(1, starts.dtype), starts])
    if ufunc in _WORST and rows.dtype.kind not in "iub":
        rows = _without_lost(rows, starts, _WORST[ufunc])
    found = ufunc.reduceat(rows, starts, 0, wide)
    if scale:
        counts = np.diff(starts, append=ids.size)[:, None]
        if found.dtype.kind in "iu":
            found = _truncated(found, counts.astype(found.dtype))
        else:
            found /= np.sqrt(counts).astype(found.dtype) if scale == "sqrt" else counts.astype(found.dtype)
    out[ids[starts]] = found


#: Of maxima and minima, the element that every other one wins over.
_WORST = {np.maximum: -np.inf, np.minimum: np.inf}


def _without_lost(rows: Any, starts: Any, worst: float) -> Any:
    """Rows whose maxima or minima are TensorFlow's: an element wins over a NaN before it, and a NaN over all before it."""
    unknown = np.isnan(rows)
    if not unknown.any():
        return rows
    runs = np.diff(starts, append=len(rows))
    place = np.arange(len(rows))[:, None]
    last = np.repeat(np.maximum.reduceat(np.where(unknown, place, -1), starts, 0), runs, 0)
    ends = np.repeat(starts + runs - 1, runs)[:, None]
    return np.where((place < last) | (unknown & (place < ends)), rows.dtype.type(worst), rows)


def _truncated(total: Any, counts: Any) -> Any:
    quotient = total // counts
    return quotient + ((total < 0) & (quotient * counts != total))


def _matrix(x: Any, lead: int = 1) -> Any:
    return x.reshape(math.prod(x.shape[:lead]), math.prod(x.shape[lead:]))


def _sorted(ufunc: np.ufunc, empty: Empty = _zero, scale: str = "") -> Callable[[BuildContext], Bound]:
    def build(ctx: BuildContext) -> Bound:
        dtype = ctx.outputs[0].dtype
        wide, blank = _total(dtype, scale), empty(dtype)

        def write(data: Any, ids: Any, out: Any) -> None:
            if ids.ndim != 1 or not data.ndim or len(ids) != data.shape[0]:
                raise errors.InvalidArgumentError(
                    f"segment_ids has shape {list(ids.shape)} for data of shape {list(data.shape)}",
                    expected="one id per row",
                )
            if _sorted_ids(ids) != out.shape[0]:
                raise errors.InvalidArgumentError(
                    f"segment_ids name {_sorted_ids(ids)} segments", expected=str(out.shape[0])
                )
            out.fill(blank)
            _reduce_runs(ufunc, _matrix(data), ids, _matrix(out), scale, wide)

        return bind_writer(ctx, write, (0, 1), lambda d, i: (_sorted_ids(i) if i.ndim == 1 else 0, *d.shape[1:]))

    return build


def _total(dtype: dtypes.DType, scale: str) -> Any:
    """What a dtype is reduced in: sums of integers that are divided afterwards in 64 bits."""
    if scale and dtype.is_integer:
        return np.uint64 if dtype.kind == "u" else np.int64
    return np.float32 if is_half(dtype) else dtype.np


def _unsorted(ufunc: np.ufunc, empty: Empty) -> Callable[[BuildContext], Bound]:
    def build(ctx: BuildContext) -> Bound:
        dtype = ctx.outputs[0].dtype
        wide, blank = _total(dtype, ""), empty(dtype)

        def write(data: Any, ids: Any, _count: Any, out: Any) -> None:
            if data.shape[: ids.ndim] != ids.shape:
                raise errors.InvalidArgumentError(
                    f"the shape {list(data.shape)} of data does not begin with the shape {list(ids.shape)} of segment_ids"
                )
            if data.size:  # TensorFlow reads no id of rows without elements
                _check_below(ids, out.shape[0])
            out.fill(blank)
            rows, flat = _matrix(data, ids.ndim), ids.reshape(-1)
            order = np.argsort(flat, kind="stable")
            order = order[np.searchsorted(flat[order], 0) :]
            _reduce_runs(ufunc, rows[order], flat[order], _matrix(out), "", wide)

        return bind_writer(ctx, write, (0, 1, 2), lambda d, i, n: (max(int(n), 0), *d.shape[i.ndim :]))

    return build


def _check_below(ids: Any, limit: int) -> None:
    if ids.size and int(ids.max()) >= limit:
        bad = np.argwhere(ids >= limit)[0]
        at = "".join(f"[{i}]" for i in bad)
        raise errors.InvalidArgumentError(
            f"segment_ids{at} is {int(ids[tuple(bad)])}, which is out of bounds for num_segments {limit}"
        )


def _sparse(scale: str) -> Callable[[BuildContext], Bound]:
    def build(ctx: BuildContext) -> Bound:
        dtype = ctx.outputs[0].dtype
        wide = _total(dtype, scale)
        given = len(ctx.inputs) > 3

        def write(*args: Any) -> None:
            data, indices, ids, out = args[0], args[1], args[2], args[-1]
            if indices.shape != ids.shape:
                raise errors.InvalidArgumentError(f"{indices.size} indices for {ids.size} segment_ids")
            rows = _sorted_ids(ids, out.shape[0] if given else None)
            if not given and rows != out.shape[0]:
                raise errors.InvalidArgumentError(f"segment_ids name {rows} segments", expected=str(out.shape[0]))
            check_indices(indices, data.shape[0], "axis 0")
            out.fill(0)
            _reduce_runs(np.add, _matrix(data).take(indices, 0), ids, _matrix(out), scale, wide)

        def shape(data: Any, indices: Any, ids: Any, count: Any = None) -> tuple[int, ...]:
            return (_sorted_ids(ids) if count is None else max(int(count), 0), *data.shape[1:])

        return bind_writer(ctx, write, range(len(ctx.inputs)), shape)

    return build


def _kernel(op: str, build: Callable[[BuildContext], Bound]) -> KernelDef:
    return KernelDef(op, "cpu", build)


KERNELS = [
    _kernel("SegmentSum", _sorted(np.add)),
    _kernel("SegmentMean", _sorted(np.add, scale="mean")),
    _kernel("SegmentProd", _sorted(np.multiply, _one)),
    _kernel("SegmentMax", _sorted(np.maximum)),
    _kernel("SegmentMin", _sorted(np.minimum)),
    _kernel("UnsortedSegmentProd", _unsorted(np.multiply, _one)),
    _kernel("UnsortedSegmentMax", _unsorted(np.maximum, _lowest)),
    _kernel("UnsortedSegmentMin", _unsorted(np.minimum, _highest)),
    _kernel("SparseSegmentSum", _sparse("")),
    _kernel("SparseSegmentMean", _sparse("mean")),
    _kernel("SparseSegmentSqrtN", _sparse("sqrt")),
]
