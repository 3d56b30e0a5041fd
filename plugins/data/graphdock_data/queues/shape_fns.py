"""Shapes of what queues give."""

from __future__ import annotations

from typing import Any


def components(ctx: Any) -> list[Any]:
    """Nothing is known of them by the op alone; the queue's Python object sets what its shapes say."""
    return [None] * len(ctx.attrs["component_types"])


def slices(ctx: Any) -> list[Any]:
    """Indices, rows and the shape of the whole, of which nothing is known."""
    return [(None,), None, (None,)]


def elements(ctx: Any) -> list[Any]:
    """Numbers and keys, and components of which nothing is known."""
    return [(None,), (None,), *[None] * len(ctx.attrs["component_types"])]


def key_and_components(ctx: Any) -> list[Any]:
    """A key, and components of which nothing is known."""
    return [(), *components(ctx)]
