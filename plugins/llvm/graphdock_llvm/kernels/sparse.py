"""Products of sparse matrices and dense ones, term by term in the order of the indices, by one native function."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from graphdock.contracts import BindContext, KernelDef, NativeCall, PrepareContext, Prepared, errors

from graphdock_llvm.launch import address_of
from graphdock_llvm.native import chain
from graphdock_llvm.pool import pool_address
from graphdock_llvm.sparse_text import BAD, text, together
from graphdock_llvm.target import width

__all__ = ["KERNELS"]

_SCALARS = {"float32": "float", "float64": "double"}
#: Multiplications from which threads share the columns.
_LEAST = 1 << 18


def _sizes(indices: Any, values: Any, shape: Any, b: Any, turned: bool, flipped: bool) -> tuple[int, int, int]:
    """Rows, the inner size and columns of a product. Raises InvalidArgumentError where they do not fit."""
    sizes = shape.tolist()
    if len(sizes) != 2 or min(sizes) < 0:
        raise errors.InvalidArgumentError(
            f"a_indices hold 2 numbers each, but a_shape is {sizes}", expected="2 sizes of 0 or more"
        )
    if len(values) != len(indices):
        raise errors.InvalidArgumentError(f"there are {len(indices)} a_indices and {len(values)} a_values")
    rows, inner = sizes[::-1] if turned else sizes
    depth, columns = b.shape[::-1] if flipped else b.shape
    if inner != depth:
        raise errors.InvalidArgumentError(f"inner sizes differ: {inner} of the sparse matrix and {depth} of b")
    return rows, inner, columns


def _outside(indices: Any, shape: Any, row: int) -> errors.InvalidArgumentError:
    """The error of an index tuple outside of the shape."""
    pair, sizes = indices[row].tolist(), shape.tolist()
    axis = 0 if not 0 <= pair[0] < sizes[0] else 1
    return errors.InvalidArgumentError(
        f"a_indices[{row}, {axis}] is {pair[axis]}, which is out of bounds for a_shape {sizes}"
    )


def _bound(address: int, wide: int, threads: int, ctx: BindContext) -> Callable[..., Any]:
    turned, flipped = bool(ctx.attr("adjoint_a")), bool(ctx.attr("adjoint_b"))
    dtype, fresh = ctx.outputs[0].dtype.np, ctx.fresh
    numbers = np.zeros(BAD + 1, np.int64)
    run = chain([NativeCall(address, (0, 1, 2, 3), numbers)], 4)

    def compute(indices: Any, values: Any, shape: Any, b: Any, *given: Any) -> Any:
        rows, inner, columns = _sizes(indices, values, shape, b, turned, flipped)
        out = np.empty((rows, columns), dtype) if fresh else given[0]
        if out.shape != (rows, columns):
            raise errors.InvalidArgumentError(
                f"the product is {[rows, columns]}, and was to be {list(out.shape)}",
                expected="sizes as they were planned",
            )
        shared = threads > 1 and columns > wide and len(values) * columns >= _LEAST
        numbers[:] = (
            threads if shared else 1, pool_address() if shared else 0, len(values), columns, rows, inner, turned, -1
        )  # fmt: skip
        run(indices, values, np.ascontiguousarray(b.T) if flipped else b, out)
        if numbers[BAD] >= 0:
            raise _outside(indices, shape, int(numbers[BAD]))
        return out if fresh else None

    return compute


def _prepare(ctx: PrepareContext) -> Prepared:
    scalar, lanes = _SCALARS[ctx.outputs[0].dtype.name], width()
    address = address_of(ctx, text(scalar, lanes))
    bind = partial(_bound, address, together(scalar, lanes), ctx.threads)
    return Prepared(bind, source=partial(text, scalar, lanes))


KERNELS = [
    KernelDef("SparseTensorDenseMatMul", "cpu", prepare=_prepare, types={"T": tuple(_SCALARS)}),
]
