"""Gather and GatherNd: slices copied from where integers say, 16 bytes at a time where slices allow it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from graphdock.contracts import KernelDef, errors

from graphdock_cuda.compiled import source
from graphdock_cuda.kernel import PLAIN, family
from graphdock_cuda.kernels.indices import THREADS, bad_index, dims_param, rows_of, word
from graphdock_cuda.launch import i32, i64
from graphdock_cuda.work import ErrorWord, Operand, Work, blocks

__all__ = ["KERNELS", "gather_rows"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)


def gather_rows(
    w: Work,
    params: Operand,
    indices: Operand,
    out: Operand,
    shape: tuple[int, int, int],
    dims: Sequence[int],
    error: ErrorWord,
) -> None:
    """``out[outer, n, inner]`` from ``params[outer, size, inner]``, where tuples of indices into ``dims`` say.

    Args:
      shape: outer, n and inner. ``dims``: whose product is size.
    """
    outer, n, inner = shape
    total = outer * n * inner
    if not total:
        return
    made = source("report.cuh", "gather.cuh", INDEX=w.ctype(indices), WORD=word(params.dtype))
    per_block = THREADS * max(1, 16 // params.dtype.size if inner > 1 else 1)
    facts = (i64(outer), i64(n), i64(inner), i64(math.prod(dims)), i32(len(dims)), dims_param(w, dims))
    w.launch(made, "gather", blocks(total, per_block, 1 << 20), THREADS, params, indices, out, *facts, error)


@kernel("Gather", types={"T": PLAIN})
def gather(w: Work) -> None:
    params, indices, axis = w.input("params"), w.input("indices"), int(w.host("axis"))
    if not -params.rank <= axis < params.rank:
        raise errors.InvalidArgumentError(f"axis {axis} is out of bounds for rank {params.rank}")
    axis %= params.rank
    before, size, after = params.shape[:axis], params.shape[axis], params.shape[axis + 1 :]
    out = w.output((*before, *indices.shape, *after))
    error = bad_index(indices.shape, [size], what=[f"axis {axis}"])
    shape = (math.prod(before), indices.size, math.prod(after))
    if not out.size and indices.size:  # nothing is copied, but a bad index is an error all the same
        rows_of(w, indices, [size], 1, error)
    gather_rows(w, params, indices, out, shape, [size], error)


@kernel("GatherNd", types={"T": PLAIN})
def gather_nd(w: Work) -> None:
    params, indices = w.input("params"), w.input("indices")
    depth = indices.shape[-1]
    if depth > params.rank:
        raise errors.InvalidArgumentError(
            f"index tuples have {depth} elements, but the tensor they index has rank {params.rank}"
        )
    lead, rest, dims = indices.shape[:-1], params.shape[depth:], params.shape[:depth]
    out = w.output((*lead, *rest))
    gather_rows(w, params, indices, out, (1, math.prod(lead), math.prod(rest)), dims, bad_index(lead, dims))
