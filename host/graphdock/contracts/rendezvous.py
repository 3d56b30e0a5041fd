"""The rendezvous: where executors that run parts of one step exchange tensors.

A send never blocks. A receive never holds a thread: the receiver leaves a continuation, which runs on the sender's thread, or at
once when the value is there. Each step's token aborts its rendezvous: that poisons the step and wakes everything that waits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["Rendezvous", "RendezvousKey"]


class RendezvousKey(NamedTuple):
    """Names one tensor on its way.

    Attributes:
      source_incarnation, destination_incarnation: numbers that the two devices took when their processes started: what a process
        that died has sent, or was to receive, is never taken for its successor's.
      frame: tells iterations of a loop apart (empty outside of loops).
    """

    session: str
    step: int
    source: str
    source_incarnation: int
    destination: str
    destination_incarnation: int
    edge: str
    frame: str = ""


class Rendezvous(ABC):
    """One per step. All methods may be called from any thread."""

    @abstractmethod
    def send(self, key: RendezvousKey, value: Any) -> None:
        """Publish a value, once per key.

        Raises:
          AlreadyExistsError: the key was sent before. Or the error the step was aborted with.
        """

    @abstractmethod
    def receive(self, key: RendezvousKey, done: Callable[[Any, BaseException | None], None]) -> None:
        """Call ``done(value, None)`` when the value is there, or ``done(None, error)`` when the step is aborted."""

    @abstractmethod
    def abort(self, error: BaseException) -> None:
        """Poison the step: every waiting and every later receive gets ``error``; the first error stays."""
