"""Kernels over sparse tensors, which are index tuples, values and a shape: products, orders, shapes, empty rows, edit distances."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from graphdock.contracts import Bound, BuildContext, KernelDef, errors

from graphdock_cpu.kernels.array import bind_writer
from graphdock_cpu.kernels.common import is_half

__all__ = ["KERNELS"]

#: The largest index of 32 bits: SciPy's products take those as they are.
_SMALL = (1 << 31) - 1


def _check(indices: Any, shape: Any, name: str, shape_name: str) -> None:
    """Raise InvalidArgumentError unless all index tuples lie within the shape."""
    if indices.shape[1] != len(shape):
        raise errors.InvalidArgumentError(
            f"{name} hold {indices.shape[1]} numbers each, but {shape_name} has {len(shape)}"
        )
    if not indices.size:
        return
    if indices.min() < 0 or any(indices[:, axis].max() >= size for axis, size in enumerate(shape.tolist())):
        wrong = (indices < 0) | (indices >= shape)
        row, axis = (int(i) for i in np.argwhere(wrong)[0])
        raise errors.InvalidArgumentError(
            f"{name}[{row}, {axis}] is {int(indices[row, axis])}, which is out of bounds for {shape_name} {shape.tolist()}"
        )


def _places(indices: Any, shape: Any) -> Any:
    """The row-major number of each index tuple."""
    places = np.zeros(len(indices), np.int64)
    for axis, size in enumerate(shape.tolist()):
        places *= size
        places += indices[:, axis]
    return places


def _columns(indices: Any, shape: Any) -> Any:
    """The index tuples of a matrix as two rows of memory of our own, of 32 bits where they fit; all within the shape."""
    fits = len(shape) == indices.shape[1] and int(shape.max()) <= _SMALL
    # the or of all is as large as the largest of them, and negative if one is
    if fits and 0 <= np.bitwise_or.reduce(indices, None) <= _SMALL:
        columns = indices.T.astype(np.int32, "C")
        if not columns.size or (columns.view(np.uint32).max(1) < shape).all():
            return columns
    indices = indices.copy()
    _check(indices, shape, "a_indices", "a_shape")
    return indices.T


def _adder() -> Callable[..., None]:
    """``add(rows, columns, values, b, out)``: adds SciPy's product to a matrix, term by term in the order of the indices."""
    from scipy import sparse  # 0.1 s, which few plans want

    # what SciPy's own product calls, since 1.15; making its matrix, which looks at all indices again, costs as much as a product
    direct = getattr(getattr(sparse, "_sparsetools", None), "coo_matmat_dense", None)
    if direct is None:

        def add(rows: Any, columns: Any, values: Any, b: Any, out: Any) -> None:
            matrix = sparse.coo_array((values, (rows, columns)), (out.shape[0], b.shape[0]))
            np.add(out, matrix @ b, out)

        return add

    def add_directly(rows: Any, columns: Any, values: Any, b: Any, out: Any) -> None:
        direct(len(values), b.shape[1], rows, columns, values, b.reshape(-1), out)

    return add_directly


def _dense_matmul(ctx: BuildContext) -> Bound:
    """A product term by term, in the order of the indices, which need not be sorted."""
    add = _adder()
    adjoint_a, adjoint_b = ctx.attr("adjoint_a"), ctx.attr("adjoint_b")
    dtype = ctx.outputs[0].dtype
    half = is_half(dtype)
    wide = np.dtype(np.float32) if half else dtype.np

    def write(indices: Any, values: Any, shape: Any, b: Any, out: Any) -> None:
        rows, columns = _columns(indices, shape)
        if adjoint_a:
            rows, columns = columns, rows
        dense = b.T.conj() if adjoint_b else b
        inner = int(shape[0] if adjoint_a else shape[1])
        if inner != dense.shape[0]:
            raise errors.InvalidArgumentError(
                f"inner sizes differ: {inner} of the sparse matrix and {dense.shape[0]} of b"
            )
        values = values.conj() if adjoint_a else values
        total = np.zeros(out.shape, wide) if half else out
        if not half:
            total.fill(0)
        add(rows, columns, values.astype(wide, copy=False), np.ascontiguousarray(dense, wide), total)
        if half:
            np.copyto(out, total, "same_kind")

    def shape(indices: Any, values: Any, shape: Any, b: Any) -> tuple[int, int]:
        return int(shape[1] if adjoint_a else shape[0]), b.shape[0] if adjoint_b else b.shape[1]

    return bind_writer(ctx, write, (0, 1, 2, 3), shape)


def _reorder(ctx: BuildContext) -> Bound:
    def order(indices: Any, shape: Any) -> Any:
        _check(indices, shape, "input_indices", "input_shape")
        if math.prod(shape.tolist()) > 1 << 63:  # places have no numbers of 64 bits
            return np.lexsort(indices.T[::-1])
        return np.argsort(_places(indices, shape), kind="stable")

    def fresh(indices: Any, values: Any, shape: Any) -> tuple[Any, Any]:
        at = order(indices, shape)
        return indices[at], values[at]

    def planned(indices: Any, values: Any, shape: Any, out_indices: Any, out_values: Any) -> None:
        at = order(indices, shape)
        np.take(indices, at, 0, out_indices, "clip")
        np.take(values, at, 0, out_values, "clip")

    return Bound(fresh if ctx.fresh else planned)


def _reshape(ctx: BuildContext) -> Bound:
    def complete(shape: Any, new: Any) -> list[int]:
        count, asked = math.prod(shape.tolist()), new.tolist()
        if asked.count(-1) > 1 or any(d < -1 for d in asked):
            raise errors.InvalidArgumentError(f"new_shape is {asked}", expected="sizes, of which one may be -1")
        rest = math.prod(d for d in asked if d != -1)
        sizes = [(count // rest if rest else 0) if d == -1 else d for d in asked]
        if math.prod(sizes) != count:
            raise errors.InvalidArgumentError(f"cannot reshape a sparse tensor of {shape.tolist()} to {asked}")
        return sizes

    def fill(indices: Any, shape: Any, sizes: list[int], out: Any) -> None:
        _check(indices, shape, "input_indices", "input_shape")
        left = _places(indices, shape)
        for axis in reversed(range(len(sizes))):
            left, out[:, axis] = np.divmod(left, max(sizes[axis], 1))

    def fresh(indices: Any, shape: Any, new: Any) -> tuple[Any, Any]:
        sizes = complete(shape, new)
        out = np.empty((len(indices), len(sizes)), np.int64)
        fill(indices, shape, sizes, out)
        return out, np.array(sizes, np.int64)

    def planned(indices: Any, shape: Any, new: Any, out: Any, out_shape: Any) -> None:
        sizes = complete(shape, new)
        fill(indices, shape, sizes, out)
        out_shape[...] = sizes

    return Bound(fresh if ctx.fresh else planned)


def _fill_empty_rows(ctx: BuildContext) -> Bound:
    def compute(indices: Any, values: Any, shape: Any, default: Any) -> tuple[Any, ...]:
        _check(indices, shape, "indices", "dense_shape")
        if not len(shape):
            raise errors.InvalidArgumentError("a sparse scalar has no rows")
        empty = np.bincount(indices[:, 0], minlength=int(shape[0])) == 0
        missing = np.flatnonzero(empty)
        extra = np.zeros((len(missing), len(shape)), np.int64)
        extra[:, 0] = missing
        order = np.argsort(np.concatenate([indices[:, 0], missing]), kind="stable")
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        filled = np.empty(len(order), values.dtype)
        filled[: len(values)] = values
        filled[len(values) :] = default
        return np.concatenate([indices, extra])[order], filled[order], empty, places[: len(values)].copy()

    return Bound(compute)


def _sequences(indices: Any, values: Any) -> dict[tuple[int, ...], list[Any]]:
    found: dict[tuple[int, ...], list[Any]] = {}
    for index, value in zip(indices[:, :-1].tolist(), values.tolist(), strict=True):
        found.setdefault(tuple(index), []).append(value)
    return found


def _levenshtein(a: list[Any], b: list[Any]) -> int:
    """Row by row of the table of distances between beginnings, Wagner and Fischer, 1974."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


def _edit_distance(ctx: BuildContext) -> Bound:
    normalize = ctx.attr("normalize")

    def write(h_at: Any, h_values: Any, h_shape: Any, t_at: Any, t_values: Any, t_shape: Any, out: Any) -> None:
        if len(h_shape) != len(t_shape):
            raise errors.InvalidArgumentError(f"hypothesis_shape has rank {len(h_shape)}, truth_shape {len(t_shape)}")
        places = np.array(out.shape, np.int64)  # how long sequences are they tell themselves
        _check(h_at[:, :-1], places, "hypothesis_indices", "the places of sequences")
        _check(t_at[:, :-1], places, "truth_indices", "the places of sequences")
        hypotheses, truths = _sequences(h_at, h_values), _sequences(t_at, t_values)
        out.fill(0)
        for place in hypotheses.keys() | truths.keys():
            hypothesis, truth = hypotheses.get(place, []), truths.get(place, [])
            distance: float = _levenshtein(hypothesis, truth)
            if normalize:
                distance = distance / len(truth) if truth else math.inf
            out[place] = distance

    def shape(*args: Any) -> list[int]:
        return [max(int(a), int(b)) for a, b in zip(args[2][:-1], args[5][:-1], strict=False)]

    return bind_writer(ctx, write, range(6), shape)


KERNELS = [
    KernelDef("SparseTensorDenseMatMul", "cpu", _dense_matmul),
    KernelDef("SparseReorder", "cpu", _reorder),
    KernelDef("SparseReshape", "cpu", _reshape),
    KernelDef("SparseFillEmptyRows", "cpu", _fill_empty_rows, modes=("fresh",)),
    KernelDef("EditDistance", "cpu", _edit_distance),
]
