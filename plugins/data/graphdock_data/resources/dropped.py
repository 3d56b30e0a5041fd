"""Gradients that came too late: counted, and logged now and then."""

from __future__ import annotations

import logging

from graphdock.locks import new_lock

__all__ = ["DROPPED"]

_log = logging.getLogger("graphdock")


class DroppedGradients:
    """Counts gradients that accumulators of this process dropped, and logs their number each time it has doubled.

    Any thread may call it.
    """

    def __init__(self) -> None:
        self._lock = new_lock()
        self._count = 0
        self._next = 1

    @property
    def count(self) -> int:
        """Number of those that there were."""
        return self._count

    def note(self, name: str, step: int, now: int) -> None:
        """Count one: of the accumulator ``name``, of ``step``, where the accumulator was at ``now``."""
        with self._lock:
            self._count += 1
            count, is_told = self._count, self._count == self._next
            if is_told:
                self._next *= 2
        if is_told:
            _log.warning(
                "Gradients that came too late, and were dropped, so far: %d. The last was of step %d, for %r, which was at %d.",
                count,
                step,
                name,
                now,
            )


#: The process's one.
DROPPED = DroppedGradients()
