"""Shape functions of the array ops: what patterns cannot say.

Each takes a :class:`graphdock.ops.ShapeContext` and returns one tuple of dims per output, None for an unknown dim or
rank. They use every element of a host input that is known, and raise ``ctx.fail`` (a ShapeError) as soon as what is
known is wrong.
"""

from __future__ import annotations

import math
from typing import Any

from graphdock_std.shape_support import Dims, axis_of, elements, merged, scalar, shape_from, show, vector

# views


def reshape(ctx: Any) -> list[Dims]:
    x, shape = ctx.shape("x"), vector(ctx, "shape")
    if shape is None:
        return [None]
    bad = [d for d in shape if d is not None and d < -1]
    if bad:
        raise ctx.fail(f"shape {show(shape)} holds the negative size {bad[0]}")
    if shape.count(-1) > 1:
        raise ctx.fail(f"shape {show(shape)} holds -1 more than once")
    total = None if x is None else elements(x)
    rest = [d for d in shape if d != -1]
    known = elements(rest)
    if -1 not in shape:
        if total is not None and known is not None and total != known:
            raise ctx.fail(f"cannot reshape {show(x)} ({total} elements) to {show(shape)} ({known})")
        unknown = [i for i, d in enumerate(shape) if d is None]
        if len(unknown) == 1 and total is not None:
            others = math.prod(d for d in shape if d is not None)
            if others and total % others == 0:
                return [tuple(total // others if d is None else d for d in shape)]
        return [shape]
    left: int | None = None
    if total is not None and known is not None:
        if known == 0 or total % known:
            what = "zero elements leave -1 open" if known == 0 else f"{known} per -1"
            raise ctx.fail(f"cannot reshape {show(x)} ({total} elements) to {show(shape)} ({what})")
        left = total // known
    return [tuple(left if d == -1 else d for d in shape)]


def transpose(ctx: Any) -> list[Dims]:
    x, perm = ctx.shape("x"), vector(ctx, "perm")
    rank = len(x) if x is not None else (None if perm is None else len(perm))
    if perm is not None and x is not None and len(perm) != len(x):
        raise ctx.fail(f"perm {show(perm)} is not a permutation of the {len(x)} axes of {show(x)}")
    if perm is not None and rank is not None:
        known = [p for p in perm if p is not None]
        if any(not 0 <= p < rank for p in known) or len(set(known)) != len(known):
            raise ctx.fail(f"perm {show(perm)} is not a permutation of 0 .. {rank - 1}")
    if rank is None:
        return [None]
    if perm is None or x is None:
        return [(None,) * rank]
    return [tuple(None if p is None else x[p] for p in perm)]


def expand_dims(ctx: Any) -> list[Dims]:
    x, axis = ctx.shape("x"), scalar(ctx, "axis")
    if x is None:
        return [None]
    if axis is None:
        return [(None,) * (len(x) + 1)]
    at = axis_of(ctx, axis, len(x) + 1, "the result")
    return [(*x[:at], 1, *x[at:])]


def squeeze(ctx: Any) -> list[Dims]:
    x, axes = ctx.shape("x"), tuple(ctx.attrs["axis"])
    if x is None:
        return [None]
    if not axes:
        return [None if None in x else tuple(d for d in x if d != 1)]
    out = {axis_of(ctx, a, len(x), "x") for a in axes}
    for a in axes:
        if x[a] not in (None, 1):
            raise ctx.fail(f"axis {a} of {show(x)} has size {x[a]}, so it can't be squeezed out")
    return [tuple(d for i, d in enumerate(x) if i not in out)]


def slice_(ctx: Any) -> list[Dims]:
    x, begin, size = ctx.shape("x"), vector(ctx, "begin"), vector(ctx, "size")
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


def reverse(ctx: Any) -> list[Dims]:
    x, axes = ctx.shape("x"), vector(ctx, "axis")
    if x is not None and axes is not None:
        seen: set[int] = set()
        for a in axes:
            if a is None:
                continue
            at = axis_of(ctx, a, len(x), "x")
            if at in seen:
                raise ctx.fail(f"axis {a} of {show(x)} is given twice")
            seen.add(at)
    return [x]


# joining and cutting


def concat(ctx: Any) -> list[Dims]:
    values, axis = ctx.shapes("values"), scalar(ctx, "axis")
    known = [s for s in values if s is not None]
    if not known:
        return [None]
    first = known[0]
    rank = len(first)
    if rank == 0:
        raise ctx.fail("values are scalars; use stack")
    for s in known:
        if len(s) != rank:
            raise ctx.fail(f"shapes {show(first)} and {show(s)} have different ranks")
    at = None if axis is None else axis_of(ctx, axis, rank, "values")
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
            message = f"shapes {show(owner)} and {show(s)} differ in axis {i}, but are joined along axis {at}"
            both = merged(ctx, dim, s[i], message)
            if dim is None:
                owner = s
            dim = both
        out.append(dim)
    return [tuple(out)]


def split(ctx: Any) -> list[Dims]:
    value, axis, count = ctx.shape("value"), scalar(ctx, "axis"), ctx.attrs["num_split"]
    if value is None:
        return [None] * count
    if axis is None:
        return [(None,) * len(value)] * count
    at = axis_of(ctx, axis, len(value), "value")
    n = value[at]
    if n is not None and n % count:
        raise ctx.fail(f"axis {axis} of {show(value)} has size {n}, which can't be cut into {count} equal parts")
    return [(*value[:at], None if n is None else n // count, *value[at + 1 :])] * count


def split_v(ctx: Any) -> list[Dims]:
    value, axis, count = ctx.shape("value"), scalar(ctx, "axis"), ctx.attrs["num_split"]
    sizes = vector(ctx, "size_splits")
    if sizes is not None and len(sizes) != count:
        raise ctx.fail(f"size_splits {show(sizes)} has {len(sizes)} elements, but num_split is {count}")
    parts = list(sizes or (None,) * count)
    bad = [s for s in parts if s is not None and s < -1]
    if bad or parts.count(-1) > 1:
        raise ctx.fail(
            f"size_splits {show(sizes)} holds " + (f"the negative size {bad[0]}" if bad else "-1 more than once")
        )
    if value is None:
        return [None] * count
    if axis is None:
        return [(None,) * len(value)] * count
    at = axis_of(ctx, axis, len(value), "value")
    n = value[at]
    if n is not None and None not in parts:
        given = sum(p for p in parts if p != -1)  # type: ignore[misc]
        if given > n or (-1 not in parts and given != n):
            raise ctx.fail(f"size_splits {show(sizes)} sum to {given}, but axis {axis} of {show(value)} has size {n}")
        parts = [n - given if p == -1 else p for p in parts]
    return [(*value[:at], None if p == -1 else p, *value[at + 1 :]) for p in parts]


def pack(ctx: Any) -> list[Dims]:
    shapes = ctx.shapes("values")
    known = [s for s in shapes if s is not None]
    if not known:
        return [None]
    dims: list[int | None] = list(known[0])
    for s in known:
        message = f"shapes {show(known[0])} and {show(s)} do not agree"
        if len(s) != len(dims):
            raise ctx.fail(message)
        dims = [merged(ctx, a, b, message) for a, b in zip(dims, s, strict=True)]
    at = axis_of(ctx, ctx.attrs["axis"], len(dims) + 1, "the result")
    return [(*dims[:at], len(shapes), *dims[at:])]


def unpack(ctx: Any) -> list[Dims]:
    value, axis, num = ctx.shape("value"), ctx.attrs["axis"], ctx.attrs["num"]
    if value is None:
        return [None] * num
    at = axis_of(ctx, axis, len(value), "value")
    if value[at] not in (None, num):
        raise ctx.fail(f"axis {axis} of {show(value)} has size {value[at]}, but num is {num}")
    return [value[:at] + value[at + 1 :]] * num


# growing


def tile(ctx: Any) -> list[Dims]:
    x, multiples = ctx.shape("x"), vector(ctx, "multiples")
    if x is not None and multiples is not None and len(x) != len(multiples):
        raise ctx.fail(f"multiples {show(multiples)} must have one element per axis of {show(x)}")
    for m in multiples or ():
        if m is not None and m < 0:
            raise ctx.fail(f"multiples {show(multiples)} holds {m}")
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
            raise ctx.fail(f"paddings must have shape {want}, but have {show(dims)}")
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
    scalar(ctx, "constant_values")
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
                    raise ctx.fail(f"mode {mode!r} pads axis {axis} of {show(x)} by at most {limit}, not {p}")
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
            raise ctx.fail(f"axis {axis} of {show(dy)} is smaller than mode {mode!r} with paddings [{a},{b}] makes it")
        out.append(left)
    return [tuple(out)]


def fill(ctx: Any) -> list[Dims]:
    scalar(ctx, "value")
    return [shape_from(ctx, "dims")]


def range_(ctx: Any) -> list[Dims]:
    start, limit, delta = (scalar(ctx, n) for n in ("start", "limit", "delta"))
    if delta == 0:
        raise ctx.fail("delta is zero")
    if start is None or limit is None or delta is None:
        return [(None,)]
    return [(len(range(start, limit, delta)),)]


def lin_space(ctx: Any) -> list[Dims]:
    num = scalar(ctx, "num")
    for name in ("start", "stop"):
        scalar(ctx, name)
    if num is not None and num < 1:
        raise ctx.fail(f"num is {num}; expected 1 or more")
    return [(num,)]


def broadcast_to(ctx: Any) -> list[Dims]:
    x, shape = ctx.shape("x"), shape_from(ctx, "shape")
    if x is None or shape is None:
        return [shape]
    can = len(x) <= len(shape) and all(
        a is None or b is None or a in (1, b) for a, b in zip(reversed(x), reversed(shape), strict=False)
    )
    if not can:
        raise ctx.fail(f"{show(x)} can't be broadcast to {show(shape)}")
    lead = len(shape) - len(x)
    return [
        tuple(d if d is not None or i < lead or x[i - lead] in (None, 1) else x[i - lead] for i, d in enumerate(shape))
    ]
