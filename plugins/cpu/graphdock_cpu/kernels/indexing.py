"""Kernels that read or write where integers say: gather, scatter, segment sums, one-hot, gradients of strided slices.

Every index is checked before anything is written. A sum over repeated indices runs in the order of the indices, so that
it is the same each time; float16 and bfloat16 are summed in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from graphdock.contracts import Bound, BuildContext, In, KernelDef, Out, Scratch, dtypes, errors

from graphdock_cpu.kernels import sorted_rows
from graphdock_cpu.kernels.array import bind_writer
from graphdock_cpu.kernels.common import is_half, known
from graphdock_cpu.kernels.views import strided_index

__all__ = ["KERNELS", "LONG_ROW", "RowSum", "check_indices", "flat_places", "flat_rows"]

_UNSIGNED = {4: np.uint32, 8: np.uint64}
#: Rows from this many elements on are added one by one; shorter ones through one call over flat indices.
LONG_ROW = 512


def check_indices(indices: Any, bound: int, what: str, name: str = "indices") -> None:
    """Raise InvalidArgumentError unless all indices lie in ``[0, bound)``; allocates nothing."""
    if indices.size and indices.view(_UNSIGNED[indices.itemsize]).max() >= bound:
        bad = np.argwhere((indices < 0) | (indices >= bound))[0]
        at = "".join(f"[{i}]" for i in bad)
        raise errors.InvalidArgumentError(
            f"{name}{at} is {int(indices[tuple(bad)])}, which is out of bounds for {what} of size {bound}",
            expected=f"from 0 to {bound - 1}",
        )


def gather(ctx: BuildContext) -> Bound:
    params, indices, axis_info = ctx.inputs
    axis = None if axis_info.value is None else int(axis_info.value)

    def pick(params: Any, indices: Any, axis: int, out: Any) -> None:
        if not -params.ndim <= axis < params.ndim:
            raise errors.InvalidArgumentError(f"axis {axis} is out of bounds for rank {params.ndim}")
        check_indices(indices, params.shape[axis], f"axis {axis}")
        params.take(indices, axis, out, "clip")

    def picked(params: Any, indices: Any, axis: Any) -> tuple[int, ...]:
        at = range(params.ndim)[int(axis)]
        return (*params.shape[:at], *indices.shape, *params.shape[at + 1 :])

    if axis is None:
        return bind_writer(ctx, lambda p, i, a, out: pick(p, i, int(a), out), (0, 1, 2), picked)
    if ctx.fresh or indices.dtype.size == np.dtype(np.intp).itemsize or not known(indices.shape):
        return bind_writer(ctx, lambda p, i, out: pick(p, i, axis, out), (0, 1), lambda p, i: picked(p, i, axis))

    def widened(params: Any, indices: Any, out: Any, wide: Any) -> None:
        np.copyto(wide, indices)  # take() would allocate this array
        pick(params, wide, axis, out)

    scratch = Scratch(dtypes.int64, tuple(indices.shape))
    return Bound(widened, args=(In(0), In(1), Out(0), Out(1)), scratch=(scratch,))


class RowSum:
    """Adds rows of data to the rows of an array that ids name: ``out[ids[i]] += rows[i]``.

    ``scratch`` is what :meth:`add` wants for rows and a result of static shape; without it those arrays are allocated.
    """

    def __init__(self, dtype: dtypes.DType) -> None:
        self.half = is_half(dtype)
        self.wide = dtype.accumulator

    def scratch(self, rows: tuple[int, int], out: tuple[int, ...]) -> tuple[Scratch, ...]:
        if sorted_rows.pays(*rows):
            work = Scratch(self.wide, (2, *rows))
        else:
            work = Scratch(dtypes.int64, rows if rows[1] < LONG_ROW else (0, 0))
        if not self.half:
            return (work,)
        return work, Scratch(dtypes.float32, rows), Scratch(dtypes.float32, out)

    def add(self, rows: Any, ids: Any, out: Any, work: Any = None, wide_rows: Any = None, total: Any = None) -> None:
        """Sum into ``out``, which holds zeros; ids are within bounds or negative, which drops the row."""
        by_sort = sorted_rows.pays(*rows.shape)
        if self.half:
            if total is None:
                total, wide_rows = np.empty(out.shape, np.float32), np.empty(rows.shape, np.float32)
            np.copyto(wide_rows, rows)
            rows, narrow, out = wide_rows, out, total.reshape(out.shape)
            out.fill(0)
        width = out.shape[1]
        if ids.size and ids.min() < 0:
            keep = ids >= 0
            rows, ids = rows[keep], ids[keep]
            work = work if by_sort or work is None else work[: ids.size]
        if by_sort and ids.size:
            first, second = np.empty((2, *rows.shape), out.dtype) if work is None else work
            sorted_rows.sum_rows(rows, ids, out, first, second)
        elif width >= LONG_ROW:
            for i, row in zip(ids.tolist(), rows, strict=True):
                target = out[i]
                np.add(target, row, target)
        elif ids.size:
            np.add.at(out.reshape(-1), flat_places(ids, width, work), rows.reshape(-1))
        if self.half:
            np.copyto(narrow, out, "unsafe")


def flat_places(ids: Any, width: int, places: Any = None) -> Any:
    """Where the elements of rows ``ids`` lie in a matrix of that width, flattened; written into ``places`` if it is given."""
    if places is None:
        places = np.empty((ids.size, width), np.int64)
    np.copyto(places, ids[:, None])
    if width != 1:
        np.multiply(places, width, places)
        np.add(places, _numbers(width), places)
    return places.reshape(-1)


@lru_cache(maxsize=256)
def _numbers(count: int) -> Any:
    """``0 .. count - 1``, read-only."""
    made = np.arange(count, dtype=np.int64)
    made.flags.writeable = False
    return made


def _rows(shape: Any, lead: int) -> tuple[int, int]:
    """A shape as (rows, elements per row), the first ``lead`` axes being rows."""
    count = 1
    for d in shape[:lead]:
        count *= d
    width = 1
    for d in shape[lead:]:
        width *= d
    return count, width


def unsorted_segment_sum(ctx: BuildContext) -> Bound:
    adder = RowSum(ctx.outputs[0].dtype)

    def write(data: Any, ids: Any, out: Any, *scratch: Any) -> None:
        if data.shape[: ids.ndim] != ids.shape:
            raise errors.InvalidArgumentError(
                f"the shape {list(data.shape)} of data does not begin with the shape {list(ids.shape)} of segment_ids"
            )
        if data.size and int(ids.max()) >= out.shape[0]:  # TensorFlow reads no id of rows without elements
            bad = np.argwhere(ids >= out.shape[0])[0]
            at = "".join(f"[{i}]" for i in bad)
            raise errors.InvalidArgumentError(
                f"segment_ids{at} is {int(ids[tuple(bad)])}, which is out of bounds for num_segments {out.shape[0]}",
                expected=f"below {out.shape[0]}",
            )
        out.fill(0)
        if not data.size:
            return
        count, width = _rows(data.shape, ids.ndim)
        adder.add(data.reshape(count, width), ids.reshape(-1), out.reshape(out.shape[0], width), *scratch)

    data, ids, _ = ctx.inputs
    if not ctx.fresh and known(data.shape) and ids.shape is not None:
        scratch = adder.scratch(_rows(data.shape, len(ids.shape)), ctx.outputs[0].shape)
        slots = tuple(Out(i + 1) for i in range(len(scratch)))
        return Bound(write, args=(In(0), In(1), Out(0), *slots), scratch=scratch)
    if not ctx.fresh:
        return Bound(write, args=(In(0), In(1), Out(0)))
    return bind_writer(
        ctx, lambda d, i, n, out: write(d, i, out), (0, 1, 2), lambda d, i, n: (max(int(n), 0), *d.shape[i.ndim :])
    )


def flat_rows(indices: Any, shape: Any, name: str = "indices") -> Any:
    """Row numbers for index tuples into the leading axes of ``shape``, each axis checked."""
    depth = indices.shape[-1]
    if depth > len(shape):
        raise errors.InvalidArgumentError(
            f"index tuples have {depth} elements, but the tensor they index has rank {len(shape)}"
        )
    rows = np.zeros(indices.shape[:-1], np.int64)
    for axis in range(depth):
        column = indices[..., axis]
        check_indices(column, shape[axis], f"axis {axis}", name)
        rows *= shape[axis]
        rows += column
    return rows


def gather_nd(ctx: BuildContext) -> Bound:
    def write(params: Any, indices: Any, out: Any) -> None:
        depth = indices.shape[-1]
        rows = flat_rows(indices, params.shape)
        count, width = _rows(params.shape, depth)
        params.reshape(count, width).take(rows, 0, out.reshape(*rows.shape, width), "clip")

    return bind_writer(ctx, write, (0, 1), lambda p, i: (*i.shape[:-1], *p.shape[i.shape[-1] :]))


def scatter_nd(ctx: BuildContext) -> Bound:
    adder = RowSum(ctx.outputs[0].dtype)

    def write(indices: Any, updates: Any, out: Any, *scratch: Any) -> None:
        depth = indices.shape[-1]
        rows = flat_rows(indices, out.shape)
        expected = (*rows.shape, *out.shape[depth:])
        if updates.shape != expected:
            raise errors.InvalidArgumentError(f"updates have shape {list(updates.shape)}", expected=str(list(expected)))
        out.fill(0)
        count, width = _rows(out.shape, depth)
        adder.add(updates.reshape(rows.size, width), rows.reshape(-1), out.reshape(count, width), *scratch)

    indices, updates, _ = ctx.inputs
    if not ctx.fresh and known(indices.shape) and known(updates.shape):
        scratch = adder.scratch(_rows(updates.shape, len(indices.shape) - 1), ctx.outputs[0].shape)
        slots = tuple(Out(i + 1) for i in range(len(scratch)))
        return Bound(write, args=(In(0), In(1), Out(0), *slots), scratch=scratch)
    if not ctx.fresh:
        return Bound(write, args=(In(0), In(1), Out(0)))
    return bind_writer(ctx, lambda i, u, s, out: write(i, u, out), (0, 1, 2), lambda i, u, s: s.tolist())


def one_hot(ctx: BuildContext) -> Bound:
    axis, indices, depth = ctx.attr("axis"), ctx.inputs[0], ctx.inputs[1].value

    if depth is not None and known(indices.shape) and not ctx.fresh:
        count, at = int(depth), range(len(indices.shape) + 1)[axis]
        _, after = _rows(indices.shape, at)
        before, _ = _rows(indices.shape, at)
        places = np.arange(before)[:, None] * (count * after) + np.arange(after)  # where index 0 would go
        places = places.reshape(indices.shape)

        def compute(indices: Any, on: Any, off: Any, out: Any, spots: Any) -> None:
            np.copyto(out, off)
            np.copyto(spots, indices, "unsafe")
            keep = None
            if spots.size and spots.view(np.uint64).max() >= count:
                keep = (spots >= 0) & (spots < count)
            if after != 1:
                np.multiply(spots, after, spots)
            np.add(spots, places, spots)
            out.reshape(-1).put(spots if keep is None else spots[keep], on)

        scratch = Scratch(dtypes.int64, tuple(indices.shape))
        return Bound(compute, args=(In(0), In(2), In(3), Out(0), Out(1)), scratch=(scratch,))

    def write(indices: Any, depth: Any, on: Any, off: Any, out: Any) -> None:
        at = range(indices.ndim + 1)[axis]
        numbers = np.arange(int(depth)).reshape(-1, *(1,) * (indices.ndim - at))
        np.copyto(out, off)
        np.copyto(out, on, where=np.expand_dims(indices, at) == numbers)

    def grown(indices: Any, depth: Any, on: Any, off: Any) -> list[int]:
        dims = list(indices.shape)
        dims.insert(range(len(dims) + 1)[axis], int(depth))
        return dims

    return bind_writer(ctx, write, (0, 1, 2, 3), grown)


def strided_slice_grad(ctx: BuildContext) -> Bound:
    make = strided_index(ctx.node)
    bounds = [ctx.inputs[i].value for i in (1, 2, 3)]

    def write(dy: Any, out: Any, index: Any) -> None:
        out.fill(b"" if out.dtype == object else 0)
        into = out[index]
        if into.shape != dy.shape:
            raise errors.InvalidArgumentError(
                f"dy has shape {list(dy.shape)}", expected=f"the slice's, {list(into.shape)}"
            )
        np.copyto(into, dy)

    if not ctx.fresh and all(b is not None for b in bounds):
        index = make(*bounds)
        return Bound(lambda dy, out: write(dy, out, index), args=(In(4), Out(0)))
    return bind_writer(
        ctx, lambda s, b, e, st, dy, out: write(dy, out, make(b, e, st)), (0, 1, 2, 3, 4), lambda s, *_: s.tolist()
    )


def dynamic_partition(ctx: BuildContext) -> Bound:
    count = ctx.attr("num_partitions")

    def compute(data: Any, partitions: Any) -> Any:
        if data.shape[: partitions.ndim] != partitions.shape:
            raise errors.InvalidArgumentError(
                f"the shape {list(data.shape)} of data does not begin with the shape {list(partitions.shape)} of partitions"
            )
        check_indices(partitions, count, "partitions", "partitions")
        found = tuple([data[partitions == p] for p in range(count)])
        return found if count > 1 else found[0]

    return Bound(compute)


def dynamic_stitch(ctx: BuildContext) -> Bound:
    count = ctx.attr("N")

    def rows(*args: Any) -> int:
        highest = -1
        for indices in args[:count]:
            if indices.size:
                if indices.min() < 0:
                    raise errors.InvalidArgumentError(f"indices hold {int(indices.min())}", expected="0 or more")
                highest = max(highest, int(indices.max()))
        return highest + 1

    def write(*args: Any) -> None:
        out = args[-1]
        if out.shape[0] != rows(*args):
            raise errors.InvalidArgumentError(f"indices reach {rows(*args)} rows", expected=f"{out.shape[0]} rows")
        for indices, data in zip(args[:count], args[count : 2 * count], strict=True):
            if data.shape != (*indices.shape, *out.shape[1:]):
                raise errors.InvalidArgumentError(
                    f"data have shape {list(data.shape)}", expected=str([*indices.shape, *out.shape[1:]])
                )
        out.fill(b"" if out.dtype == object else 0)
        for indices, data in zip(args[:count], args[count : 2 * count], strict=True):
            out[indices] = data

    return bind_writer(ctx, write, range(2 * count), lambda *a: (rows(*a), *a[count].shape[a[0].ndim :]))


def _kernel(op: str, build: Callable[..., Any], layout: str = "contiguous") -> KernelDef:
    return KernelDef(op, "cpu", build, layout=layout)


KERNELS = [
    _kernel("Gather", gather),
    _kernel("UnsortedSegmentSum", unsorted_segment_sum),
    _kernel("GatherNd", gather_nd),
    _kernel("ScatterNd", scatter_nd),
    _kernel("OneHot", one_hot),
    _kernel("DynamicStitch", dynamic_stitch),
    KernelDef("DynamicPartition", "cpu", dynamic_partition, modes=("fresh",)),
    _kernel("StridedSliceGrad", strided_slice_grad, "strided"),
]
