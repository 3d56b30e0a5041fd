"""In-flight steps: those that ended before their work, and what became of it. A session keeps account of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod

from graphdock.contracts.runtime.resource_lock import Limit
from graphdock.errors import GraphdockError, format_error

__all__ = ["InFlightStep", "InFlightSteps"]


class InFlightStep(ABC):
    """One step that may end before its work; of the program that runs it (:meth:`graphdock.contracts.Program.in_flight`).

    Attributes:
      raised: its error was raised to the user.
    """

    raised: bool = False

    @property
    @abstractmethod
    def submitted(self) -> bool:
        """Return whether the step ended before its work: its context is given back once that is done, not when ``run`` returns."""

    @abstractmethod
    def passed(self) -> bool:
        """Return whether its work is done, or lost with its device; never waits."""

    @abstractmethod
    def complete(self, limit: Limit | None = None) -> None:
        """Wait until its work is done, take it off the account, and note its error there. May be called again.

        Raises what waits for locks raise (:mod:`graphdock.contracts.runtime.resource_lock`), never the step's own errors.
        """


class InFlightSteps:
    """The steps of one session that ended before their work, in the order in which they did. From any thread.

    Args:
      most: steps that may be at work at once.

    Attributes:
      pending: those whose work is not known to be done. ``failed``: complete ones whose error was not raised yet -> that error.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.pending: dict[InFlightStep, None] = {}
        self.failed: dict[InFlightStep, GraphdockError] = {}

    def complete(self, keep: int, limit: Limit | None = None) -> None:
        """Wait for the oldest, until no more than ``keep`` are pending. Raises what :meth:`ResourceLock.wait` raises."""
        while len(self.pending) > keep:
            oldest = next(iter(list(self.pending)), None)
            if oldest is not None:
                oldest.complete(limit)

    def complete_passed(self, limit: Limit | None = None) -> None:
        """Let those complete whose work is done, the oldest first."""
        for step in list(self.pending):
            if not step.passed():
                return
            step.complete(limit)

    def check(self) -> None:
        """Raise the error of the oldest step that failed and whose error was not raised yet; once."""
        for step, error in list(self.failed.items()):
            if step.raised:
                self.failed.pop(step, None)
                continue
            try:
                raise error
            except GraphdockError:  # told now, and not before: an interrupt loses nothing
                step.raised = True
                self.failed.pop(step, None)
                raise

    def check_all(self) -> None:
        """As :meth:`check`; what the others met is noted on the first error, because nobody will ask again."""
        errors = [error for step, error in self.failed.items() if not step.raised]
        for other in errors[1:]:
            errors[0].add_note(f"besides, {format_error(other)}")
        self.failed.clear()
        if errors:
            raise errors[0]
