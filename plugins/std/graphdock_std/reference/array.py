"""Meaning of the array ops, element by element: oracles for conformance, slow on purpose.

Each takes the op's inputs as NumPy arrays and its attributes as keywords, and returns an array, or a list of arrays for
a list output. They move elements one at a time by index arithmetic and use none of NumPy's functions that rearrange
arrays.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np


def _indices(shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    return itertools.product(*(range(n) for n in shape))


def _by_index(shape: Sequence[int], dtype: Any, element: Callable[[tuple[int, ...]], Any]) -> np.ndarray:
    """The array whose element at ``index`` is ``element(index)``."""
    out = np.empty(tuple(shape), dtype)
    for index in _indices(shape):
        out[index] = element(index)
    return out


def _count(shape: Sequence[int]) -> int:
    n = 1
    for d in shape:
        n *= d
    return n


def _wide(dtype: Any) -> Any:
    """Return what sums are taken in: float64 for floating dtypes, complex128 for complex ones, Python integers otherwise."""
    if np.dtype(dtype).kind == "c":
        return complex
    return float if np.dtype(dtype).kind in "fV" or np.dtype(dtype).name == "bfloat16" else int


def reshape(x: np.ndarray, shape: np.ndarray, **_: Any) -> np.ndarray:
    dims = [int(d) for d in shape]
    if -1 in dims:
        others = [d for d in dims if d != -1]
        sizes = [d for d in x.shape if d or 0 not in others]
        dims[dims.index(-1)] = _count(sizes) // _count([d for d in others if d])
    elements = iter([x[i] for i in _indices(x.shape)])
    return _by_index(dims, x.dtype, lambda _index: next(elements))


def transpose(x: np.ndarray, perm: np.ndarray, **_: Any) -> np.ndarray:
    order = [int(p) for p in perm]

    def element(index: tuple[int, ...]) -> Any:
        source = [0] * x.ndim
        for k, axis in enumerate(order):
            source[axis] = index[k]
        return x[tuple(source)]

    return _by_index([x.shape[p] for p in order], x.dtype, element)


def expand_dims(x: np.ndarray, axis: np.ndarray, **_: Any) -> np.ndarray:
    at = int(axis) % (x.ndim + 1)
    return _by_index([*x.shape[:at], 1, *x.shape[at:]], x.dtype, lambda i: x[i[:at] + i[at + 1 :]])


def squeeze(x: np.ndarray, axis: Sequence[int] = (), **_: Any) -> np.ndarray:
    gone = {a % x.ndim for a in axis} or {i for i, n in enumerate(x.shape) if n == 1}
    kept = [i for i in range(x.ndim) if i not in gone]

    def element(index: tuple[int, ...]) -> Any:
        source = [0] * x.ndim
        for position, axis_ in enumerate(kept):
            source[axis_] = index[position]
        return x[tuple(source)]

    return _by_index([x.shape[i] for i in kept], x.dtype, element)


def concat(values: Sequence[np.ndarray], axis: np.ndarray, **_: Any) -> np.ndarray:
    first = values[0]
    at = int(axis) % first.ndim
    owners = [(v, i) for v in values for i in range(v.shape[at])]
    shape = [*first.shape[:at], len(owners), *first.shape[at + 1 :]]

    def element(index: tuple[int, ...]) -> Any:
        value, row = owners[index[at]]
        return value[(*index[:at], row, *index[at + 1 :])]

    return _by_index(shape, first.dtype, element)


def _cut(value: np.ndarray, sizes: Sequence[int], axis: int) -> list[np.ndarray]:
    at, start, parts = axis % value.ndim, 0, []
    for n in sizes:

        def element(index: tuple[int, ...], offset: int = start) -> Any:
            return value[(*index[:at], index[at] + offset, *index[at + 1 :])]

        parts.append(_by_index([*value.shape[:at], n, *value.shape[at + 1 :]], value.dtype, element))
        start += n
    return parts


def split(axis: np.ndarray, value: np.ndarray, num_split: int, **_: Any) -> list[np.ndarray]:
    return _cut(value, [value.shape[int(axis)] // num_split] * num_split, int(axis))


def split_v(value: np.ndarray, size_splits: np.ndarray, axis: np.ndarray, **_: Any) -> list[np.ndarray]:
    sizes = [int(s) for s in size_splits]
    if -1 in sizes:
        sizes[sizes.index(-1)] = value.shape[int(axis)] - sum(s for s in sizes if s != -1)
    return _cut(value, sizes, int(axis))


def pack(values: Sequence[np.ndarray], axis: int = 0, **_: Any) -> np.ndarray:
    first = values[0]
    at = axis % (first.ndim + 1)
    shape = [*first.shape[:at], len(values), *first.shape[at:]]
    return _by_index(shape, first.dtype, lambda i: values[i[at]][i[:at] + i[at + 1 :]])


def unpack(value: np.ndarray, num: int, axis: int = 0, **_: Any) -> list[np.ndarray]:
    at = axis % value.ndim
    shape = value.shape[:at] + value.shape[at + 1 :]

    def part(k: int) -> np.ndarray:
        return _by_index(shape, value.dtype, lambda i: value[(*i[:at], k, *i[at:])])

    return [part(k) for k in range(num)]


def slice_(x: np.ndarray, begin: np.ndarray, size: np.ndarray, **_: Any) -> np.ndarray:
    shape = [n - int(b) if s == -1 else int(s) for n, b, s in zip(x.shape, begin, size, strict=True)]
    return _by_index(shape, x.dtype, lambda i: x[tuple(int(b) + k for b, k in zip(begin, i, strict=True))])


def _picks(
    shape: Sequence[int], begin: np.ndarray, end: np.ndarray, strides: np.ndarray, masks: dict[str, int]
) -> tuple[list[list[int]], list[list[int] | None]]:
    """Per axis of x the indices picked, in order; per axis of the result the list it runs over, None for a new axis."""
    items = []
    for k in range(len(begin)):
        if masks["ellipsis_mask"] >> k & 1:
            items.append("...")
        elif masks["new_axis_mask"] >> k & 1:
            items.append("new")
        else:
            items.append(str(k))
    if "..." not in items:
        items.append("...")
    rest = len(shape) - sum(i not in ("...", "new") for i in items)
    axes: list[list[int]] = []
    result: list[list[int] | None] = []
    for item in items:
        if item == "new":
            result.append(None)
            continue
        if item == "...":
            for _ in range(rest):
                axes.append(list(range(shape[len(axes)])))
                result.append(axes[-1])
            continue
        k, n = int(item), shape[len(axes)]
        first, last, step = int(begin[k]), int(end[k]), int(strides[k])
        if masks["shrink_axis_mask"] >> k & 1:
            axes.append([first % n])
            continue
        low, high = (0, n) if step > 0 else (-1, n - 1)
        first = first + n if first < 0 else first
        last = last + n if last < 0 else last
        first = (low if step > 0 else high) if masks["begin_mask"] >> k & 1 else min(max(first, low), high)
        last = (high if step > 0 else low) if masks["end_mask"] >> k & 1 else min(max(last, low), high)
        picked = []
        while (first < last) if step > 0 else (first > last):
            picked.append(first)
            first += step
        axes.append(picked)
        result.append(axes[-1])
    return axes, result


_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def _source(index: tuple[int, ...], axes: list[list[int]], result: list[list[int] | None]) -> tuple[int, ...]:
    """Index into x for an index into the slice."""
    where = {id(picked): i for picked, i in zip(result, index, strict=True) if picked is not None}
    return tuple(picked[where[id(picked)]] if id(picked) in where else picked[0] for picked in axes)


def strided_slice(x: np.ndarray, begin: np.ndarray, end: np.ndarray, strides: np.ndarray, **attrs: Any) -> np.ndarray:
    axes, result = _picks(x.shape, begin, end, strides, {m: attrs.get(m, 0) for m in _MASKS})
    shape = [1 if picked is None else len(picked) for picked in result]
    return _by_index(shape, x.dtype, lambda i: x[_source(i, axes, result)])


def strided_slice_grad(
    shape: np.ndarray, begin: np.ndarray, end: np.ndarray, strides: np.ndarray, dy: np.ndarray, **attrs: Any
) -> np.ndarray:
    dims = [int(d) for d in shape]
    axes, result = _picks(dims, begin, end, strides, {m: attrs.get(m, 0) for m in _MASKS})
    out = np.zeros(dims, dy.dtype)
    if dy.dtype == object:
        out[...] = b""
    for index in _indices(dy.shape):
        out[_source(index, axes, result)] = dy[index]
    return out


def gather(params: np.ndarray, indices: np.ndarray, axis: np.ndarray, **_: Any) -> np.ndarray:
    at, k = int(axis) % params.ndim, indices.ndim
    shape = (*params.shape[:at], *indices.shape, *params.shape[at + 1 :])
    return _by_index(shape, params.dtype, lambda i: params[(*i[:at], int(indices[i[at : at + k]]), *i[at + k :])])


def unsorted_segment_sum(data: np.ndarray, segment_ids: np.ndarray, num_segments: np.ndarray, **_: Any) -> np.ndarray:
    k, kind = segment_ids.ndim, _wide(data.dtype)
    totals: dict[tuple[int, ...], Any] = {}
    for index in _indices(data.shape):
        key = (int(segment_ids[index[:k]]), *index[k:])
        totals[key] = totals.get(key, kind(0)) + kind(data[index])
    return _sums((int(num_segments), *data.shape[k:]), data.dtype, totals)


def _sums(shape: Sequence[int], dtype: Any, totals: dict[tuple[int, ...], Any]) -> np.ndarray:
    """Totals as an array; integers wrap around."""
    bits = np.dtype(dtype).itemsize * 8

    def element(index: tuple[int, ...]) -> Any:
        total = totals.get(index, 0)
        if isinstance(total, int):
            total %= 1 << bits
            if np.dtype(dtype).kind == "i" and total >= 1 << (bits - 1):
                total -= 1 << bits
        return total

    return _by_index(shape, dtype, element)


def gather_nd(params: np.ndarray, indices: np.ndarray, **_: Any) -> np.ndarray:
    lead, depth = indices.ndim - 1, indices.shape[-1]
    shape = (*indices.shape[:-1], *params.shape[depth:])
    return _by_index(shape, params.dtype, lambda i: params[(*(int(v) for v in indices[i[:lead]]), *i[lead:])])


def scatter_nd(indices: np.ndarray, updates: np.ndarray, shape: np.ndarray, **_: Any) -> np.ndarray:
    lead, kind = indices.ndim - 1, _wide(updates.dtype)
    totals: dict[tuple[int, ...], Any] = {}
    for index in _indices(updates.shape):
        key = (*(int(v) for v in indices[index[:lead]]), *index[lead:])
        totals[key] = totals.get(key, kind(0)) + kind(updates[index])
    return _sums([int(d) for d in shape], updates.dtype, totals)


def tile(x: np.ndarray, multiples: np.ndarray, **_: Any) -> np.ndarray:
    shape = [n * int(m) for n, m in zip(x.shape, multiples, strict=True)]
    return _by_index(shape, x.dtype, lambda i: x[tuple(k % n for k, n in zip(i, x.shape, strict=True))])


def _mirrored(k: int, n: int, mode: str) -> int:
    """Index into a mirrored axis of size n for the position k, which may lie outside."""
    if mode == "reflect":
        return -k if k < 0 else 2 * (n - 1) - k if k >= n else k
    return -k - 1 if k < 0 else 2 * n - 1 - k if k >= n else k


def pad(
    x: np.ndarray, paddings: np.ndarray, constant_values: np.ndarray, mode: str = "constant", **_: Any
) -> np.ndarray:
    shape = [n + int(a) + int(b) for n, (a, b) in zip(x.shape, paddings, strict=True)]

    def element(index: tuple[int, ...]) -> Any:
        source = [k - int(a) for k, (a, _b) in zip(index, paddings, strict=True)]
        if mode == "constant":
            inside = all(0 <= k < n for k, n in zip(source, x.shape, strict=True))
            return x[tuple(source)] if inside else constant_values[()]
        return x[tuple(_mirrored(k, n, mode) for k, n in zip(source, x.shape, strict=True))]

    return _by_index(shape, x.dtype, element)


def mirror_pad_grad(dy: np.ndarray, paddings: np.ndarray, mode: str, **_: Any) -> np.ndarray:
    shape = [n - int(a) - int(b) for n, (a, b) in zip(dy.shape, paddings, strict=True)]
    totals: dict[tuple[int, ...], Any] = {}
    for index in _indices(dy.shape):
        key = tuple(_mirrored(k - int(a), n, mode) for k, (a, _b), n in zip(index, paddings, shape, strict=True))
        totals[key] = totals.get(key, 0) + dy[index].item()
    return _sums(shape, dy.dtype, totals)


def fill(dims: np.ndarray, value: np.ndarray, **_: Any) -> np.ndarray:
    return _by_index([int(d) for d in dims], value.dtype, lambda _index: value[()])


def size(input: np.ndarray, out_type: Any = None, **_: Any) -> np.ndarray:
    return np.array(_count(input.shape), getattr(out_type, "np", out_type) or np.int32)


def rank(input: np.ndarray, **_: Any) -> np.ndarray:
    return np.array(len(input.shape), np.int32)


def range_(start: np.ndarray, limit: np.ndarray, delta: np.ndarray, **_: Any) -> np.ndarray:
    found, k = [], 0
    first, last, step = start.item(), limit.item(), delta.item()
    while (first + k * step < last) if step > 0 else (first + k * step > last):
        found.append(first + k * step)
        k += 1
    return np.array(found, start.dtype)


def lin_space(start: np.ndarray, stop: np.ndarray, num: np.ndarray, **_: Any) -> np.ndarray:
    first, last, count = start.item(), stop.item(), int(num)
    step = (last - first) / (count - 1) if count > 1 else 0.0
    return np.array([first + k * step for k in range(count)], start.dtype)


def one_hot(
    indices: np.ndarray, depth: np.ndarray, on_value: np.ndarray, off_value: np.ndarray, axis: int = -1, **_: Any
) -> np.ndarray:
    at = axis % (indices.ndim + 1)
    shape = [*indices.shape[:at], int(depth), *indices.shape[at:]]
    return _by_index(
        shape,
        on_value.dtype,
        lambda i: on_value[()] if int(indices[i[:at] + i[at + 1 :]]) == i[at] else off_value[()],
    )


def broadcast_to(x: np.ndarray, shape: np.ndarray, **_: Any) -> np.ndarray:
    dims = [int(d) for d in shape]
    lead = len(dims) - x.ndim
    return _by_index(
        dims, x.dtype, lambda i: x[tuple(0 if n == 1 else k for k, n in zip(i[lead:], x.shape, strict=True))]
    )


def reverse(x: np.ndarray, axis: np.ndarray, **_: Any) -> np.ndarray:
    turned = {int(a) % x.ndim for a in axis}
    return _by_index(
        x.shape,
        x.dtype,
        lambda i: x[tuple(n - 1 - k if a in turned else k for a, (k, n) in enumerate(zip(i, x.shape, strict=True)))],
    )


def invert_permutation(x: np.ndarray, **_: Any) -> np.ndarray:
    return np.array([x.tolist().index(i) for i in range(len(x))], x.dtype)


def _nothing(dtype: Any) -> Any:
    return b"" if np.dtype(dtype) == object else np.zeros((), dtype)[()]


def matrix_diag(diagonal: np.ndarray, **_: Any) -> np.ndarray:
    shape, nothing = (*diagonal.shape, diagonal.shape[-1]), _nothing(diagonal.dtype)
    return _by_index(shape, diagonal.dtype, lambda i: diagonal[i[:-1]] if i[-1] == i[-2] else nothing)


def matrix_diag_part(input: np.ndarray, **_: Any) -> np.ndarray:
    shape = (*input.shape[:-2], min(input.shape[-2:]))
    return _by_index(shape, input.dtype, lambda i: input[(*i, i[-1])])


def matrix_band_part(x: np.ndarray, num_lower: np.ndarray, num_upper: np.ndarray, **_: Any) -> np.ndarray:
    lower, upper, nothing = int(num_lower), int(num_upper), _nothing(x.dtype)

    def element(index: tuple[int, ...]) -> Any:
        i, j = index[-2:]
        inside = (lower < 0 or i - j <= lower) and (upper < 0 or j - i <= upper)
        return x[index] if inside else nothing

    return _by_index(x.shape, x.dtype, element)


def where(condition: np.ndarray, **_: Any) -> np.ndarray:
    found = [i for i in _indices(condition.shape) if condition[i]]
    out = np.empty((len(found), condition.ndim), np.int64)
    for row, index in enumerate(found):
        for column, k in enumerate(index):
            out[row, column] = k
    return out


def dynamic_partition(data: np.ndarray, partitions: np.ndarray, num_partitions: int, **_: Any) -> list[np.ndarray]:
    found: list[list[tuple[int, ...]]] = [[] for _ in range(num_partitions)]
    for index in _indices(partitions.shape):
        found[int(partitions[index])].append(index)
    rest = data.shape[partitions.ndim :]

    def part(rows: list[tuple[int, ...]]) -> np.ndarray:
        return _by_index((len(rows), *rest), data.dtype, lambda i: data[(*rows[i[0]], *i[1:])])

    return [part(rows) for rows in found]


def dynamic_stitch(indices: Sequence[np.ndarray], data: Sequence[np.ndarray], **_: Any) -> np.ndarray:
    rows: dict[int, tuple[np.ndarray, tuple[int, ...]]] = {}
    for target, values in zip(indices, data, strict=True):
        for index in _indices(target.shape):
            rows[int(target[index])] = (values, index)
    rest, nothing = data[0].shape[indices[0].ndim :], _nothing(data[0].dtype)

    def element(index: tuple[int, ...]) -> Any:
        if index[0] not in rows:
            return nothing
        values, place = rows[index[0]]
        return values[(*place, *index[1:])]

    return _by_index((max(rows, default=-1) + 1, *rest), data[0].dtype, element)
