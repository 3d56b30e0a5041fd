"""Shape functions of the ops that index: strided slices, gather, scatter, segment sums, one-hot."""

from __future__ import annotations

from typing import Any

from graphdock_std.shape_support import Dims, axis_of, fits, scalar, shape_from, show, vector


def _strided(ctx: Any, x: Dims, of: str) -> Dims:
    """Shape of the strided slice of ``x`` that the node's inputs and masks describe."""
    begin, end, strides = (vector(ctx, n) for n in ("begin", "end", "strides"))
    lengths = {len(v) for v in (begin, end, strides) if v is not None}
    if len(lengths) > 1:
        raise ctx.fail("begin, end and strides must have one length")
    if not lengths:
        return None
    (count,) = lengths
    masks = {k: ctx.attrs[k] for k in ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")}
    ellipsis, new_axis, shrink = masks["ellipsis_mask"], masks["new_axis_mask"], masks["shrink_axis_mask"]
    items = list(range(count))
    if sum(bool(ellipsis & 1 << i) for i in items) > 1:
        raise ctx.fail("ellipsis_mask has more than one bit")
    for i, s in enumerate(strides or ()):
        if s == 0 and not (ellipsis | new_axis | shrink) & 1 << i:
            raise ctx.fail(f"strides[{i}] is zero")
    used = sum(not (ellipsis | new_axis) & 1 << i for i in items)
    if x is None:
        return None
    if used > len(x):
        raise ctx.fail(f"{used} indices for {of} {show(x)} of rank {len(x)}")
    rest = len(x) - used
    if not any(ellipsis & 1 << i for i in items):
        items.append(-1)
    unknown = (None,) * count
    begin, end, strides = begin or unknown, end or unknown, strides or unknown
    out: list[int | None] = []
    axis = 0
    for i in items:
        if i == -1 or ellipsis & 1 << i:
            out += x[axis : axis + rest]
            axis += rest
            continue
        if new_axis & 1 << i:
            out.append(1)
            continue
        n = x[axis]
        if shrink & 1 << i:
            b = begin[i]
            if n is not None and b is not None and not -n <= b < n:
                raise ctx.fail(f"index {b} is out of bounds for axis {axis} of size {n}")
        else:
            open_begin, open_end = bool(masks["begin_mask"] & 1 << i), bool(masks["end_mask"] & 1 << i)
            out.append(_span(n, begin[i], end[i], strides[i], open_begin, open_end))
        axis += 1
    return tuple(out)


def _span(
    n: int | None, begin: int | None, end: int | None, step: int | None, open_begin: bool, open_end: bool
) -> int | None:
    """Length of one slice."""
    first = None if open_begin else begin
    last = None if open_end else end
    if step is None or (begin is None and not open_begin) or (end is None and not open_end):
        return 0 if n == 0 else None
    if n is not None:
        return len(range(*slice(first, last, step).indices(n)))
    if first is not None and last is not None and (first < 0) == (last < 0) and (last - first) * step <= 0:
        return 0
    return n


def strided_slice(ctx: Any) -> list[Dims]:
    return [_strided(ctx, ctx.shape("x"), "x")]


def strided_slice_grad(ctx: Any) -> list[Dims]:
    shape, dy = shape_from(ctx, "shape"), ctx.shape("dy")
    want = _strided(ctx, shape, "shape")
    if want is not None and dy is not None and not fits(want, dy):
        raise ctx.fail(f"dy has shape {show(dy)}, but the slice has {show(want)}")
    return [shape]


def gather(ctx: Any) -> list[Dims]:
    params, indices, axis = ctx.shape("params"), ctx.shape("indices"), scalar(ctx, "axis")
    if params == ():
        raise ctx.fail("params is a scalar and has no axis")
    if params is None:
        return [None]
    at = None if axis is None else axis_of(ctx, axis, len(params), "params")
    if indices is None:
        return [None]
    if at is None:
        return [(None,) * (len(params) - 1 + len(indices))]
    return [(*params[:at], *indices, *params[at + 1 :])]


def unsorted_segment_sum(ctx: Any) -> list[Dims]:
    data, ids, count = ctx.shape("data"), ctx.shape("segment_ids"), scalar(ctx, "num_segments")
    if count is not None and count < 0:
        raise ctx.fail(f"num_segments is {count}")
    if data is None or ids is None:
        return [None]
    lead = data[: len(ids)]
    if not fits(lead, ids):
        raise ctx.fail(f"the shape {show(data)} of data does not begin with the shape {show(ids)} of segment_ids")
    return [(count, *data[len(ids) :])]


def _tuples(ctx: Any, into: Dims, name: str) -> tuple[Dims, int | None]:
    """Leading dims of ``indices`` and the length of its index tuples."""
    indices = ctx.shape("indices")
    if indices is None:
        return None, None
    if not indices:
        raise ctx.fail("indices is a scalar; its last axis must hold index tuples")
    depth = indices[-1]
    if depth is not None and into is not None and depth > len(into):
        raise ctx.fail(f"index tuples have {depth} elements, but {name} {show(into)} has rank {len(into)}")
    return indices[:-1], depth


def gather_nd(ctx: Any) -> list[Dims]:
    params = ctx.shape("params")
    lead, depth = _tuples(ctx, params, "params")
    return [None if lead is None or depth is None or params is None else lead + params[depth:]]


def scatter_nd(ctx: Any) -> list[Dims]:
    shape, updates = shape_from(ctx, "shape"), ctx.shape("updates")
    lead, depth = _tuples(ctx, shape, "shape")
    if updates is not None and lead is not None and depth is not None and shape is not None:
        want = lead + shape[depth:]
        if not fits(want, updates):
            raise ctx.fail(f"updates have shape {show(updates)}, but indices and shape ask for {show(want)}")
    return [shape]


def one_hot(ctx: Any) -> list[Dims]:
    indices, depth, axis = ctx.shape("indices"), scalar(ctx, "depth"), ctx.attrs["axis"]
    for name in ("on_value", "off_value"):
        scalar(ctx, name)
    if depth is not None and depth < 0:
        raise ctx.fail(f"depth is {depth}")
    if indices is None:
        return [None]
    at = axis_of(ctx, axis, len(indices) + 1, "the result")
    return [(*indices[:at], depth, *indices[at:])]


def dynamic_partition(ctx: Any) -> list[Dims]:
    data, partitions, count = ctx.shape("data"), ctx.shape("partitions"), ctx.attrs["num_partitions"]
    if data is None or partitions is None:
        return [None] * count
    if not fits(data[: len(partitions)], partitions):
        raise ctx.fail(f"the shape {show(data)} of data does not begin with the shape {show(partitions)} of partitions")
    return [(None, *data[len(partitions) :])] * count


def dynamic_stitch(ctx: Any) -> list[Dims]:
    rest: Dims = None
    highest: int | None = -1
    for i, (indices, data) in enumerate(zip(ctx.shapes("indices"), ctx.shapes("data"), strict=True)):
        known = ctx.values("indices", i)
        rows = known if isinstance(known, tuple) else (known,)
        found = [v for row in rows for v in (row if isinstance(row, tuple) else (row,))]
        if None in found or highest is None:
            highest = None
        else:
            highest = max(highest, *found)
        if indices is None or data is None:
            continue
        if not fits(data[: len(indices)], indices):
            raise ctx.fail(
                f"the shape {show(data)} of data does not begin with the shape {show(indices)} of its indices"
            )
        tail = data[len(indices) :]
        if rest is not None and not fits(rest, tail):
            raise ctx.fail(f"data of shape {show(data)} does not end in {show(rest)}, as those before do")
        rest = tail if rest is None else tuple(b if a is None else a for a, b in zip(rest, tail, strict=True))
    return [None if rest is None else (None if highest is None else highest + 1, *rest)]
