"""Numbers as the host computes them while a step runs: two's complement, and what NumPy does about floating-point errors."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

__all__ = ["CALLERS_ERRORS", "wrap"]

#: How NumPy was told to treat floating-point errors by whoever runs a step: so it is while a Python function of that step runs.
CALLERS_ERRORS: ContextVar[Mapping[str, Any] | None] = ContextVar("CALLERS_ERRORS", default=None)


def wrap(value: int, bits: int) -> int:
    """Two's complement wrap-around of a Python int."""
    half = 1 << (bits - 1)
    return ((value + half) & ((1 << bits) - 1)) - half
