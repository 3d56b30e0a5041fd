"""Kernels that make a new array of the elements of others: concat, stack, tile, pad, fill, diagonals, ranges.

All write into the planned buffer; nothing is allocated where shapes are static.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from graphdock.contracts import Bound, BuildContext, In, KernelDef, Out, Scratch, dtypes, errors

from graphdock_cpu.kernels.common import is_half, known
from graphdock_cpu.kernels.views import ALL, guarded, within_rank

__all__ = ["KERNELS", "Writer", "bind_writer"]

#: Writes its result into its last argument.
Writer = Callable[..., None]


def bind_writer(
    ctx: BuildContext, write: Writer, reads: Sequence[int], shape_of: Callable[..., Sequence[int]]
) -> Bound:
    """The Bound of a kernel that writes a whole array.

    Args:
      write: called with the inputs ``reads`` and the array to write.
      shape_of: the shape of the result from the same inputs; called in mode fresh only.
    """
    args = tuple(In(i) for i in reads)
    if not ctx.fresh:
        return Bound(write, args=(*args, Out(0)))
    dtype = ctx.outputs[0].dtype.np

    def compute(*inputs: Any) -> np.ndarray:
        out = np.empty(tuple(shape_of(*inputs)), dtype)
        write(*inputs, out)
        return out

    return Bound(guarded(compute, ctx.node.op), args=args)


def _axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise errors.InvalidArgumentError(f"axis {axis} is out of bounds for rank {rank}")
    return axis % rank


def concat(ctx: BuildContext) -> Bound:
    count = ctx.attr("N")
    axis = ctx.inputs[count].value
    values = tuple(In(i) for i in range(count))
    join = np.concatenate
    if axis is not None:
        fixed = int(axis)
        if ctx.fresh:
            return Bound(guarded(lambda *v: np.ascontiguousarray(join(v, fixed)), "Concat"), args=values)
        checked = all(known(a.shape) for a in ctx.inputs[:count])

        def compute(*args: Any) -> None:
            join(args[:count], fixed, args[count])

        return Bound(compute if checked else guarded(compute, "Concat"), args=(*values, Out(0)))
    if ctx.fresh:
        return Bound(guarded(lambda *v: np.ascontiguousarray(join(v[:-1], int(v[-1]))), "Concat"))

    def compute_along(*args: Any) -> None:
        join(args[:count], int(args[count]), args[count + 1])

    return Bound(guarded(compute_along, "Concat"))


def pack(ctx: BuildContext) -> Bound:
    count, axis = ctx.attr("N"), ctx.attr("axis")
    shape = ctx.outputs[0].shape
    # an element of an object array would become the scalar's array, not what that holds
    rest = (...,) if ctx.outputs[0].dtype is dtypes.string else ()

    def slots(rank: int) -> list[tuple[Any, ...]]:
        lead = (ALL,) * _axis(axis, rank)
        return [(*lead, i, *rest) for i in range(count)]

    def stacked(*values: Any) -> list[int]:
        dims = list(values[0].shape)
        dims.insert(_axis(axis, len(dims) + 1), count)
        return dims

    if shape is None:

        def write(*args: Any) -> None:
            out = args[-1]
            for slot, value in zip(slots(out.ndim), args[:-1], strict=True):
                out[slot] = _same_shape(value, args[0])

        return bind_writer(ctx, write, range(count), stacked)
    fixed = slots(len(shape))

    def write_fixed(*args: Any) -> None:
        out = args[count]
        for i, slot in enumerate(fixed):
            out[slot] = args[i]

    if all(known(a.shape) for a in ctx.inputs):
        return bind_writer(ctx, write_fixed, range(count), stacked)

    def write_checked(*args: Any) -> None:
        for value in args[1:-1]:
            _same_shape(value, args[0])
        write_fixed(*args)

    return bind_writer(ctx, write_checked, range(count), stacked)


def _same_shape(value: Any, first: Any) -> Any:
    if value.shape != first.shape:
        raise errors.InvalidArgumentError(f"Pack: shapes {list(first.shape)} and {list(value.shape)} do not agree")
    return value


def tile(ctx: BuildContext) -> Bound:
    multiples = ctx.inputs[1].value
    fixed = None if multiples is None else multiples.tolist()

    def repeat(x: Any, times: Sequence[int], out: Any) -> None:
        if len(times) != x.ndim or min(times, default=0) < 0:
            raise errors.InvalidArgumentError(f"Tile: multiples {list(times)} do not fit shape {list(x.shape)}")
        if 2 * x.ndim > 32:
            np.copyto(out, np.tile(x, times))
            return
        spread: list[int] = []
        for m, d in zip(times, x.shape, strict=True):
            spread += (m, d)
        np.copyto(out.reshape(spread), x[(None, ALL) * x.ndim])

    if fixed is not None:
        return bind_writer(
            ctx,
            lambda x, out: repeat(x, fixed, out),
            (0,),
            lambda x: [m * d for m, d in zip(fixed, x.shape, strict=True)],
        )
    return bind_writer(
        ctx,
        lambda x, m, out: repeat(x, m.tolist(), out),
        (0, 1),
        lambda x, m: [k * d for k, d in zip(m.tolist(), x.shape, strict=True)],
    )


def _margins(paddings: Any, shape: Sequence[int], mode: str) -> list[tuple[int, int]]:
    """Rows of paddings as ints. Raises InvalidArgumentError where they do not fit the shape."""
    if paddings.shape != (len(shape), 2):
        raise errors.InvalidArgumentError(
            f"Pad: paddings have shape {list(paddings.shape)}", expected=f"[{len(shape)},2]"
        )
    rows = [(int(a), int(b)) for a, b in paddings]
    for axis, ((a, b), n) in enumerate(zip(rows, shape, strict=True)):
        limit = None if mode == "constant" else n - (mode == "reflect")
        if min(a, b) < 0 or (limit is not None and max(a, b) > max(limit, 0)):
            raise errors.InvalidArgumentError(
                f"Pad: paddings [{a}, {b}] of axis {axis} do not fit mode {mode!r} and size {n}",
                expected="none negative" if limit is None else f"from 0 to {limit}",
            )
    return rows


def _mirrors(rows: Sequence[tuple[int, int]], shape: Sequence[int], mode: str) -> list[tuple[Any, Any]]:
    """Pairs of indices (margin, what it mirrors) into the padded array; a later axis also mirrors earlier margins."""
    skip = 1 if mode == "reflect" else 0
    pairs = []
    for axis, ((a, b), n) in enumerate(zip(rows, shape, strict=True)):
        lead = (ALL,) * axis
        if a:
            first = a + skip + a - 1
            pairs.append(((*lead, slice(0, a)), (*lead, slice(first, first - a, -1))))
        if b:
            first = a + n - 1 - skip
            stop = first - b
            pairs.append(((*lead, slice(a + n, a + n + b)), (*lead, slice(first, None if stop < 0 else stop, -1))))
    return pairs


def pad(ctx: BuildContext) -> Bound:
    mode, paddings, shape = ctx.attr("mode"), ctx.inputs[1].value, ctx.inputs[0].shape

    def prepare(shape: Sequence[int], paddings: Any) -> tuple[Any, list[tuple[Any, Any]]]:
        rows = _margins(paddings, shape, mode)
        inner = (*(slice(a, a + n) for (a, _), n in zip(rows, shape, strict=True)), Ellipsis)
        return inner, ([] if mode == "constant" else _mirrors(rows, shape, mode))

    def write(x: Any, value: Any, out: Any, inner: Any, pairs: Any) -> None:
        if mode == "constant":
            np.copyto(out, value)
        out[inner] = x
        for margin, mirrored in pairs:
            out[margin] = out[mirrored]

    def grown(x: Any, p: Any) -> list[int]:
        return [n + a + b for n, (a, b) in zip(x.shape, _margins(p, x.shape, mode), strict=True)]

    if paddings is not None and known(shape):
        inner, pairs = prepare(shape, paddings)
        return bind_writer(
            ctx, lambda x, v, out: write(x, v, out, inner, pairs), (0, 2), lambda x, v: grown(x, paddings)
        )
    if paddings is not None:
        return bind_writer(
            ctx,
            lambda x, v, out: write(x, v, out, *prepare(x.shape, paddings)),
            (0, 2),
            lambda x, v: grown(x, paddings),
        )
    return bind_writer(
        ctx, lambda x, p, v, out: write(x, v, out, *prepare(x.shape, p)), (0, 1, 2), lambda x, p, v: grown(x, p)
    )


def mirror_pad_grad(ctx: BuildContext) -> Bound:
    """Runs Pad's copies backwards, each as an addition, over a working copy of dy."""
    mode, paddings, shape = ctx.attr("mode"), ctx.inputs[1].value, ctx.inputs[0].shape
    work_type = dtypes.float32 if is_half(ctx.outputs[0].dtype) else ctx.outputs[0].dtype

    def prepare(padded: Sequence[int], paddings: Any) -> tuple[Any, list[tuple[Any, Any]]]:
        if paddings.shape != (len(padded), 2):
            raise errors.InvalidArgumentError(
                f"paddings have shape {list(paddings.shape)}",
                expected=f"[{len(padded)},2], as dy has rank {len(padded)}",
            )
        sizes = [max(n - int(a) - int(b), 0) for n, (a, b) in zip(padded, paddings, strict=True)]
        rows = _margins(paddings, sizes, mode)
        inner = (*(slice(a, a + n) for (a, _), n in zip(rows, sizes, strict=True)), Ellipsis)
        return inner, _mirrors(rows, sizes, mode)[::-1]

    def fold(dy: Any, out: Any, work: Any, inner: Any, pairs: Any) -> None:
        np.copyto(work, dy)
        for margin, mirrored in pairs:
            into = work[mirrored]
            np.add(into, work[margin], into)
        np.copyto(out, work[inner], "unsafe")

    if paddings is not None and known(shape) and not ctx.fresh:
        inner, pairs = prepare(shape, paddings)
        return Bound(
            lambda dy, out, work: fold(dy, out, work, inner, pairs),
            args=(In(0), Out(0), Out(1)),
            scratch=(Scratch(work_type, tuple(shape)),),
        )
    return bind_writer(
        ctx,
        lambda dy, p, out: fold(dy, out, np.empty(dy.shape, work_type.np), *prepare(dy.shape, p)),
        (0, 1),
        lambda dy, p: [n - int(a) - int(b) for n, (a, b) in zip(dy.shape, p, strict=True)],
    )


def _fill(dims: Any, value: Any) -> np.ndarray:
    return np.full(tuple(dims.tolist()), value)


def fill(ctx: BuildContext) -> Bound:
    if not ctx.fresh:
        return Bound(np.copyto, args=(Out(0), In(1)))
    return Bound(guarded(_fill, "Fill"))


def broadcast_to(ctx: BuildContext) -> Bound:
    if not ctx.fresh:
        checked = known(ctx.inputs[0].shape)
        return Bound(np.copyto if checked else guarded(np.copyto, "BroadcastTo"), args=(Out(0), In(0)))
    return Bound(guarded(lambda x, s: np.array(np.broadcast_to(x, tuple(s.tolist())), order="C"), "BroadcastTo"))


def size(ctx: BuildContext) -> Bound:
    top = np.iinfo(ctx.outputs[0].dtype.np).max

    def write(x: Any, out: Any) -> None:
        if x.size > top:
            raise errors.InvalidArgumentError(
                f"the {x.size} elements of shape {list(x.shape)} are more than {ctx.outputs[0].dtype} holds",
                hint="use out_type=tf.int64",
            )
        out[...] = x.size

    return bind_writer(ctx, write, (0,), lambda x: ())


def rank(ctx: BuildContext) -> Bound:
    def write(x: Any, out: Any) -> None:
        out[...] = x.ndim

    return bind_writer(ctx, write, (0,), lambda x: ())


def range_(ctx: BuildContext) -> Bound:
    dtype = ctx.outputs[0].dtype
    wide = np.float64 if dtype.is_floating else np.int64

    def count(start: Any, limit: Any, delta: Any) -> tuple[int]:
        a, b, d = start.item(), limit.item(), delta.item()
        if d == 0:
            raise errors.InvalidArgumentError("Range: delta is zero")
        if (b < a) if d > 0 else (b > a):
            raise errors.InvalidArgumentError(f"Range: limit {b} lies behind start {a}, as seen along delta {d}")
        return (math.ceil((b - a) / d) if dtype.is_floating else -((a - b) // d),)

    def write(start: Any, limit: Any, delta: Any, out: Any) -> None:
        np.copyto(out, start.astype(wide) + np.arange(count(start, limit, delta)[0]) * delta.astype(wide), "unsafe")

    return bind_writer(ctx, write, (0, 1, 2), count)


def lin_space(ctx: BuildContext) -> Bound:
    def count(start: Any, stop: Any, num: Any) -> tuple[int]:
        if num < 1:
            raise errors.InvalidArgumentError(f"LinSpace: num is {int(num)}", expected="1 or more")
        return (int(num),)

    def write(start: Any, stop: Any, num: Any, out: Any) -> None:
        np.copyto(out, np.linspace(float(start), float(stop), count(start, stop, num)[0]), "unsafe")

    return bind_writer(ctx, write, (0, 1, 2), count)


def invert_permutation(ctx: BuildContext) -> Bound:
    def write(x: Any, out: Any) -> None:
        n = x.shape[0]
        out.fill(-1)
        if n and x.min() >= 0 and x.max() < n:
            out[x] = np.arange(n, dtype=out.dtype)
        if n and out.min() < 0:
            raise errors.InvalidArgumentError(
                f"x is not a permutation of 0 .. {n - 1}", got=np.array2string(x, threshold=8)
            )

    return bind_writer(ctx, write, (0,), lambda x: x.shape)


def _zero(out: Any) -> None:
    out.fill(b"" if out.dtype == object else 0)


def matrix_diag(ctx: BuildContext) -> Bound:
    def write(diagonal: Any, out: Any) -> None:
        _zero(out)
        n = diagonal.shape[-1]
        if diagonal.size:
            out.reshape(*diagonal.shape[:-1], n * n)[..., :: n + 1] = diagonal

    return bind_writer(ctx, write, (0,), lambda x: (*x.shape, x.shape[-1]))


def matrix_diag_part(ctx: BuildContext) -> Bound:
    def write(x: Any, out: Any) -> None:
        np.copyto(out, x.diagonal(0, -2, -1))

    return bind_writer(ctx, write, (0,), lambda x: (*x.shape[:-2], min(x.shape[-2:])))


def _band(m: int, n: int, lower: int, upper: int) -> np.ndarray:
    offset = np.arange(n) - np.arange(m)[:, None]
    return (offset >= -(m if lower < 0 else lower)) & (offset <= (n if upper < 0 else upper))


def matrix_band_part(ctx: BuildContext) -> Bound:
    shape, lower, upper = ctx.inputs[0].shape, ctx.inputs[1].value, ctx.inputs[2].value

    def keep(x: Any, mask: Any, out: Any) -> None:
        _zero(out)
        np.copyto(out, x, where=mask)

    if lower is not None and upper is not None and shape is not None and known(shape[-2:]):
        mask = _band(*shape[-2:], int(lower), int(upper))
        return bind_writer(ctx, lambda x, out: keep(x, mask, out), (0,), lambda x: x.shape)
    return bind_writer(
        ctx,
        lambda x, lo, up, out: keep(x, _band(*x.shape[-2:], int(lo), int(up)), out),
        (0, 1, 2),
        lambda x, lo, up: x.shape,
    )


def where(ctx: BuildContext) -> Bound:
    return Bound(lambda x: np.ascontiguousarray(np.argwhere(x)))


def _kernel(op: str, build: Any, **more: Any) -> KernelDef:
    return KernelDef(op, "cpu", within_rank(build), layout="strided", **more)


KERNELS = [
    _kernel("Concat", concat),
    _kernel("Pack", pack),
    _kernel("Tile", tile),
    _kernel("Pad", pad),
    _kernel("MirrorPadGrad", mirror_pad_grad),
    _kernel("Fill", fill),
    _kernel("BroadcastTo", broadcast_to),
    _kernel("Size", size),
    _kernel("Rank", rank),
    _kernel("Range", range_),
    _kernel("LinSpace", lin_space),
    _kernel("InvertPermutation", invert_permutation),
    _kernel("MatrixDiag", matrix_diag),
    _kernel("MatrixDiagPart", matrix_diag_part),
    _kernel("MatrixBandPart", matrix_band_part),
    _kernel("Where", where, modes=("fresh",)),
]
