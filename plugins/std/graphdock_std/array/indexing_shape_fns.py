"""Shape functions of the ops that index: strided slices, gather, scatter, segment sums, one-hot."""

from __future__ import annotations

from typing import Any

from graphdock.ops import symbolic

from graphdock_std.shape_support import (
    Dims,
    axis_of,
    known,
    number,
    same_run,
    scalar,
    shape_from,
    show,
    unread,
    vector,
)


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
    out: list[Any] = []
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
            if known(b):
                ctx.at_least(n, b + 1 if b >= 0 else -b, f"index {b} is out of bounds for axis {axis} of size {n}")
            unread(ctx, [b])
        else:
            open_begin, open_end = bool(masks["begin_mask"] & 1 << i), bool(masks["end_mask"] & 1 << i)
            out.append(_span(ctx, n, begin[i], end[i], strides[i], open_begin, open_end))
        axis += 1
    return tuple(out)


def _span(ctx: Any, n: Any, begin: Any, end: Any, step: Any, open_begin: bool, open_end: bool) -> Any:
    """Length of one slice."""
    first = None if open_begin else begin
    last = None if open_end else end
    unread(ctx, [step])
    if not known(step) or (begin is None and not open_begin) or (end is None and not open_end):
        return 0 if n == 0 else None
    if known(n) and (open_begin or known(first)) and (open_end or known(last)):
        return len(range(*slice(first, last, step).indices(n)))
    if known(first) and known(last) and (first < 0) == (last < 0) and (last - first) * step <= 0:
        return 0
    whole = abs(step) == 1 and (open_begin or (first == 0 and step == 1)) and open_end
    return n if whole else ctx.derived("span", n, "" if open_begin else first, "" if open_end else last, step)


@symbolic
def strided_slice(ctx: Any) -> list[Dims]:
    return [_strided(ctx, ctx.shape("x"), "x")]


@symbolic
def strided_slice_grad(ctx: Any) -> list[Dims]:
    shape, dy = shape_from(ctx, "shape"), ctx.shape("dy")
    want = _strided(ctx, shape, "shape")
    if want is not None and dy is not None:
        _agree(ctx, want, dy, f"dy has shape {show(dy)}, but the slice has {show(want)}")
    return [shape]


def _agree(ctx: Any, a: Any, b: Any, message: str) -> None:
    """Require two runs of dims to be the same, as far as both say something."""
    if len(a) != len(b):
        raise ctx.fail(message)
    for x, y in zip(a, b, strict=True):
        if x is not None and y is not None:
            ctx.equal(x, y, message)


@symbolic
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


@symbolic
def unsorted_segment_sum(ctx: Any) -> list[Dims]:
    data, ids, count = ctx.shape("data"), ctx.shape("segment_ids"), number(ctx, "num_segments")
    if known(count) and count < 0:
        raise ctx.fail(f"num_segments is {count}")
    if not known(count) and count is not None and not count.dim:
        unread(ctx, [count])
    if data is None or ids is None:
        return [None]
    message = f"the shape {show(data)} of data does not begin with the shape {show(ids)} of segment_ids"
    same_run(ctx, data[: len(ids)], ids, message)
    return [(count, *data[len(ids) :])]


def _tuples(ctx: Any, into: Dims, name: str) -> tuple[Dims, int | None]:
    """Leading dims of ``indices`` and the length of its index tuples."""
    indices = ctx.shape("indices")
    if indices is None:
        return None, None
    if not indices:
        raise ctx.fail("indices is a scalar; its last axis must hold index tuples")
    depth = indices[-1]
    if known(depth):
        if into is not None and depth > len(into):
            raise ctx.fail(f"index tuples have {depth} elements, but {name} {show(into)} has rank {len(into)}")
        return indices[:-1], depth
    ctx.unproven()
    return indices[:-1], None


@symbolic
def gather_nd(ctx: Any) -> list[Dims]:
    params = ctx.shape("params")
    lead, depth = _tuples(ctx, params, "params")
    return [None if lead is None or depth is None or params is None else lead + params[depth:]]


@symbolic
def scatter_nd(ctx: Any) -> list[Dims]:
    shape, updates = shape_from(ctx, "shape"), ctx.shape("updates")
    lead, depth = _tuples(ctx, shape, "shape")
    if updates is not None and lead is not None and depth is not None and shape is not None:
        if any(known(n) and n == 0 for n in shape[:depth]) and all(known(n) and n != 0 for n in lead):
            raise ctx.fail(f"there are indices into the shape {show(shape)}, which is empty")
        want = lead + shape[depth:]
        _agree(ctx, want, updates, f"updates have shape {show(updates)}, but indices and shape ask for {show(want)}")
        if 0 in shape[:depth] and all(known(d) and d > 0 for d in lead):
            raise ctx.fail(
                f"there are indices of shape {show(ctx.shape('indices'))} into the empty shape {show(shape)}"
            )
    return [shape]


@symbolic
def one_hot(ctx: Any) -> list[Dims]:
    indices, depth, axis = ctx.shape("indices"), number(ctx, "depth"), ctx.attrs["axis"]
    for name in ("on_value", "off_value"):
        number(ctx, name)
    if known(depth) and depth < 0:
        raise ctx.fail(f"depth is {depth}")
    if not known(depth) and depth is not None and not depth.dim:
        unread(ctx, [depth])
    if indices is None:
        return [None]
    at = axis_of(ctx, axis, len(indices) + 1, "the result")
    return [(*indices[:at], depth, *indices[at:])]


@symbolic
def dynamic_partition(ctx: Any) -> list[Dims]:
    data, partitions, count = ctx.shape("data"), ctx.shape("partitions"), ctx.attrs["num_partitions"]
    if data is None or partitions is None:
        return [None] * count
    message = f"the shape {show(data)} of data does not begin with the shape {show(partitions)} of partitions"
    same_run(ctx, data[: len(partitions)], partitions, message)
    return [(None, *data[len(partitions) :])] * count


@symbolic
def dynamic_stitch(ctx: Any) -> list[Dims]:
    rest: Dims = None
    highest: int | None = -1
    for i, (indices, data) in enumerate(zip(ctx.shapes("indices"), ctx.shapes("data"), strict=True)):
        value = ctx.values("indices", i)
        rows = value if isinstance(value, tuple) else (value,)
        found = [v for row in rows for v in (row if isinstance(row, tuple) else (row,))]
        if highest is None or not all(map(known, found)):
            highest = None
        else:
            highest = max([highest, *found])
        if indices is None or data is None:
            continue
        message = f"the shape {show(data)} of data does not begin with the shape {show(indices)} of its indices"
        same_run(ctx, data[: len(indices)], indices, message)
        tail = data[len(indices) :]
        if rest is None:
            rest = tail
        else:
            message = f"data of shape {show(data)} does not end in {show(rest)}, as those before do"
            rest = same_run(ctx, rest, tail, message)
    return [None if rest is None else (None if highest is None else highest + 1, *rest)]


@symbolic
def tensor_scatter(ctx: Any) -> list[Dims]:
    tensor, updates = ctx.shape("tensor"), ctx.shape("updates")
    lead, depth = _tuples(ctx, tensor, "tensor")
    if updates is not None and lead is not None and depth is not None and tensor is not None:
        want = lead + tensor[depth:]
        _agree(ctx, want, updates, f"updates have shape {show(updates)}, but indices and tensor ask for {show(want)}")
    return [tensor]


@symbolic
def sparse_to_dense(ctx: Any) -> list[Dims]:
    places, values, shape = ctx.shape("sparse_indices"), ctx.shape("sparse_values"), shape_from(ctx, "output_shape")
    if places is None or values is None:
        ctx.unproven()
        return [shape]
    if len(places) > 2:
        raise ctx.fail(f"sparse_indices {show(places)} must be a matrix, a vector or a scalar")
    if values:
        message = (
            f"sparse_values {show(values)} must be a scalar or hold a value for each of sparse_indices {show(places)}"
        )
        if len(values) > 1 or not places:
            raise ctx.fail(message)
        ctx.equal(values[0], places[0], message)
    depth = places[1] if len(places) == 2 else 1
    if shape is not None:
        ctx.equal(depth, len(shape), f"sparse_indices {show(places)} do not fit an output of rank {len(shape)}")
    return [shape]
