"""Tickets: which work on queues may still read or write what outlives the step that queued it.

Where steps overlap on a device, a step gives up its claim on a variable once all its work is queued. The variable keeps the ticket
of the last write, and of the last read of each lane. A later access comes after them: a read after the write, a write after all. On
another lane its queue waits for them, on the host the host does, and on their own lane nothing need be done.

Threads: tickets are looked at and changed under a claim on their resource. Steps that read at once touch different ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from graphdock.contracts.queue import Event
from graphdock.contracts.runtime.device_error import asking

if TYPE_CHECKING:
    from graphdock_executor.stream_slot import Lane

    from graphdock.contracts.device import Device
    from graphdock.contracts.runtime.resources import Resource

__all__ = ["Accesses", "Ticket", "Tickets"]

_stamps = itertools.count(1)


class Ticket:
    """The point of a lane's queue behind all that one step gave it. Immutable.

    Attributes:
      number: among the tickets of its lane, from 1. ``stamp``: among all.
      known: another lane -> number of its last ticket that this one comes after.
    """

    __slots__ = ("event", "known", "lane", "number", "stamp")

    def __init__(self, lane: Lane, event: Event, number: int, known: Mapping[Lane, int]) -> None:
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
        self.lane.learn(self.number, self.known)
        return True

    def wait_host(self) -> None:
        """Wait until the work is done. Raises DeviceLostError on a lost device."""
        if not self.over:
            with asking(self.lane.device, "wait_host"):
                self.lane.device.wait_host(self.event)
            self.lane.learn(self.number, self.known)


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

    def before(self, writes: bool) -> Sequence[Ticket]:
        """What an access comes after, as far as the host does not know that it is done; the writes that are done are dropped."""
        if self.writes:
            self.writes = tuple([t for t in self.writes if not t.over])
        if not (writes and self.reads):
            return self.writes
        return [*self.writes, *[t for t in self.reads.values() if not t.over]]

    def add(self, writes: tuple[Ticket, ...], reads: Mapping[Lane, Ticket]) -> None:
        """A step is queued, which came after what was here.

        Args:
          writes: of its lanes that write. reads: of those that only read.
        """
        if writes:
            self.writes = writes
            self.reads = dict(reads)
        else:
            self.reads.update(reads)

    def wait_host(self, writes: bool) -> None:
        """The host waits for what an access comes after. Raises DeviceLostError on a lost device."""
        for ticket in self.before(writes):
            ticket.wait_host()


class Accesses:
    """What the steps of one instance do to resources, and on which lanes. Immutable.

    Args:
      touches: resource -> the devices whose queues touch it (None: the host does, at once), and whether they write it.
      lanes: device -> the instance's lane of it.
    """

    def __init__(self, touches: Mapping[Resource, Mapping[Device | None, bool]], lanes: Mapping[Device, Lane]) -> None:
        self._of_host: list[tuple[Tickets, bool]] = []
        self._of_lane: dict[Lane, list[tuple[Tickets, bool]]] = {}
        #: lanes that write, and that only read -> the resources of which that is so
        self._left: dict[tuple[tuple[Lane, ...], tuple[Lane, ...]], list[Tickets]] = {}
        for resource, devices in touches.items():
            tickets = resource.tickets
            for device, writes in devices.items():
                of = self._of_host if device is None else self._of_lane.setdefault(lanes[device], [])
                of.append((tickets, writes))
            queues = [(lanes[d], writes) for d, writes in devices.items() if d is not None]
            key = tuple([lane for lane, writes in queues if writes]), tuple([l for l, writes in queues if not writes])
            self._left.setdefault(key, []).append(tickets)

    def follow(self) -> None:
        """What the step is about to do comes after what is in flight. Its claim on the resources holds.

        Raises what :meth:`Lane.follow` and :meth:`Tickets.wait_host` raise.
        """
        for tickets, writes in self._of_host:
            tickets.wait_host(writes)
        for lane, touched in self._of_lane.items():
            needed: set[Ticket] = set()
            for tickets, writes in touched:
                if tickets.writes or tickets.reads:
                    needed.update(tickets.before(writes))
            if needed:
                lane.follow(needed)

    def leave(self, made: Mapping[Lane, Ticket]) -> None:
        """All that the step does is queued, before these tickets. Its claim still holds."""
        for (writing, reading), touched in self._left.items():
            writes, reads = tuple([made[lane] for lane in writing]), {lane: made[lane] for lane in reading}
            for tickets in touched:
                tickets.add(writes, reads)
