"""Sparse tensors, which are index tuples, values and a shape: products, orders, shapes, empty rows, edit distances.

Elements are put in the order of their rows by stable sorts, and summed in that order, float16 and bfloat16 in float32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from graphdock.contracts import KernelDef, dtypes, errors

from graphdock_cuda.compiled import source
from graphdock_cuda.immediate import Run, dynamic_family
from graphdock_cuda.kernel import PLAIN, family
from graphdock_cuda.kernels.indices import BY_TUPLE, THREADS, dims_param, rows_of, sorted_rows, starts_of, word
from graphdock_cuda.kernels.scan import exclusive_sums
from graphdock_cuda.kernels.sort import key_dtype, sort_keys
from graphdock_cuda.launch import i32, i64
from graphdock_cuda.work import ErrorWord, Operand, Work, blocks

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)
dynamic = dynamic_family(KERNELS)


def _dims(value: np.ndarray) -> list[int]:
    return [int(d) for d in value]


def _outside(indices: Operand, shape: Sequence[int], name: str, shape_name: str) -> ErrorWord:
    """The error of an index tuple outside of a shape; raises InvalidArgumentError where their lengths differ."""
    width = indices.shape[1]
    if width != len(shape):
        raise errors.InvalidArgumentError(f"{name} hold {width} numbers each, but {shape_name} has {len(shape)}")

    def make(first: int, second: int) -> errors.GraphdockError:
        row, axis = divmod(first, width)
        return errors.InvalidArgumentError(
            f"{name}[{row}, {axis}] is {second}, which is out of bounds for {shape_name} {list(shape)}"
        )

    return ErrorWord(make)


def numbers_along(w: Work, indices: Operand, first: int, dims: Sequence[int]) -> Operand:
    """Row-major numbers of some neighbouring indices of each tuple, within dims; of those outside of them how many there are."""
    count = math.prod(dims)
    keys = w.scratch(key_dtype(max(count, 1).bit_length()), indices.shape[0])
    if keys.size:
        made = source("sparse_numbers.cuh", KEY=w.ctype(keys))
        facts = (i64(keys.size), i32(indices.shape[1]), i32(first), i32(len(dims)), dims_param(w, dims), i64(count))
        w.launch(made, "numbers_along", blocks(keys.size, THREADS, 1 << 16), THREADS, indices, keys, *facts)
    return keys


def _grouped(w: Work, indices: Operand, dims: Sequence[int], first: int = 0) -> tuple[Operand, Operand]:
    """Return where the elements of each group begin, and the elements in order of groups: by neighbouring indices, within dims."""
    count = math.prod(dims)
    keys, order = sort_keys(w, numbers_along(w, indices, first, dims), max(count, 1).bit_length())
    return starts_of(w, keys, count), order


@kernel("SparseTensorDenseMatMul")
def dense_matmul(w: Work) -> None:
    """A thread for each element of the product, which goes through the elements of its row."""
    indices, values, b = w.input("a_indices"), w.input("a_values"), w.input("b")
    shape = _dims(w.host("a_shape"))
    flipped, adjoint = bool(w.attr("adjoint_a")), bool(w.attr("adjoint_b"))
    error = _outside(indices, shape, "a_indices", "a_shape")
    rows, inner = (shape[1], shape[0]) if flipped else (shape[0], shape[1])
    depth, columns = (b.shape[1], b.shape[0]) if adjoint else b.shape
    if inner != depth:
        raise errors.InvalidArgumentError(f"inner sizes differ: {inner} of the sparse matrix and {depth} of b")
    out = w.output((rows, columns))
    _, bad = rows_of(w, indices, shape, 2, error, BY_TUPLE)
    if not out.size:
        return
    starts, order = _grouped(w, indices, [rows], int(flipped))
    made = source("complex.cuh", "scalar.cuh", "sparse_matmul.cuh", TX=w.ctype(values))
    steps = (i64(1), i64(b.shape[1])) if adjoint else (i64(b.shape[1]), i64(1))
    facts = (i64(rows), i64(columns), i32(0 if flipped else 1), *steps, i32(flipped), i32(adjoint))
    args = (indices, values, order, starts, b, out, bad)
    w.launch(made, "sparse_matmul", blocks(out.size, THREADS, 1 << 20), THREADS, *args, *facts)


@kernel("SparseReorder", types={"T": PLAIN})
def reorder(w: Work) -> None:
    indices, values, shape = w.input("input_indices"), w.input("input_values"), _dims(w.host("input_shape"))
    error = _outside(indices, shape, "input_indices", "input_shape")
    out, taken = w.output(indices.shape), w.output(values.shape, 1)
    rows = sorted_rows(w, indices, shape, len(shape), error, BY_TUPLE)
    if values.size:
        assert rows.order is not None
        made = source("sparse_order.cuh", TX=word(values.dtype))
        facts = (i64(values.size), i32(len(shape)))
        grid = blocks(values.size, THREADS, 1 << 16)
        w.launch(made, "take_ordered", grid, THREADS, indices, values, rows.order, out, taken, rows.bad, *facts)


@dynamic("SparseReshape")
def reshape(r: Run) -> None:
    indices, shape = r.input("input_indices"), _dims(r.host("input_shape"))
    sizes = _completed(shape, _dims(r.host("new_shape")))
    keys, bad = rows_of(
        r, indices, shape, len(shape), _outside(indices, shape, "input_indices", "input_shape"), BY_TUPLE
    )
    out = r.output((indices.shape[0], len(sizes)))
    r.host_output(np.array(sizes, np.int64), 1)
    if out.size:
        made = source("sparse_places.cuh", KEY=r.ctype(keys))
        facts = (i64(keys.size), i32(len(sizes)), dims_param(r, sizes))
        r.launch(made, "spread_places", blocks(keys.size, THREADS, 1 << 16), THREADS, keys, out, bad, *facts)


def _completed(shape: Sequence[int], asked: list[int]) -> list[int]:
    """The new shape, with what -1 stands for."""
    count = math.prod(shape)
    if asked.count(-1) > 1 or any(d < -1 for d in asked):
        raise errors.InvalidArgumentError(f"new_shape is {asked}", expected="sizes, of which one may be -1")
    rest = math.prod(d for d in asked if d != -1)
    sizes = [(count // rest if rest else 0) if d == -1 else d for d in asked]
    if math.prod(sizes) != count:
        raise errors.InvalidArgumentError(f"cannot reshape a sparse tensor of {list(shape)} to {asked}")
    return sizes


@dynamic("SparseFillEmptyRows", types={"T": PLAIN})
def fill_empty_rows(r: Run) -> None:
    indices, values, default = r.input("indices"), r.input("values"), r.input("default_value")
    shape = _dims(r.host("dense_shape"))
    error = _outside(indices, shape, "indices", "dense_shape")
    if not shape:
        raise errors.InvalidArgumentError("a sparse scalar has no rows")
    n, rows = values.size, shape[0]
    _, bad = rows_of(r, indices, shape, len(shape), error, BY_TUPLE)
    keys, order = sort_keys(r, numbers_along(r, indices, 0, [rows]), max(rows, 1).bit_length())
    starts = starts_of(r, keys, rows)
    missing, empty = r.scratch(dtypes.int64, rows + 1), r.output((rows,), 2)
    made = source("sparse_rows.cuh", TX=word(values.dtype), KEY=r.ctype(keys))
    r.launch(made, "mark_empty", blocks(rows + 1, THREADS, 1 << 16), THREADS, starts, empty, missing, i64(rows))
    exclusive_sums(r, missing)
    total = n + int(r.read(missing.at(rows, (1,)))[0])
    out, filled, reverse = r.output((total, len(shape))), r.output((total,), 1), r.output((n,), 3)
    rank = i32(len(shape))
    if n:
        written = (indices, values, order, keys, missing, out, filled, reverse, bad)
        r.launch(made, "place_elements", blocks(n, THREADS, 1 << 16), THREADS, *written, i64(n), rank)
    if rows:
        added = (starts, missing, default, out, filled)
        r.launch(made, "place_missing", blocks(rows, THREADS, 1 << 16), THREADS, *added, i64(rows), rank)


@kernel("EditDistance", types={"T": PLAIN})
def edit_distance(w: Work) -> None:
    """A thread for each pair of sequences."""
    sides = []
    shapes = [_dims(w.host(f"{side}_shape")) for side in ("hypothesis", "truth")]
    if len(shapes[0]) != len(shapes[1]):
        raise errors.InvalidArgumentError(f"hypothesis_shape has rank {len(shapes[0])}, truth_shape {len(shapes[1])}")
    dims = [max(pair) for pair in zip(shapes[0][:-1], shapes[1][:-1], strict=True)]
    out = w.output(dims)
    for side, shape in zip(("hypothesis", "truth"), shapes, strict=True):
        indices = w.input(f"{side}_indices")
        error = _outside(indices, shape, f"{side}_indices", f"{side}_shape")
        _, bad = rows_of(w, indices, shape, len(shape), error, BY_TUPLE)
        starts, order = _grouped(w, indices, dims)
        sides.append((w.input(f"{side}_values"), order, starts, bad))
    if out.size:
        first, second = sides
        table = w.scratch(dtypes.int32, second[0].size + out.size)
        made = source("complex.cuh", "edit_distance.cuh", TX=w.ctype(first[0]))
        args = (*first[:3], *second[:3], table, out, first[3], second[3], i64(out.size), i32(w.attr("normalize")))
        w.launch(made, "edit_distance", blocks(out.size, 64, 1 << 16), 64, *args)
