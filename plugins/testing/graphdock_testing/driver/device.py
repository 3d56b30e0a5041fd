"""The fake driver and its devices."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

from graphdock.contracts import Device, DeviceInfo, DType
from graphdock.contracts.queue import Event, Queue, QueuedDevice
from graphdock.errors import FailedPreconditionError, InvalidArgumentError
from graphdock.locks import new_lock

from graphdock_testing.driver.capture import Mark, Recording
from graphdock_testing.driver.detector import Detector
from graphdock_testing.driver.faults import Faults
from graphdock_testing.driver.interrupts import HeldBack
from graphdock_testing.driver.memory import Array, Block, Buffer, Drops, Memory, Storage
from graphdock_testing.driver.queue import DriverEvent, DriverQueue
from graphdock_testing.driver.scheduler import Health, QueuePoint, Scheduler
from graphdock_testing.driver.staging import Pinned, Slots, Staging

__all__ = ["Driver", "DriverDevice"]


class Driver:
    """What the devices of one factory share: the scheduler, staging memory, faults, and what is current on each thread.

    Args:
      seed: of the interleaving.
      laziness: see Scheduler.
    """

    def __init__(self, seed: int = 0, laziness: float | None = None) -> None:
        self.lock = new_lock()
        self.scheduler = Scheduler(seed, laziness)
        self.faults = Faults()
        self.pinned = Pinned()
        self.slots = Slots()
        self.observers: list[Detector] = []
        self._memories: dict[str, Memory] = {}
        self.drops = Drops()
        self._recordings: list[Recording] = []
        self._thread = threading.local()

    @property
    def current(self) -> Any:
        """The queue that is current on this thread; None where there is none."""
        return getattr(self._thread, "current", None)

    @current.setter
    def current(self, queue: Any) -> None:
        self._thread.current = queue

    # -- memory

    def memory(self, space: str, limit: int) -> Memory:
        """The memory space of that name; devices may share it."""
        with self.entered():
            return self._memories.setdefault(space, Memory(space, limit))

    def hold(self, block: Block, nbytes: int, owner: Any) -> Storage:
        """A storage for a block; when the last reference to it goes, the next call of the driver gives the block back."""
        storage = Storage(block, nbytes, owner)
        self.drops.watch(storage, block, nbytes, owner)
        return storage

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Locked, with what was dropped given back; an interrupt waits until it is left."""
        with HeldBack(), self.lock:
            self.settle()
            yield

    def settle(self) -> None:
        """Give back what was dropped. Not while anything is recorded. The driver is locked."""
        if self._recordings:
            return
        while self._settle_one():
            pass

    def _settle_one(self) -> bool:
        drop = self.drops.take()
        if drop is None:
            return False
        if drop.block.life != drop.life:
            return True
        if isinstance(drop.owner, DriverQueue):
            drop.owner.give_back(drop.block, drop.nbytes)
        elif drop.owner is self.pinned:
            self._on_host("drop of staging memory", drop.block)
            drop.block.poison()
            self.pinned.unpin(drop.block)
        else:
            self._on_host("free", drop.block)
            drop.block.poison()
            memory = self._memories[drop.block.space]
            memory.give(drop.block, drop.nbytes, memory.idle)
        return True

    def _on_host(self, what: str, block: Block) -> None:
        for observer in self.observers:
            observer.host(what, (), [block.range_of(block.bytes)])

    def used(self, array: Array, write: bool) -> None:
        """The host reads or writes staging memory."""
        with self.entered():
            block = self.pinned.block(array)
            if block is None:
                return
            touched = [block.range_of(array)]
            for observer in self.observers:
                observer.host("the program", () if write else touched, touched if write else ())

    # -- capture

    @property
    def recording(self) -> Recording | None:
        """What this thread records."""
        found: Recording | None = getattr(self._thread, "recording", None)
        return found

    def begin(self, recording: Recording) -> None:
        """This thread records from here on. The driver is locked."""
        self._recordings.append(recording)
        self._thread.recording = recording

    def end(self, recording: Recording) -> None:
        """It does not any more. The driver is locked."""
        self._recordings.remove(recording)
        self._thread.recording = None

    def refuse_in_capture(self, call: str, recording: Recording | None = None) -> None:
        """Raises FailedPreconditionError when this thread, or ``recording``, records."""
        for found in (self.recording, recording):
            if found is not None and found.open:
                raise found.refuse(call)

    def refused(self, message: str) -> FailedPreconditionError:
        """The error for a call that is wrong; it breaks what this thread records."""
        error = FailedPreconditionError(message)
        if self.recording is not None:
            self.recording.broken = self.recording.broken or error
        return error


class DriverDevice(QueuedDevice):
    """A device of the fake driver.

    Args:
      memory_space: its own when None; devices of one driver may share one.
      peers: it copies from the memory of the driver's other devices. ``fetch_bytes``: see QueuedDevice.

    Attributes:
      launches: kernels that were queued; those of replays are not counted.
      replays: replays that were queued.
      waits: how often the host waited for work.
      health: whether it is lost.
    """

    def __init__(
        self,
        info: DeviceInfo,
        driver: Driver,
        memory_space: str | None = None,
        stream_slots: int = 2,
        memory: int = 0,
        peers: bool = False,
        fetch_bytes: int = 0,
    ) -> None:
        super().__init__(info)
        self.driver = driver
        self.name = f"{info.device_type}:{info.index}"
        self.memory_space = memory_space or self.name
        self.memory = driver.memory(self.memory_space, memory)
        self.stream_slots = stream_slots
        self.peers = peers
        self.fetch_bytes = fetch_bytes
        self.health = Health(self.name)
        self.launches = 0
        self.replays = 0
        self.waits = 0
        self._made = 0
        self._queues: WeakSet[DriverQueue] = WeakSet()

    @property
    def faults(self) -> Faults:
        """The driver's."""
        return self.driver.faults

    @property
    def pending(self) -> int:
        """How much work of this device will run; none when it is lost."""
        return self.driver.scheduler.pending_of(self.health)

    @property
    def in_use(self) -> int:
        """Bytes of its memory space that were allocated and not given back."""
        with self.driver.entered():
            return self.memory.in_use

    def observers(self) -> list[Detector]:
        """Race detectors that are told of every access of the driver."""
        return self.driver.observers

    def lose(self, reason: str = "an illegal address") -> None:
        """The device stops working, for good. Nothing is raised here: the next call notices."""
        self.health.lose(reason)

    # -- memory

    def allocate(self, nbytes: int, align: int = 64) -> Storage:
        with self.driver.entered():
            self.driver.refuse_in_capture("allocate")
            self.health.check()
            if self.faults.call("allocate", f"{nbytes} bytes of {self.name}") == "lose":
                self.lose("allocate broke it")
                self.health.check()
            block = self.memory.take(nbytes, max(align, self.alignment), self.memory.idle)
            block.poison()
            return self.driver.hold(block, nbytes, None)

    def view(self, storage: Storage, offset: int, dtype: DType, shape: Sequence[int]) -> Buffer:
        return self.memory.view(storage, offset, dtype, shape)

    def reaches(self, other: Device) -> bool:
        return self.peers and isinstance(other, DriverDevice) and other.driver is self.driver

    def check_buffer(self, buffer: Buffer, call: str, reached: bool = False) -> Array:
        """The array of a live buffer of this memory space, or of one that is ``reached``; raises for anything else."""
        there = isinstance(buffer, Buffer) and (
            buffer.storage.block.space == self.memory_space or reached and self.peers
        )
        if not there:
            raise InvalidArgumentError(f"{call} on {self.name}: not a buffer of its memory", got=repr(buffer))
        if not buffer.storage.live:
            raise self.driver.refused(
                f"{call} on {self.name} uses memory that was freed: block {buffer.storage.block.number} of {self.memory_space}"
            )
        return buffer.array

    def dtype_of(self, buffer: Buffer) -> Any:
        return buffer.array.dtype

    def extent(self, buffer: Buffer) -> tuple[int, int]:
        _, start, stop = buffer.range
        return start, stop - start

    def staging(self, nbytes: int) -> Staging:
        with self.driver.entered():
            self.driver.refuse_in_capture("staging")
            self.health.check()
            if self.faults.call("staging", f"{nbytes} bytes of staging memory") == "lose":
                self.lose("staging broke it")
                self.health.check()
            return self.driver.pinned.pin(nbytes, self.alignment, self.driver.used, self.driver.drops)

    # -- queues

    def new_queue(self) -> DriverQueue:
        with self.driver.entered():
            self._made += 1
            queue = DriverQueue(self, f"{self.name}/queue:{self._made - 1}")
            self._queues.add(queue)
            return queue

    def activate(self, queue: Queue | None = None) -> Any:
        self.health.check()
        queue = self.queue if queue is None else queue
        if queue.device is not self:
            raise InvalidArgumentError(f"{self.name} can't make {queue.name} current, which is not its own")
        previous, self.driver.current = self.driver.current, queue
        return previous

    def restore(self, previous: Any) -> None:
        self.driver.current = previous

    def passed(self, event: Event) -> bool:
        with self.driver.entered():
            point = self._point(event, "passed")
            for _ in range(self.driver.scheduler.random.randrange(3)):
                self.driver.scheduler.step()
            self.health.check()
            if point.reached:
                for observer in self.driver.observers:
                    observer.reached(point)
            return point.reached

    def wait_host(self, event: Event) -> None:
        with self.driver.entered():
            point = self._point(event, "wait_host")
            self.waits += 1
            self.driver.scheduler.reach(point)
            self.health.check()
            for observer in self.driver.observers:
                observer.reached(point)

    def _point(self, event: Event, call: str) -> QueuePoint:
        """The point that an event means now."""
        self.driver.refuse_in_capture(call)
        self.health.check()
        if not isinstance(event, DriverEvent) or event.queue.device is not self:
            raise InvalidArgumentError(f"{call}: {event!r} is not of {self.name}")
        if event.point is None:
            raise FailedPreconditionError(f"{call}: {event!r} was never recorded")
        if isinstance(event.point, Mark):
            raise FailedPreconditionError(f"{call}: {event!r} was recorded within a captured segment")
        return event.point

    def synchronize(self) -> None:
        with self.driver.entered():
            self.driver.refuse_in_capture("synchronize")
            self.health.check()
            self.waits += 1
            for queue in sorted(self._queues, key=lambda queue: queue.name):
                self.driver.scheduler.drain(queue.line)
                self.health.check()
                for observer in self.driver.observers:
                    observer.fenced(queue.name)
