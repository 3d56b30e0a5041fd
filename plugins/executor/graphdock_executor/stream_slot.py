"""Lane: a queue of a device that steps take turns on, one at a time."""

from __future__ import annotations

import itertools
import os
import weakref
from collections.abc import Iterable, Mapping
from typing import Protocol

from graphdock.contracts.queue import Event, Queue, QueuedDevice
from graphdock.contracts.runtime.device_error import asking
from graphdock.errors import FailedPreconditionError
from graphdock.locks import new_lock

from graphdock_executor.fences import Ticket

__all__ = ["Departed", "Lane", "fence", "shared_lane", "unshare"]

_numbers = itertools.count()
_lock = new_lock()


class Departed(Protocol):
    """A step that ended before its fence."""

    def fence(self, lane: Lane) -> None:
        """Wait for its work on a lane, which the caller holds; its errors are kept for its session. Raises interrupts, and in
        a forked child FailedPreconditionError."""


class Lane:
    """A queue, for one step at a time. Its holder calls its methods, but ``learn``.

    Attributes:
      count: tickets so far. ``done``: the last of them that the host knows to have passed.
      seen: another lane -> number of its last ticket that this queue's work comes after.
      flight: the step that ended before its fence here, if there is one.
    """

    __slots__ = ("__weakref__", "count", "device", "done", "flight", "instances", "number", "queue", "seen")

    def __init__(self, device: QueuedDevice) -> None:
        if device.forked:
            raise _left_behind(device)
        _lanes.add(self)
        self.device = device
        self.queue: Queue = device.new_queue()
        self.number = next(_numbers)
        self.instances = 0
        self.count = self.done = 0
        self.seen: dict[Lane, int] = {}
        self.flight: Departed | None = None

    def ticket(self, event: Event) -> Ticket:
        """The ticket of all that was queued so far, whose ``event`` is recorded now."""
        with asking(self.device, "record"):
            self.queue.record(event)
        self.count += 1
        return Ticket(self, event, self.count, dict(self.seen))

    def follow(self, tickets: Iterable[Ticket]) -> None:
        """What is queued from now on comes after these tickets, of any lanes."""
        # a later ticket may come after an earlier one, never the other way round
        for ticket in sorted(tickets, key=lambda ticket: -ticket.stamp):
            other = ticket.lane
            if other is self or self.seen.get(other, 0) >= ticket.number or ticket.passed():
                continue
            self._wait(ticket)
            for known, number in (*ticket.known.items(), (other, ticket.number)):
                self.seen[known] = max(self.seen.get(known, 0), number)

    def _wait(self, ticket: Ticket) -> None:
        with asking(self.device, f"wait for {ticket.lane}"):
            self.queue.wait(ticket.event)

    def learn(self, number: int, known: Mapping[Lane, int]) -> None:
        """The host knows that a ticket has passed, and so what it comes after. From any thread."""
        for lane, count in ((self, number), *known.items()):
            lane.done = max(lane.done, count)

    def fence(self) -> None:
        """Wait for the queue; see :func:`fence`."""
        try:
            fence(self.queue)
        except Exception:  # what has failed is done too
            self.learn(self.count, self.seen)
            raise
        self.learn(self.count, self.seen)

    def __str__(self) -> str:
        return f"lane {self.number} of {self.device.info.device_type}:{self.device.info.index}"


def shared_lane(device: QueuedDevice, wanted: int) -> Lane:
    """The lane of the device that no step is in flight on, and that fewest instances are bound to.

    Another one is made while there are fewer than the device wants, or than are ``wanted``.
    """
    with _lock:
        lanes: list[Lane] = device._turns
        idle = min(lanes, key=lambda lane: (lane.flight is not None, lane.instances), default=None)
        if idle is None or (idle.instances and len(lanes) < max(device.lanes, wanted)):
            idle = Lane(device)
            lanes.append(idle)
        idle.instances += 1
        return idle


def unshare(lanes: Iterable[Lane]) -> None:
    """An instance that shared these lanes is gone."""
    with _lock:
        for lane in lanes:
            lane.instances -= 1


class _Parent:
    """Flight of lanes in a forked child: whatever other threads of its parent had begun."""

    def fence(self, lane: Lane) -> None:
        raise _left_behind(lane.device)


_lanes: weakref.WeakSet[Lane] = weakref.WeakSet()


def _left_behind(device: QueuedDevice) -> FailedPreconditionError:
    return FailedPreconditionError(
        f"{device!r} was opened before this process was forked, and stays in the process that opened it",
        hint="make a session in the child, or start it with multiprocessing's method 'spawn'",
    )


def _in_child() -> None:
    for lane in list(_lanes):
        lane.flight = _Parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def fence(queue: Queue) -> None:
    """Wait for a queue; an error of its work is one of graphdock's, and blames no statement that merely waited."""
    with asking(queue.device, "run what was queued"):
        queue.synchronize()
