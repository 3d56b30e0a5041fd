"""Sets that lie along the last dim of sparse tensors: their elements sorted by group and value."""

from __future__ import annotations

import math
from collections.abc import Sequence

from graphdock.contracts import KernelDef, dtypes, errors

from graphdock_cuda.compiled import source
from graphdock_cuda.immediate import Run, dynamic_family
from graphdock_cuda.kernel import family
from graphdock_cuda.kernels.indices import BY_TUPLE, THREADS, dims_param, rows_of
from graphdock_cuda.kernels.sort import argsort, sort_keys
from graphdock_cuda.kernels.sparse import numbers_along
from graphdock_cuda.kernels.where import chosen
from graphdock_cuda.launch import i32, i64
from graphdock_cuda.work import ErrorWord, Operand, Work, blocks

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)
dynamic = dynamic_family(KERNELS)

_TYPES = {"T": ("int8", "int16", "int32", "int64", "uint8", "uint16")}
#: As source/sets.cuh numbers them.
_OPERATIONS = ("a-b", "b-a", "intersection", "union")


def _outside(indices: Operand, shape: Sequence[int]) -> ErrorWord:
    width = indices.shape[1]

    def make(first: int, second: int) -> errors.GraphdockError:
        row, axis = divmod(first, width)
        return errors.InvalidArgumentError(
            "an index lies outside of its shape", expected=str(list(shape)), got=f"{second} at [{row}, {axis}]"
        )

    return ErrorWord(make)


def _by_group(w: Work, values: Operand, groups: Operand, count: int) -> tuple[Operand, Operand]:
    """Groups in ascending order, and the elements in that order, by value within a group."""
    order, _ = argsort(w, values)
    taken = w.scratch(groups.dtype, groups.size)
    if groups.size:
        made = source("sets.cuh", TX=w.ctype(values), KEY=w.ctype(groups))
        grid = blocks(groups.size, THREADS, 1 << 16)
        w.launch(made, "take_groups", grid, THREADS, groups, order, taken, i64(groups.size))
    return sort_keys(w, taken, max(count, 1).bit_length(), order)


@kernel("SetSize", types=_TYPES)
def set_size(w: Work) -> None:
    indices, values, shape = w.input("set_indices"), w.input("set_values"), [int(d) for d in w.host("set_shape")]
    out = w.output(shape[:-1])
    w.fill(out)
    _, bad = rows_of(w, indices, shape, len(shape), _outside(indices, shape), BY_TUPLE)
    if values.size and out.size:
        groups, order = _by_group(w, values, numbers_along(w, indices, 0, shape[:-1]), out.size)
        made = source("sets.cuh", TX=w.ctype(values), KEY=w.ctype(groups))
        grid = blocks(values.size, THREADS, 1 << 16)
        w.launch(made, "count_sets", grid, THREADS, values, order, groups, out, bad, i64(values.size))


@dynamic("SparseToSparseSetOperation", types=_TYPES)
def set_operation(r: Run) -> None:
    at = [r.input(f"set{i}_indices") for i in (1, 2)]
    of = [r.input(f"set{i}_values") for i in (1, 2)]
    shapes = [[int(d) for d in r.read(r.input(f"set{i}_shape"))] for i in (1, 2)]
    if shapes[0][:-1] != shapes[1][:-1]:
        raise errors.InvalidArgumentError("sets of other groups", expected=str(shapes[0][:-1]), got=str(shapes[1][:-1]))
    for indices, shape in zip(at, shapes, strict=True):
        _, bad = rows_of(r, indices, shape, len(shape), _outside(indices, shape), BY_TUPLE)
    dims, rank, split = shapes[0][:-1], len(shapes[0]), of[0].size
    count, n = math.prod(dims), sum(x.size for x in of)
    numbers = [numbers_along(r, indices, 0, dims) for indices in at]
    values, groups = r.scratch(of[0].dtype, n), r.scratch(numbers[0].dtype, n)
    for whole, parts in ((values, of), (groups, numbers)):
        r.copy(whole, parts[0])
        r.copy(whole.at(split, parts[1].shape), parts[1])
    groups, order = _by_group(r, values, groups, count)
    made = source("sets.cuh", TX=r.ctype(values), KEY=r.ctype(groups))
    flags = r.scratch(dtypes.uint8, n)
    if n:
        facts = (i64(n), i64(split), i32(_OPERATIONS.index(r.attr("set_operation"))))
        r.launch(made, "keep_elements", blocks(n, THREADS, 1 << 16), THREADS, values, order, groups, flags, *facts)
    kept = chosen(r, flags)
    n = kept.size
    tuples, found, dense = r.output((n, rank)), r.output((n,), 1), r.output((rank,), 2)
    widest, of_kept = r.scratch(dtypes.int64, 1), r.scratch(groups.dtype, n)
    r.fill(widest)
    grid = blocks(n, THREADS, 1 << 16)
    places = source("set_places.cuh", KEY=r.ctype(groups))
    if n:
        r.launch(made, "take_kept", grid, THREADS, values, order, groups, kept, of_kept, found, i64(n))
        r.launch(places, "set_places", grid, THREADS, of_kept, tuples, widest, i64(n), i32(rank), dims_param(r, dims))
    r.launch(places, "set_shape", 1, 1, dense, widest, i32(rank), dims_param(r, dims))
