"""Shape functions of the ops over sets."""

from __future__ import annotations

from typing import Any

from graphdock.ops import symbolic

from graphdock_std.shape_support import shape_from


@symbolic
def set_size(ctx: Any) -> list[Any]:
    """The dense shape without its last dim; ``ctx`` is a ShapeContext."""
    dims = shape_from(ctx, "set_shape")
    if dims == ():
        raise ctx.fail("sets lie along the last dim, and set_shape has none")
    return [None if dims is None else dims[:-1]]
