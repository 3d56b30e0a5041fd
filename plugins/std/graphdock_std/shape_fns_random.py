"""Shape functions of the random ops."""

from __future__ import annotations

from typing import Any

__all__ = ["by_shape"]


def by_shape(ctx: Any) -> list[Any]:
    """``ctx`` is a ShapeContext. The output has the shape that the host input ``shape`` holds."""
    dims = ctx.shape("shape")
    if dims is not None and len(dims) != 1:
        raise ctx.fail("shape must be a vector")
    values = ctx.values("shape")
    if values is None:
        count = dims[0] if dims is not None else None
        return [None if count is None else (None,) * count]
    for value in values:
        if value is not None and value < 0:
            raise ctx.fail(f"shape {list(values)} has a negative size")
    return [tuple(values)]
