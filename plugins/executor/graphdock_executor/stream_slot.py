"""Stream slot: a queue of a device that steps take turns on, one at a time; with its fences, and what the steps of one instance
leave of them with the resources that they touch.
"""

from __future__ import annotations

import itertools
import os
import weakref
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from graphdock.contracts.device import Device
from graphdock.contracts.queue import Event, Queue, QueuedDevice, queue_of
from graphdock.contracts.runtime.resources import AccessHistory, Resource
from graphdock.errors import FailedPreconditionError
from graphdock.locks import new_lock

from graphdock_executor.device_error import asking

__all__ = ["Accesses", "StreamFence", "StreamSlot", "SubmittedStep", "shared_stream_slot", "synchronize", "unshare"]


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
        """Return whether the host knows already that the work is done."""
        return self.number <= self.stream_slot.done

    def passed(self) -> bool:
        """Return whether the work is done. Raises DeviceLostError on a lost device."""
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


_numbers = itertools.count()
_lock = new_lock()


class SubmittedStep(Protocol):
    """A step that ended before its fence."""

    def synchronize(self, stream_slot: StreamSlot) -> None:
        """Wait for its work on a stream slot, which the caller holds; its errors are kept for its session.

        Raises interrupts, and in a forked child FailedPreconditionError.
        """


class StreamSlot:
    """A queue, for one step at a time. Its holder calls its methods, but ``learn``.

    Attributes:
      count: fences so far. ``done``: the last of them that the host knows to have passed.
      seen: another stream slot -> number of its last fence that this queue's work comes after.
      in_flight: the step that ended before its fence here, if there is one.
    """

    __slots__ = ("__weakref__", "count", "device", "done", "in_flight", "instances", "number", "queue", "seen")

    def __init__(self, device: QueuedDevice) -> None:
        if device.forked:
            raise _left_behind(device)
        _stream_slots.add(self)
        self.device = device
        self.queue: Queue = queue_of(device)
        self.number = next(_numbers)
        self.instances = 0
        self.count = self.done = 0
        self.seen: dict[StreamSlot, int] = {}
        self.in_flight: SubmittedStep | None = None

    def record(self, event: Event) -> StreamFence:
        """The fence of all that was queued so far, whose ``event`` is recorded now."""
        with asking(self.device, "record"):
            self.queue.record(event)
        self.count += 1
        return StreamFence(self, event, self.count, dict(self.seen))

    def follow(self, fences: Iterable[StreamFence]) -> None:
        """Order what is queued from now on after these fences, of any stream slots."""
        # a later fence may come after an earlier one, never the other way round
        for fence in sorted(fences, key=lambda fence: -fence.stamp):
            other = fence.stream_slot
            if other is self or self.seen.get(other, 0) >= fence.number or fence.passed():
                continue
            self._wait(fence)
            for known, number in (*fence.known.items(), (other, fence.number)):
                self.seen[known] = max(self.seen.get(known, 0), number)

    def _wait(self, fence: StreamFence) -> None:
        with asking(self.device, f"wait for {fence.stream_slot}"):
            self.queue.wait(fence.event)

    def learn(self, number: int, known: Mapping[StreamSlot, int]) -> None:
        """The host knows that a fence has passed, and so what it comes after. From any thread."""
        for stream_slot, count in ((self, number), *known.items()):
            stream_slot.done = max(stream_slot.done, count)

    def synchronize(self) -> None:
        """Wait for the queue; see :func:`synchronize`."""
        try:
            synchronize(self.queue)
        except Exception:  # what has failed is done too
            self.learn(self.count, self.seen)
            raise
        self.learn(self.count, self.seen)

    def __str__(self) -> str:
        return f"stream slot {self.number} of {self.device.info.device_type}:{self.device.info.index}"


def shared_stream_slot(device: QueuedDevice, wanted: int) -> StreamSlot:
    """The stream slot of the device that no step is in flight on, and that fewest instances are bound to.

    Another one is made while there are fewer than the device wants, or than are ``wanted``.
    """
    with _lock:
        stream_slots: list[StreamSlot] = device._slots
        idle = min(stream_slots, key=lambda slot: (slot.in_flight is not None, slot.instances), default=None)
        if idle is None or (idle.instances and len(stream_slots) < max(device.stream_slots, wanted)):
            idle = StreamSlot(device)
            stream_slots.append(idle)
        idle.instances += 1
        return idle


def unshare(stream_slots: Iterable[StreamSlot]) -> None:
    """An instance that shared these stream slots is gone."""
    with _lock:
        for stream_slot in stream_slots:
            stream_slot.instances -= 1


class _StepOfParent:
    """The step in flight on stream slots of a forked child: whatever other threads of its parent had begun."""

    def synchronize(self, stream_slot: StreamSlot) -> None:
        raise _left_behind(stream_slot.device)


_stream_slots: weakref.WeakSet[StreamSlot] = weakref.WeakSet()


def _left_behind(device: QueuedDevice) -> FailedPreconditionError:
    return FailedPreconditionError(
        f"{device!r} was opened before this process was forked, and stays in the process that opened it",
        hint="make a session in the child, or start it with multiprocessing's method 'spawn'",
    )


def _in_child() -> None:
    for stream_slot in list(_stream_slots):
        stream_slot.in_flight = _StepOfParent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def synchronize(queue: Queue) -> None:
    """Wait for a queue; an error of its work is one of graphdock's, and blames no statement that merely waited."""
    with asking(queue.device, "run what was queued"):
        queue.synchronize()
