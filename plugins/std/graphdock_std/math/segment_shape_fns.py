"""Shape functions of the ops that reduce rows by sorted segment ids."""

from __future__ import annotations

from typing import Any

from graphdock.ops import symbolic

from graphdock_std.shape_support import Dims, known, number, show, unread


def _last(ctx: Any) -> Any:
    """Number of segments that the ids name; None where they are not known."""
    ids, dims = ctx.values("segment_ids"), ctx.shape("segment_ids")
    if dims is not None and len(dims) != 1:
        raise ctx.fail(f"segment_ids must be a vector, but its shape is {show(dims)}")
    if dims is None:
        ctx.unproven()
    if not isinstance(ids, tuple):
        return None
    if not ids:
        return 0
    return ids[-1] + 1 if known(ids[-1]) and ids[-1] >= 0 else None


@symbolic
def segment(ctx: Any) -> list[Dims]:
    data, ids, rows = ctx.shape("data"), ctx.shape("segment_ids"), _last(ctx)
    if data is None:
        return [None]
    if not data:
        raise ctx.fail("data is a scalar and has no rows")
    if ids is not None:
        ctx.equal(
            data[0], ids[0], f"segment_ids must hold {data[0]} ids for data {show(data)}, but its shape is {show(ids)}"
        )
    return [(rows, *data[1:])]


@symbolic
def sparse_segment(ctx: Any) -> list[Dims]:
    data, rows = ctx.shape("data"), _last(ctx)
    if data == ():
        raise ctx.fail("data is a scalar and has no rows")
    if ctx.shapes("num_segments"):
        rows = number(ctx, "num_segments")
        if known(rows) and rows < 0:
            raise ctx.fail(f"num_segments is {rows}")
        if not known(rows) and rows is not None and not rows.dim:
            unread(ctx, [rows])
    return [None if data is None else (rows, *data[1:])]
