"""Tickets: which work on queues may still read or write what outlives the step that queued it.

Where steps overlap on a device, a step gives up its claim on a variable once all its work is queued. The variable keeps the ticket
of the last write, and of the last read of each lane. A later access comes after them: a read after the write, a write after all. On
another lane its queue waits for them, on the host the host does, and on their own lane nothing need be done.

Threads: tickets are looked at and changed under a claim on their resource. Steps that read at once touch different ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from graphdock.contracts.queue import Event
from graphdock.runtime.device_error import asking

if TYPE_CHECKING:
    from graphdock.runtime.lane import Lane

__all__ = ["Ticket", "Tickets"]

_stamps = itertools.count(1)


class Ticket:
    """The point of a lane's queue behind all that one step gave it. Immutable.

    Attributes:
      number: among the tickets of its lane, from 1. ``stamp``: among all.
      known: number of another lane -> number of its last ticket that this one comes after.
    """

    __slots__ = ("event", "known", "lane", "number", "stamp")

    def __init__(self, lane: Lane, event: Event, number: int, known: Mapping[int, int]) -> None:
        self.lane = lane
        self.event = event
        self.number = number
        self.known = known
        self.stamp = next(_stamps)

    @property
    def over(self) -> bool:
        """Whether the host knows already that the work is done."""
        return self.number <= self.lane.done

    def passed(self) -> bool:
        """Whether the work is done. Raises DeviceLostError on a lost device."""
        if self.over:
            return True
        with asking(self.lane.device, "passed"):
            if not self.lane.device.passed(self.event):
                return False
        self.lane.learn(self.number)
        return True

    def wait_host(self) -> None:
        """Wait until the work is done. Raises DeviceLostError on a lost device."""
        if not self.over:
            with asking(self.lane.device, "wait_host"):
                self.lane.device.wait_host(self.event)
            self.lane.learn(self.number)


class Tickets:
    """The tickets of one resource.

    Attributes:
      writes: of the last step that wrote it, one per lane that did.
      reads: lane -> the ticket of the last step that has read it there since.
    """

    __slots__ = ("reads", "writes")

    def __init__(self) -> None:
        self.writes: tuple[Ticket, ...] = ()
        self.reads: dict[Lane, Ticket] = {}

    def before(self, writes: bool) -> list[Ticket]:
        """What an access comes after, as far as the host does not know that it is done; the writes that are done are dropped."""
        if self.writes:
            self.writes = tuple([t for t in self.writes if not t.over])
        if not writes:
            return list(self.writes)
        return [*self.writes, *[t for t in self.reads.values() if not t.over]]

    def read(self, by: Iterable[Ticket]) -> None:
        """A step that reads is queued."""
        for ticket in by:
            self.reads[ticket.lane] = ticket

    def written(self, by: Iterable[Ticket], read_by: Iterable[Ticket]) -> None:
        """A step that writes is queued, behind all that was here; some of its lanes only read."""
        self.writes = tuple(by)
        self.reads = {ticket.lane: ticket for ticket in read_by}

    def wait_host(self, writes: bool) -> None:
        """The host waits for what an access comes after. Raises DeviceLostError on a lost device."""
        for ticket in self.before(writes):
            ticket.wait_host()
