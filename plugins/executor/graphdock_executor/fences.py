"""Fences of stream slots, and what the steps of one instance leave of them with the resources that they touch."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from graphdock.contracts.device import Device
from graphdock.contracts.queue import Event
from graphdock.contracts.runtime.access_history import AccessHistory
from graphdock.contracts.runtime.resources import Resource

from graphdock_executor.device_error import asking

if TYPE_CHECKING:
    from graphdock_executor.stream_slot import StreamSlot

__all__ = ["Accesses", "StreamFence"]

_stamps = itertools.count(1)


class StreamFence:
    """The point of a stream slot's queue behind all that one step gave it. Immutable.

    Attributes:
      number: among the fences of its stream slot, from 1. ``stamp``: among all.
      known: another stream slot -> number of its last fence that this one comes after.
    """

    __slots__ = ("event", "known", "stream_slot", "number", "stamp")

    def __init__(self, stream_slot: StreamSlot, event: Event, number: int, known: Mapping[StreamSlot, int]) -> None:
        self.stream_slot = stream_slot
        self.event = event
        self.number = number
        self.known = known
        self.stamp = next(_stamps)

    @property
    def over(self) -> bool:
        """Whether the host knows already that the work is done."""
        return self.number <= self.stream_slot.done

    def passed(self) -> bool:
        """Whether the work is done. Raises DeviceLostError on a lost device."""
        if self.over:
            return True
        with asking(self.stream_slot.device, "passed"):
            if not self.stream_slot.device.passed(self.event):
                return False
        self.stream_slot.learn(self.number, self.known)
        return True

    def wait_host(self) -> None:
        """Wait until the work is done. Raises DeviceLostError on a lost device."""
        if not self.over:
            with asking(self.stream_slot.device, "wait_host"):
                self.stream_slot.device.wait_host(self.event)
            self.stream_slot.learn(self.number, self.known)


class Accesses:
    """Accesses of the steps of one instance to resources, and on which stream slots. Immutable.

    Args:
      touches: resource -> the devices whose queues touch it (None: the host does, at once), and whether they write it.
      stream_slots: device -> the instance's stream slot of it.
    """

    def __init__(
        self, touches: Mapping[Resource, Mapping[Device | None, bool]], stream_slots: Mapping[Device, StreamSlot]
    ) -> None:
        self._of_host: list[tuple[AccessHistory, bool]] = []
        self._of_slot: dict[StreamSlot, list[tuple[AccessHistory, bool]]] = {}
        #: stream slots that write, and that only read -> the resources of which that is so
        self._touched: dict[tuple[tuple[StreamSlot, ...], tuple[StreamSlot, ...]], list[AccessHistory]] = {}
        for resource, devices in touches.items():
            history = resource.access_history
            for device, writes in devices.items():
                of = self._of_host if device is None else self._of_slot.setdefault(stream_slots[device], [])
                of.append((history, writes))
            queues = [(stream_slots[d], writes) for d, writes in devices.items() if d is not None]
            key = tuple([s for s, writes in queues if writes]), tuple([s for s, writes in queues if not writes])
            self._touched.setdefault(key, []).append(history)

    def follow(self) -> None:
        """Order what the step is about to do after what is in flight. Its locks on the resources hold.

        Raises what :meth:`StreamSlot.follow` and :meth:`AccessHistory.wait_host` raise.
        """
        for history, writes in self._of_host:
            history.wait_host(writes)
        for stream_slot, touched in self._of_slot.items():
            needed: set[Any] = set()
            for history, writes in touched:
                if history.writes or history.reads:
                    needed.update(history.before(writes))
            if needed:
                stream_slot.follow(needed)

    def record(self, made: Mapping[StreamSlot, StreamFence]) -> None:
        """All that the step does is queued, before these fences. It still holds its locks."""
        for (writing, reading), touched in self._touched.items():
            writes, reads = tuple([made[slot] for slot in writing]), {slot: made[slot] for slot in reading}
            for history in touched:
                history.add(writes, reads)
