"""Rows and slices of a variable or of a tensor changed where integers say, and sums of slices that fall on one place.

Updates of one row are combined with each other, in the order of the indices and in float32 for float16 and bfloat16, and then once
with the row. Nothing is written when an index is out of bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from graphdock.contracts import KernelDef, dtypes, errors

from graphdock_cuda.compiled import source
from graphdock_cuda.kernel import PLAIN, family
from graphdock_cuda.kernels.indices import (
    THREADS,
    Rows,
    bad_index,
    reduce_runs,
    rows_of,
    sorted_rows,
    word,
    write_last,
)
from graphdock_cuda.kernels.reduce import reducer
from graphdock_cuda.kernels.sort import sort_keys
from graphdock_cuda.launch import i64
from graphdock_cuda.work import ErrorWord, Operand, Work, blocks

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)

#: What an update does: how updates of one row are combined, and how the row with that; None: the last update stays.
_COMBINE = {
    "Update": None,
    "Add": ("sum", "add"),
    "Sub": ("sum", "sub"),
    "Mul": ("product", "mul"),
    "Div": ("product", "div"),
    "Min": ("min", "min"),
    "Max": ("max", "max"),
}


def _apply(w: Work, how: tuple[str, str] | None, updates: Operand, rows: Rows, out: Operand, width: int) -> None:
    if how is None:
        write_last(w, updates, rows, out, width)
    else:
        reduce_runs(w, reducer(how[0], out.dtype), updates, rows, out, width, how[1])


def _rows(how: tuple[str, str] | None) -> Callable[[Work], None]:
    """Updates of rows of a variable."""

    def trace(w: Work) -> None:
        var, indices, updates = w.inputs
        if not var.rank:
            raise errors.InvalidArgumentError("the variable is a scalar and has no rows")
        shape = (*indices.shape, *var.shape[1:])
        if updates.shape not in (shape, ()):
            raise errors.InvalidArgumentError(
                f"updates have shape {list(updates.shape)}", expected=f"{list(shape)}, or a scalar"
            )
        dims = var.shape[:1]
        rows = sorted_rows(w, indices, dims, 1, bad_index(indices.shape, dims))
        _apply(w, how, updates, rows, var, math.prod(var.shape[1:]))

    return trace


def _slices(w: Work, how: tuple[str, str] | None, into: Operand, indices: Operand, updates: Operand) -> None:
    """Updates of slices, each of which an index tuple names."""
    if not indices.rank:
        raise errors.InvalidArgumentError("indices is a scalar; its last axis must hold index tuples")
    depth = indices.shape[-1]
    if depth > into.rank:
        raise errors.InvalidArgumentError(
            f"index tuples have {depth} elements, but the tensor they index has rank {into.rank}"
        )
    lead, dims, rest = indices.shape[:-1], into.shape[:depth], into.shape[depth:]
    if updates.shape != (*lead, *rest):
        raise errors.InvalidArgumentError(
            f"updates have shape {list(updates.shape)}", expected=str(list((*lead, *rest)))
        )
    rows = sorted_rows(w, indices, dims, depth, bad_index(lead, dims))
    # one slice and no axes left: an element for each tuple, not one for all
    _apply(w, how, updates.reshaped(updates.size), rows, into, math.prod(rest))


def _nd(how: tuple[str, str] | None) -> Callable[[Work], None]:
    return lambda w: _slices(w, how, *w.inputs)


def _tensor(how: tuple[str, str] | None) -> Callable[[Work], None]:
    def trace(w: Work) -> None:
        tensor, indices, updates = w.inputs
        out = w.output(tensor.shape)
        w.copy(out, tensor)
        _slices(w, how, out, indices, updates)

    return trace


for _name, _how in _COMBINE.items():
    kernel(f"ResourceScatter{_name}")(_rows(_how))
for _name in ("Update", "Add", "Sub"):
    kernel(f"ResourceScatterNd{_name}")(_nd(_COMBINE[_name]))
    kernel(f"TensorScatter{_name}", types={"T": PLAIN} if _name == "Update" else {})(_tensor(_COMBINE[_name]))


@kernel("ScatterNd")
def scatter_nd(w: Work) -> None:
    indices, updates, _ = w.inputs
    out = w.output([int(d) for d in w.host("shape")])
    w.fill(out)
    _slices(w, ("sum", "none"), out, indices, updates)


@kernel("SparseToDense", types={"T": PLAIN})
def sparse_to_dense(w: Work) -> None:
    """A default value with others at index tuples; the last of one place stays, unless repeats are refused."""
    places, values, default = w.input("sparse_indices"), w.input("sparse_values"), w.input("default_value")
    out = w.output([int(d) for d in w.host("output_shape")])
    count = places.shape[0] if places.rank == 2 else places.size
    depth = places.shape[1] if places.rank == 2 else 1
    if depth != out.rank:
        raise errors.InvalidArgumentError(
            f"sparse_indices have shape {list(places.shape)}", expected=f"index tuples of {out.rank} numbers"
        )
    if values.rank and values.shape != (count,):
        raise errors.InvalidArgumentError(
            f"sparse_values have shape {list(values.shape)}", expected=f"a scalar or [{count}]"
        )
    if out.size:
        made = source("fill.cuh", WORD=word(out.dtype))
        w.launch(made, "fill_from", blocks(out.size, THREADS, 1 << 16), THREADS, out, i64(out.size), default)
    error = bad_index((count,), out.shape, "sparse_indices")
    shaped = places.reshaped(count, depth)
    keys, bad = rows_of(w, shaped, out.shape, depth, error)
    if w.attr("validate_indices") and count > 1:
        fault = w.scratch(dtypes.uint64, 1)
        w.fill(fault, 0xFF)
        made = source("report.cuh", "ascending.cuh", KEY=w.ctype(keys))
        w.launch(made, "ascending", blocks(count, THREADS, 1 << 16), THREADS, keys, fault, i64(count))
        w.launch(made, "report_ascending", 1, 1, keys, bad, fault, i64(out.size), _unordered(out.shape))
    order_of, order = sort_keys(w, keys, max(out.size, 1).bit_length())
    write_last(w, values, Rows(order_of, order, bad, out.size), out, 1)


def _unordered(shape: Sequence[int]) -> ErrorWord:
    """The error of indices that repeat or descend, which a kernel notes as a place, and its row and the one before it."""

    def make(at: int, both: int) -> errors.GraphdockError:
        row, before = divmod(both, max(math.prod(shape), 1))
        what = "repeat" if row == before else "are out of order"
        here, there = ([int(i) for i in np.unravel_index(r, tuple(shape))] for r in (row, before))
        return errors.InvalidArgumentError(
            f"sparse_indices {what}: sparse_indices[{at}] is {here} after {there}", hint="pass validate_indices=False"
        )

    return ErrorWord(make)
