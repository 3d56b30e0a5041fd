"""In-flight steps: the steps of a session that ended before their work, and what became of it.

A step is submitted when all that it does is queued (:meth:`QueuedStep.submit`): its stream slots remember it, and its context, with
the buffers and the staging memory that the work uses, stays with it. It is complete when somebody has waited for its stream slots:
the session that needs room or wants to know, or whichever step takes one of them next. Then its context is idle again, and what
went wrong waits for the session to raise it.

Interrupts: a submitted step is known to its session by one dict assignment. Before it, whoever runs the step waits for its work and
has its context; after it, the submitted step does. Completing it may be interrupted anywhere and begun again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from graphdock.contracts.in_flight import InFlightStep, InFlightSteps
from graphdock.contracts.runtime.resource_lock import Limit, LockRequest, with_locks
from graphdock.contracts.step import StepContext
from graphdock.errors import DeviceLostError, GraphdockError, format_error

from graphdock_executor.device_error import device_error
from graphdock_executor.stream_slot import StreamSlot
from graphdock_executor.stream_slots import SLOTS_LOCK, StreamSlots

__all__ = ["QueuedStep"]

_LOCKS = (SLOTS_LOCK,)


class QueuedStep(InFlightStep):
    """One step that may end before its work.

    Args:
      in_flight: the steps of its session.
      step: its context. ``name``: of the step, for messages.
      give_back: called with a list of the context once its work is done; it takes the context out of it.
      unfinished: device -> a note on what the step gave it.

    Attributes:
      number: the step's. ``completed``: its work is done. ``raised``: so was its error, to the user.
    """

    __slots__ = (
        "_errors",
        "_in_flight",
        "_give_back",
        "_held",
        "_left",
        "_name",
        "_unfinished",
        "completed",
        "stream_slots",
        "number",
        "raised",
        "step",
    )

    def __init__(
        self,
        in_flight: InFlightSteps,
        step: StepContext,
        name: Callable[[], str],
        give_back: Callable[[list[Any]], None],
        unfinished: Callable[[str], str],
    ) -> None:
        self._in_flight = in_flight
        self._give_back = give_back
        self._held = [step]
        self._unfinished = unfinished
        self._errors: list[GraphdockError] = []
        self._left: set[StreamSlot] = set()
        self._name = name
        self.step = step
        self.number = step.id
        self.stream_slots: StreamSlots | None = None
        self.completed = self.raised = False

    @property
    def submitted(self) -> bool:
        """Return whether the context belongs to it."""
        return self in self._in_flight.pending or self.completed

    @property
    def label(self) -> str:
        """Names the step in messages."""
        return f"step {self.number}, {self._name()}"

    def submit(self, stream_slots: StreamSlots) -> None:
        """All work is queued, and its fences are recorded. The step holds the stream slots."""
        self.stream_slots = stream_slots
        self._left = set(stream_slots)
        for stream_slot in stream_slots:
            stream_slot.in_flight = self
        self._in_flight.pending[self] = None

    def passed(self) -> bool:
        """Return whether its work is done, or lost with its device; never waits."""
        assert self.stream_slots is not None
        try:
            return all(fence.passed() for fence in self.stream_slots.fences)
        except GraphdockError:  # the fence says the same
            return True

    def complete(self, limit: Limit | None = None) -> None:
        """Wait until its work is done. What :meth:`ResourceLock.wait` raises passes through; its own errors don't."""
        if self in self._in_flight.pending:
            assert self.stream_slots is not None
            with_locks(_LOCKS, LockRequest(self.stream_slots.holder.lock_set), limit, self._complete)

    def _complete(self) -> None:
        assert self.stream_slots is not None
        for stream_slot in self.stream_slots:
            if stream_slot.in_flight is self:
                self.synchronize(stream_slot)
        self._finish()  # again, where that was interrupted

    def synchronize(self, stream_slot: StreamSlot) -> None:
        """Wait for its work on a stream slot, which the caller holds; what went wrong is kept. Raises interrupts only."""
        before = sys.exception()
        try:
            try:
                stream_slot.synchronize()
            except Exception as error:  # noqa: BLE001 - raised to the session, whoever waits
                self._note(error, stream_slot)
        except BaseException as interrupt:
            late = interrupt.__context__
            if isinstance(late, Exception) and late is not before:
                self._note(late, stream_slot)  # the interrupt came before it was noted
            raise
        self._left.discard(stream_slot)
        stream_slot.in_flight = None
        if not self._left:
            self._finish()  # what an interrupt keeps from here, `complete` finds again

    def _note(self, error: Exception, stream_slot: StreamSlot) -> None:
        if isinstance(error, GraphdockError):
            noted = error
        else:  # as the driver raised it
            noted = device_error(error, stream_slot.device, "run what was queued")
            noted.__cause__ = error
        if noted not in self._errors:
            self._errors.append(noted)

    def _finish(self) -> None:
        """The host has waited for all stream slots. May be called again, and by two threads at once."""
        in_flight = self._in_flight
        if self not in in_flight.pending:
            return
        if self._errors and not self.raised:
            in_flight.failed[self] = self._explained()
        self.completed = True
        if self._held:
            self.step.on_submit = None
            self._give_back(self._held)
        in_flight.pending.pop(self, None)

    def _explained(self) -> GraphdockError:
        error = self._errors[0]
        if error.step is None:
            error.step = self.label
            for other in self._errors[1:]:
                error.add_note(f"besides, {format_error(other)}")
            if isinstance(error, DeviceLostError):
                error.add_note(self._unfinished(error.device))
        return error
