"""Shapes of what is read from lists of tensors."""

from __future__ import annotations

from typing import Any


def _dims(ctx: Any) -> Any:
    """The shape of an element, as far as the plan knows it; None of unknown rank."""
    found = ctx.values("element_shape")
    if not isinstance(found, tuple):
        return None
    return tuple([d if isinstance(d, int) and d >= 0 else None for d in found])


def element(ctx: Any) -> list[Any]:
    """That of an element."""
    return [_dims(ctx)]


def gathered(ctx: Any) -> list[Any]:
    """As many elements as indices."""
    dims, count = _dims(ctx), ctx.shape("indices")
    return [None if dims is None else (None if count is None else count[0], *dims)]


def stacked(ctx: Any) -> list[Any]:
    """As many elements as there are."""
    dims, count = _dims(ctx), ctx.attrs["num_elements"]
    return [None if dims is None else (None if count < 0 else count, *dims)]


def joined(ctx: Any) -> list[Any]:
    """The first dims of all elements together, and of each."""
    dims = _dims(ctx)
    return [None if not dims else (None, *dims[1:]), (None,)]
