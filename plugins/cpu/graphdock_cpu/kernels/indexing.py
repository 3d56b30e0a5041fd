"""Kernels that read or write where integers say: gather, scatter, segment sums, one-hot, gradients of strided slices.

Every index is checked before anything is written. A sum over repeated indices runs in the order of the indices, so that
it is the same each time; float16 and bfloat16 are summed in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from graphdock.contracts import Bound, BuildContext, In, KernelDef, Out, Scratch, dtypes, errors

from graphdock_cpu.kernels.array import bind_writer
from graphdock_cpu.kernels.common import is_half, known
from graphdock_cpu.kernels.views import strided_index

__all__ = ["KERNELS", "check_indices"]

_UNSIGNED = {4: np.uint32, 8: np.uint64}
#: Rows from this many elements on are added one by one; shorter ones through one call over flat indices.
_LONG_ROW = 512


def check_indices(indices: Any, bound: int, what: str) -> None:
    """Raise InvalidArgumentError unless all indices lie in ``[0, bound)``; allocates nothing."""
    if indices.size and indices.view(_UNSIGNED[indices.itemsize]).max() >= bound:
        bad = np.argwhere((indices < 0) | (indices >= bound))[0]
        at = "".join(f"[{i}]" for i in bad)
        raise errors.InvalidArgumentError(
            f"indices{at} is {int(indices[tuple(bad)])}, which is out of bounds for {what} of size {bound}",
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


class _RowSum:
    """Adds rows of data to the rows of an array that ids name."""

    def __init__(self, dtype: dtypes.DType) -> None:
        self.half = is_half(dtype)

    def add(self, rows: Any, ids: Any, out: Any) -> None:
        """``out[ids[i]] += rows[i]``; ids are within bounds or negative, which drops the row."""
        total = np.zeros(out.shape, np.float32) if self.half else out
        width = out.shape[1]
        if ids.size and ids.min() < 0:
            keep = ids >= 0
            rows, ids = rows[keep], ids[keep]
        if width >= _LONG_ROW:
            for i, row in zip(ids.tolist(), rows, strict=True):
                target = total[i]
                np.add(target, row, target)
        elif ids.size:
            where = ids.astype(np.intp)
            if width != 1:
                where = (where[:, None] * width + np.arange(width)).ravel()
            np.add.at(total.reshape(-1), where, rows.reshape(-1).astype(total.dtype, copy=False))
        if self.half:
            np.copyto(out, total, "unsafe")


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
    adder = _RowSum(ctx.outputs[0].dtype)

    def write(data: Any, ids: Any, out: Any) -> None:
        if data.shape[: ids.ndim] != ids.shape:
            raise errors.InvalidArgumentError(
                f"the shape {list(data.shape)} of data does not begin with the shape {list(ids.shape)} of segment_ids"
            )
        if ids.size and int(ids.max()) >= out.shape[0]:
            bad = np.argwhere(ids >= out.shape[0])[0]
            at = "".join(f"[{i}]" for i in bad)
            raise errors.InvalidArgumentError(
                f"segment_ids{at} is {int(ids[tuple(bad)])}, which is out of bounds for num_segments {out.shape[0]}",
                expected=f"below {out.shape[0]}",
            )
        out.fill(0)
        count, width = _rows(data.shape, ids.ndim)
        adder.add(data.reshape(count, width), ids.reshape(-1), out.reshape(out.shape[0], width))

    if not ctx.fresh:
        return Bound(write, args=(In(0), In(1), Out(0)))
    return bind_writer(
        ctx, lambda d, i, n, out: write(d, i, out), (0, 1, 2), lambda d, i, n: (max(int(n), 0), *d.shape[i.ndim :])
    )


def _flat_rows(indices: Any, shape: Any) -> Any:
    """Row numbers for index tuples into the leading axes of ``shape``, each axis checked."""
    depth = indices.shape[-1]
    if depth > len(shape):
        raise errors.InvalidArgumentError(
            f"index tuples have {depth} elements, but the tensor they index has rank {len(shape)}"
        )
    rows = np.zeros(indices.shape[:-1], np.int64)
    for axis in range(depth):
        column = indices[..., axis]
        check_indices(column, shape[axis], f"axis {axis}")
        rows *= shape[axis]
        rows += column
    return rows


def gather_nd(ctx: BuildContext) -> Bound:
    def write(params: Any, indices: Any, out: Any) -> None:
        depth = indices.shape[-1]
        rows = _flat_rows(indices, params.shape)
        count, width = _rows(params.shape, depth)
        params.reshape(count, width).take(rows, 0, out.reshape(*rows.shape, width), "clip")

    return bind_writer(ctx, write, (0, 1), lambda p, i: (*i.shape[:-1], *p.shape[i.shape[-1] :]))


def scatter_nd(ctx: BuildContext) -> Bound:
    adder = _RowSum(ctx.outputs[0].dtype)

    def write(indices: Any, updates: Any, out: Any) -> None:
        depth = indices.shape[-1]
        rows = _flat_rows(indices, out.shape)
        expected = (*rows.shape, *out.shape[depth:])
        if updates.shape != expected:
            raise errors.InvalidArgumentError(f"updates have shape {list(updates.shape)}", expected=str(list(expected)))
        out.fill(0)
        count, width = _rows(out.shape, depth)
        adder.add(updates.reshape(rows.size, width), rows.reshape(-1), out.reshape(count, width))

    if not ctx.fresh:
        return Bound(write, args=(In(0), In(1), Out(0)))
    return bind_writer(ctx, lambda i, u, s, out: write(i, u, out), (0, 1, 2), lambda i, u, s: s.tolist())


def one_hot(ctx: BuildContext) -> Bound:
    axis, indices, depth = ctx.attr("axis"), ctx.inputs[0], ctx.inputs[1].value

    def spread(indices: Any, count: int) -> tuple[Any, Any]:
        """Indices with the new axis as a dim of 1, and 0 .. count - 1 along it."""
        at = range(indices.ndim + 1)[axis]
        numbers = np.arange(count).reshape(count, *(1,) * (indices.ndim - at))
        return indices.reshape(*indices.shape[:at], 1, *indices.shape[at:]), numbers

    def fill(out: Any, mask: Any, on: Any, off: Any) -> None:
        np.copyto(out, off)
        np.copyto(out, on, where=mask)

    if depth is not None and known(indices.shape) and not ctx.fresh:
        shape = tuple(ctx.outputs[0].shape)
        at = range(len(shape))[axis]
        column = (*shape[:at], 1, *shape[at + 1 :])
        limit = min(int(depth), np.iinfo(indices.dtype.np).max + 1)
        numbers = np.full((max(int(depth), 0), *(1,) * (len(shape) - at - 1)), -1, np.int64)
        numbers[:limit] = np.arange(limit).reshape(-1, *numbers.shape[1:])
        if limit == depth:
            numbers = numbers.astype(indices.dtype.np)  # one dtype: the comparison needs no buffer

        def compute(indices: Any, on: Any, off: Any, out: Any, mask: Any) -> None:
            np.equal(indices.reshape(column), numbers, mask)
            fill(out, mask, on, off)

        return Bound(compute, args=(In(0), In(2), In(3), Out(0), Out(1)), scratch=(Scratch(dtypes.bool_, shape),))

    def write(indices: Any, depth: Any, on: Any, off: Any, out: Any) -> None:
        fill(out, np.equal(*spread(indices, int(depth))), on, off)

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


def _kernel(op: str, build: Callable[..., Any], layout: str = "contiguous") -> KernelDef:
    return KernelDef(op, "cpu", build, layout=layout)


KERNELS = [
    _kernel("Gather", gather),
    _kernel("UnsortedSegmentSum", unsorted_segment_sum),
    _kernel("GatherNd", gather_nd),
    _kernel("ScatterNd", scatter_nd),
    _kernel("OneHot", one_hot),
    _kernel("StridedSliceGrad", strided_slice_grad, "strided"),
]
