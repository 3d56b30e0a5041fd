"""Fences of stream slots, and what the steps of one instance leave of them with the resources that they touch."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from graphdock.contracts.device import Device
from graphdock.contracts.queue import Event
from graphdock.contracts.runtime.access_history import Tickets
from graphdock.contracts.runtime.device_error import asking
from graphdock.contracts.runtime.resources import Resource

if TYPE_CHECKING:
    from graphdock_executor.stream_slot import Lane

__all__ = ["Accesses", "Ticket"]

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
        """What the step is about to do comes after what is in flight. Its locks on the resources hold.

        Raises what :meth:`Lane.follow` and :meth:`Tickets.wait_host` raise.
        """
        for tickets, writes in self._of_host:
            tickets.wait_host(writes)
        for lane, touched in self._of_lane.items():
            needed: set[Any] = set()
            for tickets, writes in touched:
                if tickets.writes or tickets.reads:
                    needed.update(tickets.before(writes))
            if needed:
                lane.follow(needed)

    def leave(self, made: Mapping[Lane, Ticket]) -> None:
        """All that the step does is queued, before these tickets. It still holds its locks."""
        for (writing, reading), touched in self._left.items():
            writes, reads = tuple([made[lane] for lane in writing]), {lane: made[lane] for lane in reading}
            for tickets in touched:
                tickets.add(writes, reads)
