"""Shapes of what iterators give."""

from __future__ import annotations

from typing import Any


def components(ctx: Any) -> list[Any]:
    """Those that the iterator says."""
    return list(ctx.attrs["output_shapes"])
