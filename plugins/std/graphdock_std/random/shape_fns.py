"""Shape functions of the random ops."""

from __future__ import annotations

from typing import Any

from graphdock.ops import symbolic

from graphdock_std.shape_support import known, unread


@symbolic
def by_shape(ctx: Any) -> list[Any]:
    """``ctx`` is a ShapeContext. The output has the shape that the host input ``shape`` holds."""
    dims = ctx.shape("shape")
    if dims is not None and len(dims) != 1:
        raise ctx.fail("shape must be a vector")
    values = ctx.values("shape")
    if values is None:
        ctx.unproven()
        return [(None,) * dims[0] if dims is not None and known(dims[0]) else None]
    for value in values:
        if known(value) and value < 0:
            raise ctx.fail(f"shape {[v if known(v) else None for v in values]} has a negative size")
    unread(ctx, [v for v in values if v is not None and not known(v) and not v.dim])
    return [tuple(values)]
