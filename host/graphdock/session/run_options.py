"""Options of one step and what a step reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graphdock.contracts.step import TraceEvent
from graphdock.errors import InvalidArgumentError

__all__ = ["RunMetadata", "RunOptions"]


@dataclass(frozen=True)
class RunOptions:
    """Options of one ``Session.run``.

    Args:
      timeout_in_ms: milliseconds the step may take; 0 leaves the session's ``operation_timeout``.

    Raises:
      InvalidArgumentError: a timeout that is no whole number, or negative.
    """

    timeout_in_ms: int = 0

    def __post_init__(self) -> None:
        given = self.timeout_in_ms
        if not isinstance(given, int) or isinstance(given, bool) or given < 0:
            raise InvalidArgumentError(
                "RunOptions: timeout_in_ms is wrong", expected="milliseconds, 0 or more", got=repr(given)
            )

    def seconds(self, default: float | None) -> float | None:
        """Seconds the step may take; None for no limit."""
        return self.timeout_in_ms / 1e3 if self.timeout_in_ms else default


@dataclass
class RunMetadata:
    """Filled in by ``Session.run(..., run_metadata=...)``.

    Attributes:
      plan: the plan that ran (its ``source``, ``arena_bytes`` and ``kernel_nodes`` may be read).
      cached: whether the plan was there already.
      events: what the parts of the step reported, in order of arrival.
    """

    plan: Any = None
    cached: bool = False
    events: tuple[TraceEvent, ...] = ()
