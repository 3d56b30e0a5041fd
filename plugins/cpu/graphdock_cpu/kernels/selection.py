"""Kernels that choose or count elements: distinct ones, the largest of each row, bins, places in sorted rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from graphdock.contracts import Bound, BuildContext, KernelDef, errors

from graphdock_cpu.kernels.array import bind_writer

__all__ = ["KERNELS"]


#: Rows from this many elements on are not sorted whole for a few of them.
WIDE_ROW = 256
#: Distinct integers are found by a table where they lie so near each other, or within 16 times their number.
FEW_VALUES = 1 << 20


def _largest(rows: Any, k: int) -> Any:
    """Places of the k largest elements of each row, by sorting those that are not below the k-th."""
    found = np.empty((len(rows), k), np.int64)
    if not k:
        return found
    limits = np.partition(rows, rows.shape[1] - k, -1)[:, -k]
    for row, limit, places in zip(rows, limits, found, strict=True):
        able = np.flatnonzero(~(row < limit))  # NaN is not below anything
        order = np.argsort(row[able][::-1], kind="stable")[::-1][:k]
        places[:] = able[len(able) - 1 - order]
    return found


def _distinct(x: Any) -> tuple[Any, Any, Any]:
    """First places of the distinct elements in the order of occurrence, the place of each element, the counts."""
    if x.dtype.kind in "iu" and x.size and int(x.max()) - int(x.min()) < max(FEW_VALUES, 16 * x.size):
        return _distinct_integers(x)
    _, first, inverse, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    order = np.argsort(first, kind="stable")
    rank = np.empty(order.size, np.int64)
    rank[order] = np.arange(order.size)
    return first[order], rank[inverse.reshape(x.shape)], counts[order]


def _distinct_integers(x: Any) -> tuple[Any, Any, Any]:
    """The same by a table of the values between the least and the largest, of which only those that occur are touched."""
    flat = x.reshape(-1)
    least = flat.min()
    values = (flat - least if flat.itemsize == 8 else flat.astype(np.int64) - int(least)).astype(np.int64, copy=False)
    places = np.arange(flat.size)
    table = np.empty(int(values.max()) + 1, np.int64)
    table[values[::-1]] = places[::-1]  # of several, the last that is written stays: the first place
    first_of_each = table.take(values)
    first = np.flatnonzero(first_of_each == places)
    rank = np.empty(flat.size, np.int64)
    rank[first] = np.arange(first.size)
    found = rank.take(first_of_each)
    return first, found.reshape(x.shape), np.bincount(found)


def _unique(counted: bool) -> Callable[[BuildContext], Bound]:
    def build(ctx: BuildContext) -> Bound:
        dtype = ctx.outputs[1].dtype.np

        def compute(x: Any) -> tuple[Any, ...]:
            first, places, counts = _distinct(x)
            found = x[first], places.astype(dtype, copy=False)
            return (*found, counts.astype(dtype, copy=False)) if counted else found

        return Bound(compute)

    return build


def _list_diff(ctx: BuildContext) -> Bound:
    dtype = ctx.outputs[1].dtype.np

    def compute(x: Any, y: Any) -> tuple[Any, Any]:
        if x.dtype == object:
            gone = set(y.tolist())
            kept = np.array([v not in gone for v in x.tolist()], bool)
        else:
            kept = ~np.isin(x, y)
        places = np.flatnonzero(kept)
        return x[places], places.astype(dtype, copy=False)

    return Bound(compute)


def _top_k(ctx: BuildContext) -> Bound:
    def choose(x: Any, k: int) -> Any:
        if not x.ndim:
            raise errors.InvalidArgumentError("input is a scalar and has no rows")
        if not 0 <= k <= x.shape[-1]:
            raise errors.InvalidArgumentError(f"k is {k}, but a row of input has {x.shape[-1]} elements")
        if k == 1 and x.shape[-1]:
            return x.argmax(-1)[..., None]
        width = x.shape[-1]
        if width >= WIDE_ROW and 8 * k <= width:
            return _largest(x.reshape(-1, width), k).reshape(*x.shape[:-1], k)
        # sorted backwards and read backwards, so that of equal elements the first comes first
        order = np.argsort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1]
        return (width - 1 - order[..., :k]).astype(np.int64, copy=False)

    def fresh(x: Any, k: Any) -> tuple[Any, Any]:
        at = choose(x, int(k))
        return np.take_along_axis(x, at, -1), at.astype(ctx.outputs[1].dtype.np)

    def planned(x: Any, k: Any, values: Any, indices: Any) -> None:
        at = choose(x, int(k))
        np.copyto(values, np.take_along_axis(x, at, -1))
        np.copyto(indices, at, "unsafe")

    return Bound(fresh if ctx.fresh else planned)


def _in_top_k(ctx: BuildContext) -> Bound:
    def write(predictions: Any, targets: Any, k: Any, out: Any) -> None:
        classes = predictions.shape[1]
        sure = (targets >= 0) & (targets < classes) & np.isfinite(predictions).all(1)
        if not classes:
            out.fill(False)
            return
        at = np.where(sure, targets, 0)[:, None]
        larger = (predictions > np.take_along_axis(predictions, at, 1)).sum(1)
        np.logical_and(sure, larger < int(k), out)

    return bind_writer(ctx, write, (0, 1, 2), lambda p, t, k: t.shape)


def _nth_element(ctx: BuildContext) -> Bound:
    reverse = ctx.attr("reverse")

    def write(x: Any, n: Any, out: Any) -> None:
        at = int(n)
        if not x.ndim or not 0 <= at < x.shape[-1]:
            raise errors.InvalidArgumentError(
                f"n is {at} for input of shape {list(x.shape)}", expected="a place in its rows"
            )
        at = x.shape[-1] - 1 - at if reverse else at
        np.copyto(out, np.partition(x, at, -1)[..., at])

    return bind_writer(ctx, write, (0, 1), lambda x, n: x.shape[:-1])


def _bound(side: Any) -> Callable[[BuildContext], Bound]:
    def build(ctx: BuildContext) -> Bound:
        def write(rows: Any, values: Any, out: Any) -> None:
            if rows.shape[0] != values.shape[0]:
                raise errors.InvalidArgumentError(f"{values.shape[0]} rows of values for {rows.shape[0]} sorted rows")
            for row, wanted, found in zip(rows, values, out, strict=True):
                found[...] = row.searchsorted(wanted, side)

        return bind_writer(ctx, write, (0, 1), lambda r, v: v.shape)

    return build


def _histogram(ctx: BuildContext) -> Bound:
    def write(values: Any, ends: Any, nbins: Any, out: Any) -> None:
        low, high = ends.tolist()
        count = int(nbins)
        if not low < high or math.inf in (-low, high):
            expected = "finite numbers, the first below the second"
            raise errors.InvalidArgumentError(f"value_range is {[low, high]}", expected=expected)
        if count < 1:
            raise errors.InvalidArgumentError(f"nbins is {count}", expected="1 or more")
        wide = values.astype(np.float64 if values.dtype.kind == "i" else values.dtype, copy=False).reshape(-1)
        if wide.dtype.kind == "f":
            wide = wide[~np.isnan(wide)]
        places = np.floor((np.clip(wide, low, high) - low) / (high - low) * count)
        np.copyto(out, np.bincount(np.clip(places, 0, count - 1).astype(np.int64), minlength=count), "unsafe")

    return bind_writer(ctx, write, (0, 1, 2), lambda v, e, n: (max(int(n), 0),))


def _bincount(ctx: BuildContext) -> Bound:
    def write(arr: Any, size: Any, weights: Any, out: Any) -> None:
        count, flat = int(size), arr.reshape(-1)
        if count < 0:
            raise errors.InvalidArgumentError(f"size is {count}", expected="0 or more")
        if weights.size and weights.shape != arr.shape:
            raise errors.InvalidArgumentError(
                f"weights has shape {list(weights.shape)}", expected=f"that of arr, {list(arr.shape)}, or an empty one"
            )
        if flat.size and flat.min() < 0:
            at = int(np.argmax(flat < 0))
            raise errors.InvalidArgumentError(f"arr holds {int(flat[at])}, at {at}", expected="0 or more")
        kept = flat < count
        out.fill(0)
        np.add.at(out, flat[kept], weights.reshape(-1)[kept] if weights.size else out.dtype.type(1))

    return bind_writer(ctx, write, (0, 1, 2), lambda a, s, w: (max(int(s), 0),))


KERNELS = [
    KernelDef("Unique", "cpu", _unique(False), modes=("fresh",)),
    KernelDef("UniqueWithCounts", "cpu", _unique(True), modes=("fresh",)),
    KernelDef("ListDiff", "cpu", _list_diff, modes=("fresh",)),
    KernelDef("TopKV2", "cpu", _top_k),
    KernelDef("InTopKV2", "cpu", _in_top_k),
    KernelDef("NthElement", "cpu", _nth_element),
    KernelDef("LowerBound", "cpu", _bound("left")),
    KernelDef("UpperBound", "cpu", _bound("right")),
    KernelDef("HistogramFixedWidth", "cpu", _histogram),
    KernelDef("Bincount", "cpu", _bincount),
]
