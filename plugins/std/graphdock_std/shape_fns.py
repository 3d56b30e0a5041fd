"""Shape functions of the array ops: what patterns cannot say.

Each takes a :class:`graphdock.ops.ShapeContext` and returns one tuple of dims per output, None for an unknown dim or
rank. They use every element of a host input that is known, and raise ``ctx.fail`` (a ShapeError) as soon as what is
known is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

Dims: TypeAlias = "tuple[int | None, ...] | None"


def _show(dims: Dims) -> str:
    return "<unknown>" if dims is None else "[" + ",".join("?" if d is None else str(d) for d in dims) + "]"


def _size(dims: Sequence[int | None]) -> int | None:
    """Product of the dims; 0 as soon as one is 0."""
    if 0 in dims:
        return 0
    return None if None in dims else math.prod(dims)  # type: ignore[arg-type]


def _scalar(ctx: Any, name: str) -> int | None:
    """Known value of an input that must be a scalar."""
    dims = ctx.shape(name)
    if dims is not None and dims != ():
        raise ctx.fail(f"{name} must be a scalar, but its shape is {_show(dims)}")
    value = ctx.values(name)
    return value if isinstance(value, int) else None


def _vector(ctx: Any, name: str) -> tuple[int | None, ...] | None:
    """Known elements of an input that must be a vector; None when not even its length is known."""
    dims = ctx.shape(name)
    if dims is not None and len(dims) != 1:
        raise ctx.fail(f"{name} must be a vector, but its shape is {_show(dims)}")
    value = ctx.values(name)
    if isinstance(value, tuple):
        return value
    if dims is not None and dims[0] is not None:
        return (None,) * dims[0]
    return None


def _axis(ctx: Any, axis: int, rank: int, of: str) -> int:
    """The axis counted from 0."""
    if not -rank <= axis < rank:
        if rank == 0:
            raise ctx.fail(f"{of} is a scalar and has no axis {axis}")
        raise ctx.fail(f"axis {axis} is out of bounds for {of} of rank {rank}; expected {-rank} to {rank - 1}")
    return axis % rank


def _shape_of(ctx: Any, name: str) -> Dims:
    """The shape that a vector input gives; a negative size is an error."""
    dims = _vector(ctx, name)
    for d in dims or ():
        if d is not None and d < 0:
            raise ctx.fail(f"{name} {_show(dims)} holds the negative size {d}")
    return dims


def _merged(ctx: Any, a: int | None, b: int | None, message: str) -> int | None:
    if a is not None and b is not None and a != b:
        raise ctx.fail(message)
    return b if a is None else a


# views


def reshape(ctx: Any) -> list[Dims]:
    x, shape = ctx.shape("x"), _vector(ctx, "shape")
    if shape is None:
        return [None]
    bad = [d for d in shape if d is not None and d < -1]
    if bad:
        raise ctx.fail(f"shape {_show(shape)} holds the negative size {bad[0]}")
    if shape.count(-1) > 1:
        raise ctx.fail(f"shape {_show(shape)} holds -1 more than once")
    elements = None if x is None else _size(x)
    rest = [d for d in shape if d != -1]
    known = _size(rest)
    if -1 not in shape:
        if elements is not None and known is not None and elements != known:
            raise ctx.fail(f"cannot reshape {_show(x)} ({elements} elements) to {_show(shape)} ({known})")
        unknown = [i for i, d in enumerate(shape) if d is None]
        if len(unknown) == 1 and elements is not None:
            others = math.prod(d for d in shape if d is not None)
            if others and elements % others == 0:
                return [tuple(elements // others if d is None else d for d in shape)]
        return [shape]
    left: int | None = None
    if elements is not None and known is not None:
        if known == 0 or elements % known:
            what = "zero elements leave -1 open" if known == 0 else f"{known} per -1"
            raise ctx.fail(f"cannot reshape {_show(x)} ({elements} elements) to {_show(shape)} ({what})")
        left = elements // known
    return [tuple(left if d == -1 else d for d in shape)]


def transpose(ctx: Any) -> list[Dims]:
    x, perm = ctx.shape("x"), _vector(ctx, "perm")
    rank = len(x) if x is not None else (None if perm is None else len(perm))
    if perm is not None and x is not None and len(perm) != len(x):
        raise ctx.fail(f"perm {_show(perm)} is not a permutation of the {len(x)} axes of {_show(x)}")
    if perm is not None and rank is not None:
        known = [p for p in perm if p is not None]
        if any(not 0 <= p < rank for p in known) or len(set(known)) != len(known):
            raise ctx.fail(f"perm {_show(perm)} is not a permutation of 0 .. {rank - 1}")
    if rank is None:
        return [None]
    if perm is None or x is None:
        return [(None,) * rank]
    return [tuple(None if p is None else x[p] for p in perm)]


def expand_dims(ctx: Any) -> list[Dims]:
    x, axis = ctx.shape("x"), _scalar(ctx, "axis")
    if x is None:
        return [None]
    if axis is None:
        return [(None,) * (len(x) + 1)]
    at = _axis(ctx, axis, len(x) + 1, "the result")
    return [(*x[:at], 1, *x[at:])]


def squeeze(ctx: Any) -> list[Dims]:
    x, axes = ctx.shape("x"), tuple(ctx.attrs["axis"])
    if x is None:
        return [None]
    if not axes:
        return [None if None in x else tuple(d for d in x if d != 1)]
    out = {_axis(ctx, a, len(x), "x") for a in axes}
    for a in axes:
        if x[a] not in (None, 1):
            raise ctx.fail(f"axis {a} of {_show(x)} has size {x[a]}, so it can't be squeezed out")
    return [tuple(d for i, d in enumerate(x) if i not in out)]


def slice_(ctx: Any) -> list[Dims]:
    x, begin, size = ctx.shape("x"), _vector(ctx, "begin"), _vector(ctx, "size")
    ranks = {len(v) for v in (x, begin, size) if v is not None}
    if not ranks:
        return [None]
    if len(ranks) > 1:
        raise ctx.fail("begin and size must have one element per axis of x")
    (rank,) = ranks
    unknown = (None,) * rank
    out: list[int | None] = []
    for axis, (n, b, s) in enumerate(zip(x or unknown, begin or unknown, size or unknown, strict=True)):
        if b is not None and (b < 0 or (n is not None and b > n)):
            raise ctx.fail(f"begin is {b} for axis {axis} of size {'?' if n is None else n}")
        if s is not None and s < -1:
            raise ctx.fail(f"size is {s} for axis {axis}")
        if s is None:
            out.append(None)
        elif s == -1:
            out.append(None if n is None or b is None else n - b)
        else:
            if n is not None and (b or 0) + s > n:
                raise ctx.fail(
                    f"axis {axis}: a slice from {'?' if b is None else b} of size {s} is not inside of size {n}"
                )
            out.append(s)
    return [tuple(out)]


def _strided(ctx: Any, x: Dims, of: str) -> Dims:
    """Shape of the strided slice of ``x`` that the node's inputs and masks describe."""
    begin, end, strides = (_vector(ctx, n) for n in ("begin", "end", "strides"))
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
        raise ctx.fail(f"{used} indices for {of} {_show(x)} of rank {len(x)}")
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
    shape, dy = _shape_of(ctx, "shape"), ctx.shape("dy")
    want = _strided(ctx, shape, "shape")
    if want is not None and dy is not None:
        fits = len(want) == len(dy) and all(a is None or b is None or a == b for a, b in zip(want, dy, strict=True))
        if not fits:
            raise ctx.fail(f"dy has shape {_show(dy)}, but the slice has {_show(want)}")
    return [shape]


def reverse(ctx: Any) -> list[Dims]:
    x, axes = ctx.shape("x"), _vector(ctx, "axis")
    if x is not None and axes is not None:
        seen: set[int] = set()
        for a in axes:
            if a is None:
                continue
            at = _axis(ctx, a, len(x), "x")
            if at in seen:
                raise ctx.fail(f"axis {a} of {_show(x)} is given twice")
            seen.add(at)
    return [x]


# joining and cutting


def concat(ctx: Any) -> list[Dims]:
    values, axis = ctx.shapes("values"), _scalar(ctx, "axis")
    known = [s for s in values if s is not None]
    if not known:
        return [None]
    first = known[0]
    rank = len(first)
    if rank == 0:
        raise ctx.fail("values are scalars; use stack")
    for s in known:
        if len(s) != rank:
            raise ctx.fail(f"shapes {_show(first)} and {_show(s)} have different ranks")
    at = None if axis is None else _axis(ctx, axis, rank, "values")
    if at is None:
        return [(None,) * rank]
    out: list[int | None] = []
    for i in range(rank):
        if i == at:
            sizes = [None if s is None else s[i] for s in values]
            out.append(None if None in sizes else sum(sizes))  # type: ignore[arg-type]
            continue
        dim, owner = first[i], first
        for s in known:
            message = f"shapes {_show(owner)} and {_show(s)} differ in axis {i}, but are joined along axis {at}"
            merged = _merged(ctx, dim, s[i], message)
            if dim is None:
                owner = s
            dim = merged
        out.append(dim)
    return [tuple(out)]


def split(ctx: Any) -> list[Dims]:
    value, axis, count = ctx.shape("value"), _scalar(ctx, "axis"), ctx.attrs["num_split"]
    if value is None:
        return [None] * count
    if axis is None:
        return [(None,) * len(value)] * count
    at = _axis(ctx, axis, len(value), "value")
    n = value[at]
    if n is not None and n % count:
        raise ctx.fail(f"axis {axis} of {_show(value)} has size {n}, which can't be cut into {count} equal parts")
    return [(*value[:at], None if n is None else n // count, *value[at + 1 :])] * count


def split_v(ctx: Any) -> list[Dims]:
    value, axis, count = ctx.shape("value"), _scalar(ctx, "axis"), ctx.attrs["num_split"]
    sizes = _vector(ctx, "size_splits")
    if sizes is not None and len(sizes) != count:
        raise ctx.fail(f"size_splits {_show(sizes)} has {len(sizes)} elements, but num_split is {count}")
    parts = list(sizes or (None,) * count)
    bad = [s for s in parts if s is not None and s < -1]
    if bad or parts.count(-1) > 1:
        raise ctx.fail(
            f"size_splits {_show(sizes)} holds " + (f"the negative size {bad[0]}" if bad else "-1 more than once")
        )
    if value is None:
        return [None] * count
    if axis is None:
        return [(None,) * len(value)] * count
    at = _axis(ctx, axis, len(value), "value")
    n = value[at]
    if n is not None and None not in parts:
        given = sum(p for p in parts if p != -1)  # type: ignore[misc]
        if given > n or (-1 not in parts and given != n):
            raise ctx.fail(f"size_splits {_show(sizes)} sum to {given}, but axis {axis} of {_show(value)} has size {n}")
        parts = [n - given if p == -1 else p for p in parts]
    return [(*value[:at], None if p == -1 else p, *value[at + 1 :]) for p in parts]


def pack(ctx: Any) -> list[Dims]:
    shapes = ctx.shapes("values")
    known = [s for s in shapes if s is not None]
    if not known:
        return [None]
    dims: list[int | None] = list(known[0])
    for s in known:
        message = f"shapes {_show(known[0])} and {_show(s)} do not agree"
        if len(s) != len(dims):
            raise ctx.fail(message)
        dims = [_merged(ctx, a, b, message) for a, b in zip(dims, s, strict=True)]
    at = _axis(ctx, ctx.attrs["axis"], len(dims) + 1, "the result")
    return [(*dims[:at], len(shapes), *dims[at:])]


def unpack(ctx: Any) -> list[Dims]:
    value, axis, num = ctx.shape("value"), ctx.attrs["axis"], ctx.attrs["num"]
    if value is None:
        return [None] * num
    at = _axis(ctx, axis, len(value), "value")
    if value[at] not in (None, num):
        raise ctx.fail(f"axis {axis} of {_show(value)} has size {value[at]}, but num is {num}")
    return [value[:at] + value[at + 1 :]] * num


# indexing


def gather(ctx: Any) -> list[Dims]:
    params, indices, axis = ctx.shape("params"), ctx.shape("indices"), _scalar(ctx, "axis")
    if params == ():
        raise ctx.fail("params is a scalar and has no axis")
    if params is None:
        return [None]
    at = None if axis is None else _axis(ctx, axis, len(params), "params")
    if indices is None:
        return [None]
    if at is None:
        return [(None,) * (len(params) - 1 + len(indices))]
    return [(*params[:at], *indices, *params[at + 1 :])]


def unsorted_segment_sum(ctx: Any) -> list[Dims]:
    data, ids, count = ctx.shape("data"), ctx.shape("segment_ids"), _scalar(ctx, "num_segments")
    if count is not None and count < 0:
        raise ctx.fail(f"num_segments is {count}")
    if data is None or ids is None:
        return [None]
    lead = data[: len(ids)]
    fits = len(lead) == len(ids) and all(a is None or b is None or a == b for a, b in zip(lead, ids, strict=True))
    if not fits:
        raise ctx.fail(f"the shape {_show(data)} of data does not begin with the shape {_show(ids)} of segment_ids")
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
        raise ctx.fail(f"index tuples have {depth} elements, but {name} {_show(into)} has rank {len(into)}")
    return indices[:-1], depth


def gather_nd(ctx: Any) -> list[Dims]:
    params = ctx.shape("params")
    lead, depth = _tuples(ctx, params, "params")
    return [None if lead is None or depth is None or params is None else lead + params[depth:]]


def scatter_nd(ctx: Any) -> list[Dims]:
    shape, updates = _shape_of(ctx, "shape"), ctx.shape("updates")
    lead, depth = _tuples(ctx, shape, "shape")
    if updates is not None and lead is not None and depth is not None and shape is not None:
        want = lead + shape[depth:]
        fits = len(want) == len(updates) and all(
            a is None or b is None or a == b for a, b in zip(want, updates, strict=True)
        )
        if not fits:
            raise ctx.fail(f"updates have shape {_show(updates)}, but indices and shape ask for {_show(want)}")
    return [shape]


def one_hot(ctx: Any) -> list[Dims]:
    indices, depth, axis = ctx.shape("indices"), _scalar(ctx, "depth"), ctx.attrs["axis"]
    for name in ("on_value", "off_value"):
        _scalar(ctx, name)
    if depth is not None and depth < 0:
        raise ctx.fail(f"depth is {depth}")
    if indices is None:
        return [None]
    at = _axis(ctx, axis, len(indices) + 1, "the result")
    return [(*indices[:at], depth, *indices[at:])]


# growing


def tile(ctx: Any) -> list[Dims]:
    x, multiples = ctx.shape("x"), _vector(ctx, "multiples")
    if x is not None and multiples is not None and len(x) != len(multiples):
        raise ctx.fail(f"multiples {_show(multiples)} must have one element per axis of {_show(x)}")
    for m in multiples or ():
        if m is not None and m < 0:
            raise ctx.fail(f"multiples {_show(multiples)} holds {m}")
    if x is None:
        return [None if multiples is None else tuple(0 if m == 0 else None for m in multiples)]
    if multiples is None:
        return [(None,) * len(x)]
    return [
        tuple(
            0 if 0 in (d, m) else (None if d is None or m is None else d * m) for d, m in zip(x, multiples, strict=True)
        )
    ]


def _margins(ctx: Any, rank: int | None) -> list[tuple[int | None, int | None]] | None:
    """Rows of ``paddings``; None when not even their number is known."""
    dims = ctx.shape("paddings")
    if dims is not None:
        if len(dims) != 2 or dims[1] not in (None, 2) or (rank is not None and dims[0] not in (None, rank)):
            want = "[rank,2]" if rank is None else f"[{rank},2]"
            raise ctx.fail(f"paddings must have shape {want}, but have {_show(dims)}")
        rank = dims[0] if rank is None else rank
    values = ctx.values("paddings")
    if isinstance(values, tuple) and all(isinstance(row, tuple) for row in values):
        for row in values:
            for p in row:
                if p is not None and p < 0:
                    raise ctx.fail(f"paddings hold {p}; a margin can't be negative")
        return [(row[0], row[1]) for row in values]
    return None if rank is None else [(None, None)] * rank


def pad(ctx: Any) -> list[Dims]:
    x, mode = ctx.shape("x"), ctx.attrs["mode"]
    _scalar(ctx, "constant_values")
    rows = _margins(ctx, None if x is None else len(x))
    if rows is None:
        return [None]
    if x is None:
        return [(None,) * len(rows)]
    out: list[int | None] = []
    for axis, (n, (a, b)) in enumerate(zip(x, rows, strict=True)):
        if mode != "constant" and n is not None:
            limit = max(n - (mode == "reflect"), 0)
            for p in (a, b):
                if p is not None and p > limit:
                    raise ctx.fail(f"mode {mode!r} pads axis {axis} of {_show(x)} by at most {limit}, not {p}")
        out.append(None if n is None or a is None or b is None else n + a + b)
    return [tuple(out)]


def mirror_pad_grad(ctx: Any) -> list[Dims]:
    dy, mode = ctx.shape("dy"), ctx.attrs["mode"]
    rows = _margins(ctx, None if dy is None else len(dy))
    if rows is None:
        return [None]
    if dy is None:
        return [(None,) * len(rows)]
    out: list[int | None] = []
    for axis, (n, (a, b)) in enumerate(zip(dy, rows, strict=True)):
        left = None if n is None or a is None or b is None else n - a - b
        if left is not None and max(a or 0, b or 0) > max(left - (mode == "reflect"), 0):
            raise ctx.fail(f"axis {axis} of {_show(dy)} is smaller than mode {mode!r} with paddings [{a},{b}] makes it")
        out.append(left)
    return [tuple(out)]


def fill(ctx: Any) -> list[Dims]:
    _scalar(ctx, "value")
    return [_shape_of(ctx, "dims")]


def range_(ctx: Any) -> list[Dims]:
    start, limit, delta = (_scalar(ctx, n) for n in ("start", "limit", "delta"))
    if delta == 0:
        raise ctx.fail("delta is zero")
    if start is None or limit is None or delta is None:
        return [(None,)]
    return [(len(range(start, limit, delta)),)]


def lin_space(ctx: Any) -> list[Dims]:
    num = _scalar(ctx, "num")
    for name in ("start", "stop"):
        _scalar(ctx, name)
    if num is not None and num < 1:
        raise ctx.fail(f"num is {num}; expected 1 or more")
    return [(num,)]


def broadcast_to(ctx: Any) -> list[Dims]:
    x, shape = ctx.shape("x"), _shape_of(ctx, "shape")
    if x is None or shape is None:
        return [shape]
    fits = len(x) <= len(shape) and all(
        a is None or b is None or a in (1, b) for a, b in zip(reversed(x), reversed(shape), strict=False)
    )
    if not fits:
        raise ctx.fail(f"{_show(x)} can't be broadcast to {_show(shape)}")
    lead = len(shape) - len(x)
    return [
        tuple(d if d is not None or i < lead or x[i - lead] in (None, 1) else x[i - lead] for i, d in enumerate(shape))
    ]
