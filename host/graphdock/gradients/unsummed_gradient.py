"""Gradients by what no op adds up: histories, and what branches leave. Their sum stays a list until somebody reads the elements."""

from __future__ import annotations

from dataclasses import dataclass

from graphdock.graph.tensor import Tensor

__all__ = ["UnsummedGradient"]


@dataclass(frozen=True, slots=True)
class UnsummedGradient:
    """The addends of the gradient by a tensor of dtype variant; each is such a tensor, with as many elements."""

    parts: tuple[Tensor, ...]
