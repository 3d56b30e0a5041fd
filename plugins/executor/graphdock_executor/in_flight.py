"""Flights: the steps of a session that ended before their work, and what became of it.

A step takes off when all that it does is queued (:meth:`Flight.depart`): its lanes remember the flight, and its context, with the
buffers and the staging memory that the work uses, stays with it. It has landed when somebody has fenced its lanes: the session that
needs room or wants to know, or whichever step takes one of the lanes next. Then its context is idle again, and what went wrong
waits for the session to raise it.

Interrupts: a flight is known to its session by one dict assignment. Before it, the step fences its own work and its context is its
caller's; after it, both are the flight's. Landing may be interrupted anywhere and begun again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from graphdock.contracts.in_flight import InFlightStep, InFlightSteps
from graphdock.contracts.runtime.device_error import device_error
from graphdock.contracts.runtime.resource_lock import Limit, LockRequest, with_locks
from graphdock.contracts.step import StepContext
from graphdock.errors import DeviceLostError, GraphdockError, format_error

from graphdock_executor.stream_slot import Lane
from graphdock_executor.stream_slots import SLOTS_LOCK, Lanes

__all__ = ["QueuedStep"]

_LOCKS = (SLOTS_LOCK,)


class QueuedStep(InFlightStep):
    """One step that may end before its work.

    Args:
      flights: of its session.
      step: its context. ``name``: of the step, for messages.
      give_back: called with a list of the context once its work is done; it takes the context out of it.
      unfinished: device -> a note on what the step gave it.

    Attributes:
      number: the step's. ``landed``: its work is done. ``raised``: so was its error, to the user.
    """

    __slots__ = (
        "_errors",
        "_flights",
        "_give_back",
        "_held",
        "_left",
        "_name",
        "_unfinished",
        "landed",
        "lanes",
        "number",
        "raised",
        "step",
    )

    def __init__(
        self,
        flights: InFlightSteps,
        step: StepContext,
        name: Callable[[], str],
        give_back: Callable[[list[Any]], None],
        unfinished: Callable[[str], str],
    ) -> None:
        self._flights = flights
        self._give_back = give_back
        self._held = [step]
        self._unfinished = unfinished
        self._errors: list[GraphdockError] = []
        self._left: set[Lane] = set()
        self._name = name
        self.step = step
        self.number = step.id
        self.lanes: Lanes | None = None
        self.landed = self.raised = False

    @property
    def departed(self) -> bool:
        """Whether the context belongs to the flight."""
        return self in self._flights.flying or self.landed

    @property
    def label(self) -> str:
        """Names the step in messages."""
        return f"step {self.number}, {self._name()}"

    def depart(self, lanes: Lanes) -> None:
        """All work is queued, and its tickets stand. The step holds the lanes."""
        self.lanes = lanes
        self._left = set(lanes)
        for lane in lanes:
            lane.flight = self
        self._flights.flying[self] = None

    def passed(self) -> bool:
        """Whether its work is done, or lost with its device; never waits."""
        assert self.lanes is not None
        try:
            return all(ticket.passed() for ticket in self.lanes.tickets)
        except GraphdockError:  # the fence says the same
            return True

    def land(self, limit: Limit | None = None) -> None:
        """Wait until its work is done. What :meth:`ResourceLock.wait` raises passes through; its own errors don't."""
        if self in self._flights.flying:
            assert self.lanes is not None
            with_locks(_LOCKS, LockRequest(self.lanes.holder.lock_set), limit, self._land)

    def _land(self) -> None:
        assert self.lanes is not None
        for lane in self.lanes:
            if lane.flight is self:
                self.fence(lane)
        self._finish()  # again, where that was interrupted

    def fence(self, lane: Lane) -> None:
        """Wait for its work on a lane, which the caller holds; what went wrong is kept. Raises interrupts only."""
        before = sys.exception()
        try:
            try:
                lane.fence()
            except Exception as error:  # noqa: BLE001 - raised to the session, whoever fences
                self._note(error, lane)
        except BaseException as interrupt:
            late = interrupt.__context__
            if isinstance(late, Exception) and late is not before:
                self._note(late, lane)  # the interrupt came before it was noted
            raise
        self._left.discard(lane)
        lane.flight = None
        if not self._left:
            self._finish()  # what an interrupt keeps from here, landing finds again

    def _note(self, error: Exception, lane: Lane) -> None:
        if isinstance(error, GraphdockError):
            noted = error
        else:  # as the driver raised it
            noted = device_error(error, lane.device, "run what was queued")
            noted.__cause__ = error
        if noted not in self._errors:
            self._errors.append(noted)

    def _finish(self) -> None:
        """All lanes are fenced. May be called again, and by two threads at once."""
        flights = self._flights
        if self not in flights.flying:
            return
        if self._errors and not self.raised:
            flights.failed[self] = self._explained()
        self.landed = True
        if self._held:
            self.step.departs = None
            self._give_back(self._held)
        flights.flying.pop(self, None)

    def _explained(self) -> GraphdockError:
        error = self._errors[0]
        if error.step is None:
            error.step = self.label
            for other in self._errors[1:]:
                error.add_note(f"besides, {format_error(other)}")
            if isinstance(error, DeviceLostError):
                error.add_note(self._unfinished(error.device))
        return error
