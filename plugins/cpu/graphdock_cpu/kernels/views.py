"""Kernels whose result is a view of an input: reshape, transpose, slices, splits.

Each is a function ``view(x, *host arrays)`` that copies nothing. :func:`bind_view` and :func:`bind_parts` make of it
what the granted mode asks for: the view itself, a copy into the planned buffer, or a copy of its own. Host inputs that are
constant are dropped from the call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from graphdock.contracts import Bound, BuildContext, In, KernelDef, Out, ViewRule, errors
from graphdock.contracts import shape as shapes

from graphdock_cpu.kernels.common import known

__all__ = ["KERNELS", "bind_view", "guarded", "strided_index", "within_rank"]

ALL = slice(None)
#: Axes that a NumPy array can have.
MAX_RANK = 64 if int(np.__version__.partition(".")[0]) >= 2 else 32


def guarded(function: Callable[..., Any], what: str) -> Callable[..., Any]:
    """``function`` with NumPy's complaints as InvalidArgumentError; for shapes known only at run time."""

    def call(*args: Any) -> Any:
        try:
            return function(*args)
        except (ValueError, IndexError, OverflowError) as error:
            if isinstance(error, errors.InvalidArgumentError):
                raise
            shapes = ", ".join(str(list(a.shape)) for a in args if isinstance(a, np.ndarray))
            raise errors.InvalidArgumentError(f"{what}: {error}", got=f"arrays of shapes {shapes}") from error

    return call


def within_rank(build: Callable[[BuildContext], Bound]) -> Callable[[BuildContext], Bound]:
    """``build``, which refuses results of more axes than a NumPy array can have."""

    def checked(ctx: BuildContext) -> Bound:
        for out in ctx.outputs:
            if out.shape is not None and len(out.shape) > MAX_RANK:
                raise errors.UnimplementedError(
                    f"the result has rank {len(out.shape)}, but an array on the cpu has at most {MAX_RANK} axes"
                )
        return build(ctx)

    return checked


def bind_view(ctx: BuildContext, source: int, view: Callable[..., Any], hosts: Sequence[int] = ()) -> Bound:
    """The Bound of a view op with one output: ``view(input source, *inputs hosts)``."""
    reads = (In(source), *(In(i) for i in hosts))
    mode = ctx.outputs[0].mode.kind
    if mode == "view":
        return Bound(view, args=reads)
    if mode == "fresh":
        return Bound(lambda *args: np.array(view(*args), order="C"), args=reads)
    copy = np.copyto
    if not hosts:

        def compute(x: Any, out: Any) -> None:
            copy(out, view(x))

    else:

        def compute(*args: Any) -> None:
            copy(args[-1], view(*args[:-1]))

    return Bound(compute, args=(*reads, Out(0)))


def bind_parts(ctx: BuildContext, source: int, parts: Callable[..., Sequence[Any]], hosts: Sequence[int] = ()) -> Bound:
    """The Bound of a view op with a list output: ``parts`` returns one view per output.

    compute returns the parts whose mode is not planned, in order: several as a tuple, one alone.
    """
    reads = (In(source), *(In(i) for i in hosts))
    count, kinds = len(reads), [o.mode.kind for o in ctx.outputs]
    if len(kinds) > 1 and all(k == "view" for k in kinds):
        return Bound(parts, args=reads)
    written = [i for i, k in enumerate(kinds) if k not in ("view", "fresh")]
    returned = [(i, k == "view") for i, k in enumerate(kinds) if k in ("view", "fresh")]

    def compute(*args: Any) -> Any:
        found = parts(*args[:count])
        for slot, i in enumerate(written):
            if ctx.outputs[i].used:
                np.copyto(args[count + slot], found[i])
        made = tuple([found[i] if as_view else np.array(found[i], order="C") for i, as_view in returned])
        return made if len(made) > 1 else made[0] if made else None

    return Bound(compute, args=(*reads, *(Out(slot) for slot in range(len(written)))))


def reshape(ctx: BuildContext) -> Bound:
    target = ctx.outputs[0].shape
    if not known(target):
        value = ctx.input("shape").value
        target = None if value is None else tuple(value.tolist())
        if target is not None and 0 in target and -1 in target:
            return bind_view(ctx, 0, guarded(lambda x: x.reshape(_target(x, value)), "cannot reshape"))
    if target is None:
        return bind_view(ctx, 0, guarded(lambda x, shape: x.reshape(_target(x, shape)), "cannot reshape"), (1,))
    checked = known(ctx.inputs[0].shape)
    if ctx.outputs[0].mode.kind in ("view", "fresh"):

        def view(x: Any) -> Any:
            return x.reshape(target)

        return bind_view(ctx, 0, view if checked else guarded(view, "cannot reshape"))

    def compute(x: Any, out: Any) -> None:
        np.copyto(out.reshape(x.shape), x)  # out is contiguous, so that this is a view even where x is strided

    return Bound(compute if checked else guarded(compute, "cannot reshape"), args=(In(0), Out(0)))


def _target(x: Any, shape: Any) -> list[int]:
    """The shape to reshape ``x`` to; of no elements, NumPy takes any negative size for -1, and refuses -1 beside 0."""
    sizes: list[int] = shape.tolist()
    if sizes and min(sizes) < -1:
        raise errors.InvalidArgumentError(f"shape {sizes} holds the negative size {min(sizes)}")
    if x.size == 0 and sizes.count(-1) == 1:
        at = sizes.index(-1)
        sizes[at] = shapes.left_over(x.shape, sizes[:at] + sizes[at + 1 :])
    return sizes


def transpose(ctx: BuildContext) -> Bound:
    perm = ctx.input("perm").value
    if perm is None:
        return bind_view(
            ctx, 0, guarded(lambda x, p: x.transpose(_permutation(p.tolist(), x.ndim)), "cannot transpose"), (1,)
        )
    axes = tuple(perm.tolist())

    def view(x: Any) -> Any:
        return x.transpose(axes)

    if ctx.inputs[0].shape is None:
        return bind_view(ctx, 0, lambda x: x.transpose(_permutation(axes, x.ndim)))
    return bind_view(ctx, 0, view)


def _permutation(perm: Sequence[int], rank: int) -> Sequence[int]:
    if sorted(perm) != list(range(rank)):
        raise errors.InvalidArgumentError(f"perm {list(perm)} is not a permutation of the {rank} axes of x")
    return perm


def _new_axis(axis: int) -> tuple[Any, ...]:
    """The index that puts a new axis there, whatever the rank."""
    return (*(ALL,) * axis, None, Ellipsis) if axis >= 0 else (Ellipsis, None, *(ALL,) * (-axis - 1))


def expand_dims(ctx: BuildContext) -> Bound:
    axis = ctx.input("axis").value
    if axis is None:
        return bind_view(ctx, 0, guarded(lambda x, a: x[_new_axis(int(a))], "cannot put in an axis"), (1,))
    index = _new_axis(int(axis))

    def view(x: Any) -> Any:
        return x[index]

    return bind_view(ctx, 0, guarded(view, "cannot put in an axis") if ctx.inputs[0].shape is None else view)


def squeeze(ctx: BuildContext) -> Bound:
    axes = tuple(ctx.attr("axis")) or None
    shape = ctx.inputs[0].shape

    def view(x: Any) -> Any:
        return x.squeeze(axes)

    return bind_view(ctx, 0, view if known(shape) else guarded(view, "cannot squeeze"))


def _box(shape: Sequence[int], begin: Sequence[int], size: Sequence[int]) -> tuple[slice, ...]:
    """The index of a box. Raises InvalidArgumentError where it leaves the shape."""
    if not len(shape) == len(begin) == len(size):
        raise errors.InvalidArgumentError(
            f"begin has {len(begin)} and size {len(size)} elements", expected=f"{len(shape)} each, the rank of x"
        )
    index = []
    for axis, (n, b, s) in enumerate(zip(shape, begin, size, strict=True)):
        end = n if s == -1 else b + s
        if not (0 <= b <= end <= n):
            raise errors.InvalidArgumentError(f"axis {axis}: a slice from {b} of size {s} is not inside of size {n}")
        index.append(slice(b, end))
    return (*index, Ellipsis)


def slice_(ctx: BuildContext) -> Bound:
    begin, size, shape = ctx.input("begin").value, ctx.input("size").value, ctx.inputs[0].shape
    if begin is not None and size is not None and known(shape):
        index = _box(shape, begin.tolist(), size.tolist())
        return bind_view(ctx, 0, lambda x: x[index])
    return bind_view(ctx, 0, lambda x, b, s: x[_box(x.shape, b.tolist(), s.tolist())], (1, 2))


def strided_index(node: Any) -> Callable[[Any, Any, Any], tuple[Any, ...]]:
    """A function of begin, end and strides that yields the NumPy index which a StridedSlice node's masks describe."""
    a = node.attrs
    begin_mask, end_mask, ellipsis = a["begin_mask"], a["end_mask"], a["ellipsis_mask"]
    new_axis, shrink = a["new_axis_mask"], a["shrink_axis_mask"]

    def index(begin: Any, end: Any, strides: Any) -> tuple[Any, ...]:
        items: list[Any] = []
        for i, (b, e, s) in enumerate(zip(begin.tolist(), end.tolist(), strides.tolist(), strict=True)):
            bit = 1 << i
            if ellipsis & bit:
                items.append(Ellipsis)
            elif new_axis & bit:
                items.append(None)
            elif shrink & bit:
                items.append(b)
            elif s == 0:
                raise errors.InvalidArgumentError(f"strides[{i}] is zero")
            else:
                items.append(slice(None if begin_mask & bit else b, None if end_mask & bit else e, s))
        if not ellipsis:
            items.append(Ellipsis)  # keeps a rank-0 result an array
        return tuple(items)

    return index


def strided_slice(ctx: BuildContext) -> Bound:
    make = strided_index(ctx.node)
    bounds = [ctx.inputs[i].value for i in (1, 2, 3)]
    if all(b is not None for b in bounds):
        index = make(*bounds)

        def view(x: Any) -> Any:
            return x[index]

        return bind_view(ctx, 0, view if known(ctx.inputs[0].shape) else guarded(view, "cannot slice"))
    return bind_view(ctx, 0, guarded(lambda x, b, e, s: x[make(b, e, s)], "cannot slice"), (1, 2, 3))


def reverse(ctx: BuildContext) -> Bound:
    axes, shape = ctx.input("axis").value, ctx.inputs[0].shape
    if axes is not None and shape is not None:
        index = _reversed(axes.tolist(), len(shape))
        return bind_view(ctx, 0, lambda x: x[index])
    return bind_view(ctx, 0, lambda x, a: x[_reversed(a.tolist(), x.ndim)], (1,))


def _reversed(axes: Sequence[int], rank: int) -> tuple[Any, ...]:
    index: list[Any] = [ALL] * rank
    for axis in axes:
        if not -rank <= axis < rank:
            raise errors.InvalidArgumentError(f"axis {axis} is out of bounds for rank {rank}")
        if index[axis] is not ALL:
            raise errors.InvalidArgumentError(f"axis {axis} is given twice")
        index[axis] = slice(None, None, -1)
    return (*index, Ellipsis)


def _cuts(sizes: Sequence[int], axis: int, rank: int) -> list[tuple[Any, ...]]:
    lead = (ALL,) * (axis % rank)
    cuts, start = [], 0
    for size in sizes:
        cuts.append((*lead, slice(start, start + size)))
        start += size
    return cuts


def _axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise errors.InvalidArgumentError(f"axis {axis} is out of bounds for rank {rank}")
    return axis % rank


def split(ctx: BuildContext) -> Bound:
    axis, shape, count = ctx.input("axis").value, ctx.input("value").shape, ctx.attr("num_split")

    def cuts(shape: Sequence[int], axis: int) -> list[tuple[Any, ...]]:
        at = _axis(axis, len(shape))
        if shape[at] % count:
            raise errors.InvalidArgumentError(
                f"axis {axis} of size {shape[at]} can't be split into {count} equal parts"
            )
        return _cuts([shape[at] // count] * count, at, len(shape))

    if axis is not None and known(shape):
        indices = tuple(cuts(shape, int(axis)))
        return bind_parts(ctx, 1, lambda x: [x[i] for i in indices])
    return bind_parts(ctx, 1, lambda x, a: [x[i] for i in cuts(x.shape, int(a))], (0,))


def split_v(ctx: BuildContext) -> Bound:
    shape, sizes, axis = ctx.inputs[0].shape, ctx.inputs[1].value, ctx.inputs[2].value
    count = ctx.attr("num_split")

    def cuts(shape: Sequence[int], sizes: list[int], axis: int) -> list[tuple[Any, ...]]:
        at = _axis(axis, len(shape))
        if sizes.count(-1) == 1:
            sizes = [shape[at] - sum(sizes) - 1 if s == -1 else s for s in sizes]
        if len(sizes) != count or min(sizes) < 0 or sum(sizes) != shape[at]:
            raise errors.InvalidArgumentError(
                f"size_splits {sizes} do not cut axis {axis} of size {shape[at]} into {count} parts"
            )
        return _cuts(sizes, at, len(shape))

    if sizes is not None and axis is not None and known(shape):
        indices = tuple(cuts(shape, sizes.tolist(), int(axis)))
        return bind_parts(ctx, 0, lambda x: [x[i] for i in indices])
    return bind_parts(ctx, 0, lambda x, s, a: [x[i] for i in cuts(x.shape, s.tolist(), int(a))], (1, 2))


def unpack(ctx: BuildContext) -> Bound:
    axis, count, shape = ctx.attr("axis"), ctx.attr("num"), ctx.inputs[0].shape

    def cuts(rank: int) -> list[tuple[Any, ...]]:
        lead = (ALL,) * _axis(axis, rank)
        return [(*lead, i, Ellipsis) for i in range(count)]

    if known(shape):
        indices = tuple(cuts(len(shape)))
        return bind_parts(ctx, 0, lambda x: [x[i] for i in indices])

    def parts(x: Any) -> list[Any]:
        at = cuts(x.ndim)
        if x.shape[axis] != count:
            raise errors.InvalidArgumentError(f"axis {axis} has size {x.shape[axis]}, but num is {count}")
        return [x[i] for i in at]

    return bind_parts(ctx, 0, parts)


def _kernel(op: str, build: Any, source: str = "x", **rule: bool) -> KernelDef:
    views = {"y": ViewRule(source, **rule)}
    return KernelDef(op, "cpu", within_rank(build), layout="strided", views=views, modes=("planned", "fresh", "view"))


KERNELS = [
    _kernel("Reshape", reshape, needs_contiguous=True, contiguous=True),
    _kernel("Transpose", transpose),
    _kernel("ExpandDims", expand_dims, contiguous=True),
    _kernel("Squeeze", squeeze, contiguous=True),
    _kernel("Slice", slice_),
    _kernel("StridedSlice", strided_slice),
    _kernel("ReverseV2", reverse),
    _kernel("Split", split, "value"),
    _kernel("SplitV", split_v, "value"),
    _kernel("Unpack", unpack, "value"),
]
