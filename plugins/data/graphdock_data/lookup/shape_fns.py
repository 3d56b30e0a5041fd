"""Shapes of what lookup tables give."""

from __future__ import annotations

from typing import Any


def find(ctx: Any) -> list[Any]:
    """The keys' shape where the default value is a scalar; another may be a value, or one for each key."""
    return [ctx.shape("keys") if ctx.shape("default_value") == () else None]


def export(ctx: Any) -> list[Any]:
    """As many values as keys."""
    return [(None,), None]
