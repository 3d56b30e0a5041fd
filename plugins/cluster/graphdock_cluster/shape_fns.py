"""Shape functions of the ops that exchange tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["received"]


def received(ctx: Any) -> Sequence[Any]:
    """The shape, as far as the sender knew it."""
    return [ctx.attrs["shape"]]
