"""Ops whose result holds elements of an input as they lie there, or at regular distances: reshapes, slices, splits, transposes.

What is contiguous is a view, which costs a step nothing; all else is copied. Where that is known only in the step, a slice
is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from graphdock.contracts import BindContext, KernelDef, PrepareContext, Prepared, ViewRule, errors
from graphdock.contracts import shape as shapes

from graphdock_cuda.kernel import DEVICE, PLAIN, kernel_from_trace
from graphdock_cuda.memory import Array
from graphdock_cuda.moving import as_bits, move, strides_of
from graphdock_cuda.work import Work

__all__ = ["KERNELS", "Part", "guarded", "strided_index", "virtual"]

KERNELS: list[KernelDef] = []
ALL = slice(None)


class Part(NamedTuple):
    """A part of an array: where its first element lies, counted in elements, its shape, and its strides in elements."""

    start: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    contiguous: bool


def virtual(shape: Sequence[int]) -> np.ndarray:
    """An array of bytes that has a shape and strides, and no memory: for finding what NumPy's indexing makes of them."""
    return np.lib.stride_tricks.as_strided(np.zeros((), np.uint8), tuple(shape), strides_of(shape))


def part_of(whole: np.ndarray, view: np.ndarray) -> Part:
    """Return which part of a virtual array a view of it is."""
    start = view.__array_interface__["data"][0] - whole.__array_interface__["data"][0] if view.size else 0
    return Part(start, view.shape, view.strides, view.flags.c_contiguous)


#: ``views(x, attrs, *host values)`` of a virtual array: one view per output.
Views = Callable[..., Sequence[np.ndarray]]


def guarded(what: str, views: Views, *args: Any) -> Sequence[np.ndarray]:
    """Return what ``views`` finds, with NumPy's complaints as InvalidArgumentError."""
    try:
        return views(*args)
    except (ValueError, IndexError, OverflowError) as error:
        if isinstance(error, errors.InvalidArgumentError):
            raise
        raise errors.InvalidArgumentError(f"{what}: {error}", got=f"an array of shape {list(args[0].shape)}") from error


def _kernel(op: str, source: str, out: str = "y", always: bool = False) -> Callable[[Views], Views]:
    """The kernel of an op whose outputs are parts of the input ``source``; ``always``: in one piece, whatever the shape."""

    def add(views: Views) -> Views:
        KERNELS.append(_made(op, source, out, always, views))
        return views

    return add


def _made(op: str, source: str, out: str, always: bool, views: Views) -> KernelDef:
    def parts(attrs: Any, shape: Sequence[int], values: Sequence[Any]) -> list[Part]:
        whole = virtual(shape)
        return [part_of(whole, v) for v in guarded(f"{op} can't be done", views, whole, attrs, *values)]

    def trace(w: Work) -> None:
        x = w.input(source)
        hosts = [w.host(i) for i, other in enumerate(w.inputs) if other is not x]
        for i, part in enumerate(parts(w.node.attrs, x.shape, hosts)):
            y = as_bits(w.output(part.shape, i))
            move(w, y, as_bits(x).at(part.start), part.shape, strides_of(part.shape), part.strides)

    copying = kernel_from_trace(op, trace)

    def prepare(ctx: PrepareContext) -> Prepared:
        assert copying.prepare is not None
        names = [x.name for x in ctx.inputs]
        at = names.index(source)
        shape, values = ctx.inputs[at].shape, [x.value for i, x in enumerate(ctx.inputs) if i != at]
        known = shape is not None and None not in shape and all(v is not None for v in values)
        found = parts(ctx.node.attrs, shape, values) if known else None  # type: ignore[arg-type]
        if not always and (found is None or not all(p.contiguous for p in found)):
            return replace(copying.prepare(ctx), modes=("planned",))
        base = copying.prepare(ctx)

        def bind(bound: BindContext) -> Callable[..., Any]:
            if not bound.outputs or any(o.mode.kind != "view" for o in bound.outputs):
                return base.bind(bound)
            kinds = [o.dtype for o in bound.outputs]

            def view(*args: Any) -> Any:
                x = args[at]
                here = found
                if here is None:
                    here = parts(bound.node.attrs, x.shape, [np.asarray(a) for i, a in enumerate(args) if i != at])
                made = [
                    Array(x.block, x.address + part.start * kind.size, kind, part.shape)
                    for part, kind in zip(here, kinds, strict=True)
                ]
                return made[0] if len(made) == 1 else tuple(made)

            return view

        return replace(base, bind=bind)

    rule = ViewRule(source, needs_contiguous=True, contiguous=True)
    types = {"T": PLAIN}
    return KernelDef(op, DEVICE, prepare=prepare, types=types, views={out: rule}, modes=("planned", "fresh", "view"))


@_kernel("Reshape", "x", always=True)
def _reshape(x: np.ndarray, attrs: Any, shape: np.ndarray) -> list[np.ndarray]:
    sizes = shape.tolist()
    if sizes and min(sizes) < -1:
        raise errors.InvalidArgumentError(f"shape {sizes} holds the negative size {min(sizes)}")
    if x.size == 0 and sizes.count(-1) == 1:  # which NumPy refuses beside 0
        at = sizes.index(-1)
        sizes[at] = shapes.left_over(x.shape, sizes[:at] + sizes[at + 1 :])
    return [x.reshape(sizes)]


@_kernel("ExpandDims", "x", always=True)
def _expand_dims(x: np.ndarray, attrs: Any, axis: np.ndarray) -> list[np.ndarray]:
    return [np.expand_dims(x, int(axis))]


@_kernel("Squeeze", "x", always=True)
def _squeeze(x: np.ndarray, attrs: Any) -> list[np.ndarray]:
    return [x.squeeze(tuple(attrs["axis"]) or None)]


@_kernel("EnsureShape", "input", "output", always=True)
def _ensure_shape(x: np.ndarray, attrs: Any) -> list[np.ndarray]:
    asked = attrs["shape"]
    wanted = getattr(asked, "dims", asked)
    if wanted is not None and (
        len(wanted) != x.ndim or any(w not in (None, d) for w, d in zip(wanted, x.shape, strict=True))
    ):
        show = "[" + ",".join("?" if w is None else str(w) for w in wanted) + "]"
        have = "[" + ",".join(map(str, x.shape)) + "]"
        raise errors.InvalidArgumentError(f"input {have} does not have the shape {show}")
    return [x]


@_kernel("Transpose", "x")
def _transpose(x: np.ndarray, attrs: Any, perm: np.ndarray) -> list[np.ndarray]:
    axes = perm.tolist()
    if sorted(axes) != list(range(x.ndim)):
        raise errors.InvalidArgumentError(f"perm {axes} is not a permutation of the {x.ndim} axes of x")
    return [x.transpose(axes)]


@_kernel("Slice", "x")
def _slice(x: np.ndarray, attrs: Any, begin: np.ndarray, size: np.ndarray) -> list[np.ndarray]:
    if not x.ndim == begin.size == size.size:
        raise errors.InvalidArgumentError(
            f"begin has {begin.size} and size {size.size} elements", expected=f"{x.ndim} each, the rank of x"
        )
    index: list[Any] = []
    for axis, (n, b, s) in enumerate(zip(x.shape, begin.tolist(), size.tolist(), strict=True)):
        end = n if s == -1 else b + s
        if not 0 <= b <= end <= n:
            raise errors.InvalidArgumentError(f"axis {axis}: a slice from {b} of size {s} is not inside of size {n}")
        index.append(slice(b, end))
    return [x[(*index, ...)]]


def strided_index(attrs: Any, begin: np.ndarray, end: np.ndarray, strides: np.ndarray) -> tuple[Any, ...]:
    """The NumPy index that the masks of a StridedSlice describe."""
    items: list[Any] = []
    for i, (b, e, s) in enumerate(zip(begin.tolist(), end.tolist(), strides.tolist(), strict=True)):
        bit = 1 << i
        if attrs["ellipsis_mask"] & bit:
            items.append(Ellipsis)
        elif attrs["new_axis_mask"] & bit:
            items.append(None)
        elif attrs["shrink_axis_mask"] & bit:
            items.append(b)
        elif s == 0:
            raise errors.InvalidArgumentError(f"strides[{i}] is zero")
        else:
            items.append(slice(None if attrs["begin_mask"] & bit else b, None if attrs["end_mask"] & bit else e, s))
    return tuple(items) if attrs["ellipsis_mask"] else (*items, Ellipsis)


@_kernel("StridedSlice", "x")
def _strided_slice(
    x: np.ndarray, attrs: Any, begin: np.ndarray, end: np.ndarray, strides: np.ndarray
) -> list[np.ndarray]:
    return [x[strided_index(attrs, begin, end, strides)]]


@_kernel("ReverseV2", "x")
def _reverse(x: np.ndarray, attrs: Any, axes: np.ndarray) -> list[np.ndarray]:
    index: list[Any] = [ALL] * x.ndim
    for axis in axes.tolist():
        at = _axis(axis, x.ndim)
        if index[at] is not ALL:
            raise errors.InvalidArgumentError(f"axis {axis} is given twice")
        index[at] = slice(None, None, -1)
    return [x[(*index, Ellipsis)]]


def _axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise errors.InvalidArgumentError(f"axis {axis} is out of bounds for rank {rank}")
    return axis % rank


def _cut(x: np.ndarray, sizes: Sequence[int], axis: int) -> list[np.ndarray]:
    lead, cuts, start = (ALL,) * axis, [], 0
    for size in sizes:
        cuts.append(x[(*lead, slice(start, start + size))])
        start += size
    return cuts


@_kernel("Split", "value")
def _split(x: np.ndarray, attrs: Any, axis: np.ndarray) -> list[np.ndarray]:
    at, count = _axis(int(axis), x.ndim), attrs["num_split"]
    if x.shape[at] % count:
        raise errors.InvalidArgumentError(
            f"axis {int(axis)} of size {x.shape[at]} can't be split into {count} equal parts"
        )
    return _cut(x, [x.shape[at] // count] * count, at)


@_kernel("SplitV", "value")
def _split_v(x: np.ndarray, attrs: Any, size_splits: np.ndarray, axis: np.ndarray) -> list[np.ndarray]:
    at, sizes, count = _axis(int(axis), x.ndim), size_splits.tolist(), attrs["num_split"]
    if sizes.count(-1) == 1:
        sizes = [x.shape[at] - sum(sizes) - 1 if s == -1 else s for s in sizes]
    if len(sizes) != count or min(sizes) < 0 or sum(sizes) != x.shape[at]:
        raise errors.InvalidArgumentError(
            f"size_splits {sizes} do not cut axis {int(axis)} of size {x.shape[at]} into {count} parts"
        )
    return _cut(x, sizes, at)


@_kernel("Unpack", "value")
def _unpack(x: np.ndarray, attrs: Any) -> list[np.ndarray]:
    at, count = _axis(attrs["axis"], x.ndim), attrs["num"]
    if x.shape[at] != count:
        raise errors.InvalidArgumentError(f"axis {attrs['axis']} has size {x.shape[at]}, but num is {count}")
    before: tuple[Any, ...] = (ALL,) * at
    return [x[(*before, i, ...)] for i in range(count)]
