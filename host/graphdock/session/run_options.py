"""Options of one step and what a step reports."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["RunMetadata", "RunOptions"]


@dataclass(frozen=True)
class RunOptions:
    """Options of one ``Session.run``; this version has none."""


@dataclass
class RunMetadata:
    """Filled in by ``Session.run(..., run_metadata=...)``.

    Attributes:
      plan: the plan that ran (its ``source``, ``arena_bytes`` and ``kernel_nodes`` may be read).
      cached: whether the plan was there already.
    """

    plan: Any = None
    cached: bool = False
    extra: dict[str, Any] = field(default_factory=dict)
