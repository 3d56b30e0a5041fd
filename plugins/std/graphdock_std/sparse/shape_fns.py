"""Shape functions of the ops over sparse tensors."""

from __future__ import annotations

from typing import Any

from graphdock.ops import symbolic

from graphdock_std.shape_support import Dims, elements, known, shape_from, show, vector


def dense_matmul(ctx: Any) -> list[Dims]:
    a, b = shape_from(ctx, "a_shape"), ctx.shape("b")
    rows, inner = (None, None) if a is None else (a[1], a[0]) if ctx.attrs["adjoint_a"] else (a[0], a[1])
    of_b, columns = (None, None) if b is None else (b[1], b[0]) if ctx.attrs["adjoint_b"] else (b[0], b[1])
    if known(inner) and known(of_b) and inner != of_b:
        raise ctx.fail(f"inner sizes differ: {inner} of the sparse matrix and {of_b} of b")
    return [(rows, columns)]


@symbolic
def edit_distance(ctx: Any) -> list[Dims]:
    rank = None
    for name in ("hypothesis_shape", "truth_shape"):
        dims = ctx.shape(name)
        if dims is not None and known(dims[0]):
            rank = dims[0]
    if rank is None:
        return [None]
    if rank < 1:
        raise ctx.fail("a sparse scalar holds no sequences")
    shapes = [shape_from(ctx, name) or (None,) * rank for name in ("hypothesis_shape", "truth_shape")]
    return [tuple(max(a, b) if known(a) and known(b) else None for a, b in zip(*shapes, strict=True))[:-1]]


@symbolic
def reshape(ctx: Any) -> list[Dims]:
    indices, old, new = ctx.shape("input_indices"), shape_from(ctx, "input_shape"), vector(ctx, "new_shape")
    rank = None if new is None else len(new)
    if indices is not None and old is not None:
        ctx.equal(indices[1], len(old), "each index needs a number for each dim of input_shape")
    if new is not None:
        if new.count(-1) > 1:
            raise ctx.fail(f"new_shape {show(new)} holds -1 more than once")
        count = elements([d for d in new if d != -1])
        total = None if old is None else elements(old)
        if None not in (count, total) and (total % count if count and -1 in new else total != count and -1 not in new):
            raise ctx.fail(f"cannot reshape {show(old)} ({total} elements) to {show(new)}")
    rows = None if indices is None else indices[0]
    return [(rows, rank), (rank,)]
