"""Shape functions of the array ops: what patterns cannot say.

Each takes a :class:`graphdock.ops.ShapeContext` and returns one tuple of dims per output, None for an unknown dim or
rank. They use every element of a host input that is known, and raise ``ctx.fail`` (a ShapeError) as soon as what is
known is wrong. In a plan unknown dims are symbols, which they pass on; see :func:`graphdock.ops.symbolic`.
"""

from __future__ import annotations

import math
from typing import Any

from graphdock.contracts import shape as _shapes
from graphdock.ops import symbolic

from graphdock_std.shape_support import (
    Dims,
    axis_of,
    elements,
    factors,
    known,
    number,
    numbers,
    same_run,
    scalar,
    shape_from,
    show,
    unread,
    vector,
)

# views


@symbolic
def reshape(ctx: Any) -> list[Dims]:
    x, shape = ctx.shape("x"), vector(ctx, "shape")
    if shape is None:
        return [None]
    bad = [d for d in shape if known(d) and d < -1]
    if bad:
        raise ctx.fail(f"shape {show(shape)} holds the negative size {bad[0]}")
    if shape.count(-1) > 1:
        raise ctx.fail(f"shape {show(shape)} holds -1 more than once")
    rest = [d for d in shape if d != -1]
    total, count = None if x is None else elements(x), elements(rest)
    if total is not None and count is not None:
        if -1 not in shape:
            if total != count:
                raise ctx.fail(f"cannot reshape {show(x)} ({total} elements) to {show(shape)} ({count})")
            return [shape]
        if total % count if count else total:
            raise ctx.fail(f"cannot reshape {show(x)} ({total} elements) to {show(shape)} ({count} per -1)")
        if count or all(map(known, (*(x or ()), *rest))):
            left = total // count if count else _shapes.left_over(x or (), rest)
            return [tuple(left if d == -1 else d for d in shape)]
    if any(d is None or not (known(d) or d.dim) for d in shape):
        return [_asked(ctx, x, shape)]
    return [_proportioned(ctx, x, shape, rest)]


def _asked(ctx: Any, x: Dims, shape: tuple[Any, ...]) -> Dims:
    """A shape some elements of which only a step knows; the only unknown one is what x leaves."""
    unread(ctx, [*shape, *(x or ())])
    others = [d for d in shape if known(d)]
    total = None if x is None else elements(x)
    if len(others) == len(shape) - 1 and total is not None and -1 not in others:
        count = math.prod(others)
        if count and total % count == 0:
            return tuple(d if known(d) else ctx.equal(d, total // count, "") for d in shape)
    return tuple(d if known(d) and d != -1 else None for d in shape)


def _proportioned(ctx: Any, x: Dims, shape: tuple[Any, ...], rest: list[Any]) -> Dims:
    """A shape of dims and symbols of dims: the symbols that x has beyond them are left for -1."""
    have, want = None if x is None else factors(ctx, x), factors(ctx, rest)
    if have is None or want is None:
        ctx.unproven()
        return tuple(None if d == -1 else d for d in shape)
    open_dim = ctx.derived("reshape", *have[1], have[0], math.prod(d for d in x if known(d) and d), *rest)
    left, shared = list(have[1]), [d for d in want[1] if d in have[1]]
    for d in want[1]:
        if d not in left:
            ctx.unproven()
            return tuple(open_dim if d == -1 else d for d in shape)
        left.remove(d)
    if want[0] == 0 or have[0] % want[0]:
        ctx.unproven()
        return tuple(open_dim if d == -1 else d for d in shape)
    times = have[0] // want[0]
    if -1 not in shape:
        if left or times != 1:
            ctx.unproven()
        return shape
    if left or times == 0:
        for d in shared:
            ctx.at_least(d, 1, "")  # of no elements, -1 is what is left without the dims of size 0
    if not left or times == 0:
        dim: Any = times
    else:
        dim = left[0] if times == 1 and len(left) == 1 else ctx.derived("product", times, *left)
    return tuple(dim if d == -1 else d for d in shape)


@symbolic
def transpose(ctx: Any) -> list[Dims]:
    x, perm = ctx.shape("x"), numbers(ctx, "perm")
    rank = len(x) if x is not None else (None if perm is None else len(perm))
    if perm is not None and x is not None and len(perm) != len(x):
        raise ctx.fail(f"perm {show(perm)} is not a permutation of the {len(x)} axes of {show(x)}")
    if perm is not None and rank is not None:
        axes = [p for p in perm if p is not None]
        if any(not 0 <= p < rank for p in axes) or len(set(axes)) != len(axes):
            raise ctx.fail(f"perm {show(perm)} is not a permutation of 0 .. {rank - 1}")
    if rank is None:
        return [None]
    if perm is None or x is None:
        return [(None,) * rank]
    return [tuple(None if p is None else x[p] for p in perm)]


@symbolic
def expand_dims(ctx: Any) -> list[Dims]:
    x, axis = ctx.shape("x"), scalar(ctx, "axis")
    if x is None:
        return [None]
    if axis is None:
        return [(None,) * (len(x) + 1)]
    at = axis_of(ctx, axis, len(x) + 1, "the result")
    return [(*x[:at], 1, *x[at:])]


@symbolic
def squeeze(ctx: Any) -> list[Dims]:
    x, axes = ctx.shape("x"), tuple(ctx.attrs["axis"])
    if x is None:
        return [None]
    if not axes:
        return [tuple(d for d in x if d != 1) if all(map(known, x)) else None]
    out = {axis_of(ctx, a, len(x), "x") for a in axes}
    for a in axes:
        if x[a] != 1:
            ctx.equal(x[a], 1, f"axis {a} of {show(x)} has size {x[a]}, so it can't be squeezed out")
    return [tuple(d for i, d in enumerate(x) if i not in out)]


@symbolic
def slice_(ctx: Any) -> list[Dims]:
    x, begin, size = ctx.shape("x"), vector(ctx, "begin"), vector(ctx, "size")
    ranks = {len(v) for v in (x, begin, size) if v is not None}
    if not ranks:
        return [None]
    if len(ranks) > 1:
        raise ctx.fail("begin and size must have one element per axis of x")
    (rank,) = ranks
    unknown = (None,) * rank
    return [
        tuple(
            _sliced(ctx, axis, n, b, s)
            for axis, (n, b, s) in enumerate(zip(x or unknown, begin or unknown, size or unknown, strict=True))
        )
    ]


def _sliced(ctx: Any, axis: int, n: Any, b: Any, s: Any) -> Any:
    """Size of the slice of one axis of size ``n``, from ``b``, of size ``s``."""
    at, of = b if known(b) else "?", n if known(n) else "?"
    if known(b) and (b < 0 or (known(n) and b > n)):
        raise ctx.fail(f"begin is {at} for axis {axis} of size {of}")
    if known(s) and s < -1:
        raise ctx.fail(f"size is {s} for axis {axis}")
    outside = f"axis {axis}: a slice from {at} of size {s} is not inside of size {of}"
    if known(b) and known(s):
        ctx.at_least(n, b + max(s, 0), outside)
    elif known(s) and known(n) and s > n:
        raise ctx.fail(outside)
    elif not (b == 0 and s is not None and ctx.canonical(s) is ctx.canonical(n)):
        unread(ctx, [b, s])
    if s == -1:
        return n - b if known(n) and known(b) else n if b == 0 else ctx.derived("left", n, b)
    return s if s is None or known(s) or s.dim else ctx.derived("sliced", n, b, s)


@symbolic
def reverse(ctx: Any) -> list[Dims]:
    x, axes = ctx.shape("x"), numbers(ctx, "axis")
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


@symbolic
def concat(ctx: Any) -> list[Dims]:
    values, axis = ctx.shapes("values"), scalar(ctx, "axis")
    ranked = [s for s in values if s is not None]
    if not ranked:
        return [None]
    first = ranked[0]
    rank = len(first)
    if rank == 0:
        raise ctx.fail("values are scalars; use stack")
    for s in ranked:
        if len(s) != rank:
            raise ctx.fail(f"shapes {show(first)} and {show(s)} have different ranks")
    at = None if axis is None else axis_of(ctx, axis, rank, "values")
    if at is None:
        return [(None,) * rank]
    out: list[Any] = []
    for i in range(rank):
        if i == at:
            sizes = [None if s is None else s[i] for s in values]
            out.append(sum(sizes) if all(map(known, sizes)) else ctx.derived("sum", *sizes))
            continue
        dim, owner = first[i], first
        for s in ranked:
            message = f"shapes {show(owner)} and {show(s)} differ in axis {i}, but are joined along axis {at}"
            both = ctx.equal(dim, s[i], message)
            if not known(dim):
                owner = s
            dim = both
        out.append(dim)
    return [tuple(out)]


@symbolic
def split(ctx: Any) -> list[Dims]:
    value, axis, count = ctx.shape("value"), scalar(ctx, "axis"), ctx.attrs["num_split"]
    if value is None:
        return [None] * count
    if axis is None:
        return [(None,) * len(value)] * count
    at = axis_of(ctx, axis, len(value), "value")
    n = value[at]
    if known(n) and n % count:
        raise ctx.fail(f"axis {axis} of {show(value)} has size {n}, which can't be cut into {count} equal parts")
    if not known(n) and n is not None and count > 1:
        ctx.unproven(n)
    size = n // count if known(n) else n if count == 1 else ctx.derived("part", n, count)
    return [(*value[:at], size, *value[at + 1 :])] * count


@symbolic
def split_v(ctx: Any) -> list[Dims]:
    value, axis, count = ctx.shape("value"), scalar(ctx, "axis"), ctx.attrs["num_split"]
    sizes = numbers(ctx, "size_splits")
    if sizes is not None and len(sizes) != count:
        raise ctx.fail(f"size_splits {show(sizes)} has {len(sizes)} elements, but num_split is {count}")
    parts: list[Any] = list(sizes or (None,) * count)
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
    if None not in parts:
        given = sum(p for p in parts if p != -1)
        message = f"size_splits {show(sizes)} sum to {given}, but axis {axis} of {show(value)} has size {n}"
        if -1 in parts:
            ctx.at_least(n, given, message)
            left = n - given if known(n) else n if given == 0 else ctx.derived("left", n, given)
            parts = [left if p == -1 else p for p in parts]
        else:
            ctx.equal(n, given, message)
    return [(*value[:at], None if p == -1 else p, *value[at + 1 :]) for p in parts]


@symbolic
def pack(ctx: Any) -> list[Dims]:
    shapes = ctx.shapes("values")
    ranked = [s for s in shapes if s is not None]
    if not ranked:
        return [None]
    dims: tuple[Any, ...] = ranked[0]
    for s in ranked[1:]:
        dims = same_run(ctx, dims, s, f"shapes {show(ranked[0])} and {show(s)} do not agree")
    at = axis_of(ctx, ctx.attrs["axis"], len(dims) + 1, "the result")
    return [(*dims[:at], len(shapes), *dims[at:])]


@symbolic
def unpack(ctx: Any) -> list[Dims]:
    value, axis, num = ctx.shape("value"), ctx.attrs["axis"], ctx.attrs["num"]
    if value is None:
        return [None] * num
    at = axis_of(ctx, axis, len(value), "value")
    ctx.equal(value[at], num, f"axis {axis} of {show(value)} has size {value[at]}, but num is {num}")
    return [value[:at] + value[at + 1 :]] * num


# growing


@symbolic
def tile(ctx: Any) -> list[Dims]:
    x, multiples = ctx.shape("x"), vector(ctx, "multiples")
    if x is not None and multiples is not None and len(x) != len(multiples):
        raise ctx.fail(f"multiples {show(multiples)} must have one element per axis of {show(x)}")
    for m in multiples or ():
        if known(m) and m < 0:
            raise ctx.fail(f"multiples {show(multiples)} holds {m}")
    unread(ctx, [m for m in multiples or () if not known(m) and m is not None and not m.dim])
    if x is None:
        return [None if multiples is None else tuple(0 if m == 0 else None for m in multiples)]
    if multiples is None:
        return [(None,) * len(x)]
    return [tuple(_times(ctx, d, m) for d, m in zip(x, multiples, strict=True))]


def _times(ctx: Any, dim: Any, multiple: Any) -> Any:
    if 0 in (dim, multiple):
        return 0
    if known(dim) and known(multiple):
        return dim * multiple
    if multiple == 1:
        return dim
    return multiple if dim == 1 else ctx.derived("product", dim, multiple)


def _margins(ctx: Any, rank: int | None) -> list[tuple[Any, Any]] | None:
    """Rows of ``paddings``; None when not even their number is known."""
    dims = ctx.shape("paddings")
    if dims is not None:
        want = "[rank,2]" if rank is None else f"[{rank},2]"
        message = f"paddings must have shape {want}, but have {show(dims)}"
        if len(dims) != 2:
            raise ctx.fail(message)
        ctx.equal(dims[1], 2, message)
        if rank is not None:
            ctx.equal(dims[0], rank, message)
        elif known(dims[0]):
            rank = dims[0]
    values = ctx.values("paddings")
    if isinstance(values, tuple) and all(isinstance(row, tuple) for row in values):
        for row in values:
            for p in row:
                if known(p) and p < 0:
                    raise ctx.fail(f"paddings hold {p}; a margin can't be negative")
        unread(ctx, [p for row in values for p in row])
        return [(row[0], row[1]) for row in values]
    return None if rank is None else [(None, None)] * rank


@symbolic
def pad(ctx: Any) -> list[Dims]:
    x, mode = ctx.shape("x"), ctx.attrs["mode"]
    scalar(ctx, "constant_values")
    rows = _margins(ctx, None if x is None else len(x))
    if rows is None:
        return [None]
    if x is None:
        return [(None,) * len(rows)]
    out: list[Any] = []
    for axis, (n, margins) in enumerate(zip(x, rows, strict=True)):
        if mode != "constant":
            inner = mode == "reflect"
            limit = max(n - inner, 0) if known(n) else "?"
            for p in margins:
                if known(p) and p:
                    message = f"mode {mode!r} pads axis {axis} of {show(x)} by at most {limit}, not {p}"
                    ctx.at_least(n, p + inner, message)
        if margins == (0, 0):
            out.append(n)
        elif known(n) and all(map(known, margins)):
            out.append(n + sum(margins))
        else:
            out.append(ctx.derived("padded", n, *margins))
    return [tuple(out)]


@symbolic
def mirror_pad_grad(ctx: Any) -> list[Dims]:
    dy, mode = ctx.shape("dy"), ctx.attrs["mode"]
    rows = _margins(ctx, None if dy is None else len(dy))
    if rows is None:
        return [None]
    if dy is None:
        return [(None,) * len(rows)]
    out: list[Any] = []
    for axis, (n, (a, b)) in enumerate(zip(dy, rows, strict=True)):
        if not (known(a) and known(b)):
            out.append(None)
            continue
        least = a + b + max(a, b) + (mode == "reflect" and max(a, b) > 0)
        message = f"axis {axis} of {show(dy)} is smaller than mode {mode!r} with paddings [{a},{b}] makes it"
        ctx.at_least(n, least, message)
        out.append(n - a - b if known(n) else n if a == b == 0 else ctx.derived("inner", n, a, b))
    return [tuple(out)]


@symbolic
def fill(ctx: Any) -> list[Dims]:
    number(ctx, "value")
    return [shape_from(ctx, "dims")]


@symbolic
def range_(ctx: Any) -> list[Dims]:
    start, limit, delta = (number(ctx, n) for n in ("start", "limit", "delta"))
    if delta == 0:
        raise ctx.fail("delta is zero")
    if known(start) and known(limit) and known(delta):
        if (limit - start) * delta < 0:
            raise ctx.fail(f"limit {limit} lies behind start {start}, as seen along delta {delta}")
        return [(len(range(start, limit, delta)),)]
    if (start, delta) == (0, 1) and limit is not None and limit.dim:
        return [(limit,)]
    unread(ctx, [delta])
    return [(ctx.derived("range", start, limit, delta),)]


@symbolic
def lin_space(ctx: Any) -> list[Dims]:
    num = number(ctx, "num")
    if num is not None and (known(num) or num.fed):
        ctx.at_least(num, 1, f"num is {num}; expected 1 or more")
    for name in ("start", "stop"):
        number(ctx, name)
    return [(num,)]


@symbolic
def broadcast_to(ctx: Any) -> list[Dims]:
    x, shape = ctx.shape("x"), shape_from(ctx, "shape")
    if x is None or shape is None:
        return [shape]
    message = f"{show(x)} can't be broadcast to {show(shape)}"
    lead = len(shape) - len(x)
    if lead < 0:
        raise ctx.fail(message)
    out = list(shape[:lead])
    for have, want in zip(x, shape[lead:], strict=True):
        if known(have) and have != 1 and not known(want):
            out.append(ctx.equal(want, have, message))
            continue
        if want is not None:
            ctx.one_or_equal(have, want, message)
        out.append(want if want is not None or have in (None, 1) else None)
    return [tuple(out)]
