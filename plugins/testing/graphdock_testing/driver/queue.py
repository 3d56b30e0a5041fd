"""A queue of the fake driver: what the contract promises, refused where a real driver refuses or goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from graphdock.contracts.queue import Event, Queue
from graphdock.errors import FailedPreconditionError, InvalidArgumentError
from graphdock.locks import new_lock

from graphdock_testing.driver.capture import Mark, Recording, Segment, Step
from graphdock_testing.driver.detector import Note, Range
from graphdock_testing.driver.faults import Kind
from graphdock_testing.driver.interrupts import HeldBack
from graphdock_testing.driver.memory import Array, Block, Buffer, Idle, Storage
from graphdock_testing.driver.scheduler import Line, QueuePoint, Work
from graphdock_testing.driver.work import Blame, blaming, check_alike, failing, first_then

if TYPE_CHECKING:
    from graphdock_testing.driver.device import Driver, DriverDevice

__all__ = ["DriverEvent", "DriverQueue"]


class DriverEvent:
    """An event. ``point`` is its latest record: None, a point, or a mark of a recording."""

    __slots__ = ("point", "queue")

    def __init__(self, queue: DriverQueue) -> None:
        self.queue = queue
        self.point: QueuePoint | Mark | None = None

    def __repr__(self) -> str:
        return f"<event of {self.queue.name}>"


class DriverQueue(Queue):
    """See Queue. Kernels are queued with :meth:`launch`."""

    device: DriverDevice

    def __init__(self, device: DriverDevice, name: str) -> None:
        self.device = device
        self.name = name
        self.driver: Driver = device.driver
        self.line = Line(name, device.health)
        self.idle: Idle = {}
        self.recording: Recording | None = None
        self._holder = new_lock()
        storage = device.allocate(device.argument_bytes)
        self.arguments: Buffer = Buffer(storage, storage.block.bytes[: device.argument_bytes])

    # -- what every call goes through

    @contextmanager
    def _held(self, call: str) -> Iterator[None]:
        """One thread at a time: a second one is told so, in place of waiting."""
        with HeldBack():
            if not self._holder.acquire(blocking=False):
                raise FailedPreconditionError(f"{call} on {self.name}, which another thread is using", hint=_ONE_HOLDER)
            try:
                with self.driver.entered():
                    if self.recording is not None and not self.recording.open:
                        self.recording = None
                    yield
            finally:
                self._holder.release()

    def _check(self, call: str) -> None:
        """The device works, this queue is current, and no other queue's recording is disturbed."""
        self.device.health.check()
        current = self.driver.current
        if current is not self:
            what = "no queue" if current is None else getattr(current, "name", repr(current))
            raise FailedPreconditionError(
                f"{call} on {self.name} while {what} is current on this thread", hint="device.activate(queue) first"
            )
        self._same_recording(call)

    def _same_recording(self, call: str) -> None:
        mine, threads = self.recording, self.driver.recording
        if mine is not threads:
            other = mine or threads
            assert other is not None
            why = "" if mine is not None else "it would run now, and not when the segment is replayed"
            raise other.refuse(f"{call} on {self.name}", why)

    def _enqueue(
        self,
        kind: Kind,
        what: str,
        run: Callable[[], None],
        reads: Sequence[Range],
        writes: Sequence[Range],
        *,
        broken: Sequence[Array] = (),
        begin: Callable[[], None] | None = None,
        blocks: Sequence[Block] = (),
        blame: Blame | None = None,
    ) -> None:
        """Ask the driver for a piece of work; ``broken`` is what it leaves in pieces when it is made to fail."""
        how = self.driver.faults.call(kind, what)
        if how == "fail":
            fails = failing(what, broken, blame)
            run = fails if self.recording is None else first_then(fails, run)
        if self.recording is not None:
            note = Note("access", self.name, what, tuple(reads), tuple(writes))
            self.recording.add(self.name, Step(note, run, begin, tuple((b, b.life) for b in blocks)))
            if how == "lose":
                self.device.lose(f"{what} broke it")
            return
        if begin is not None:
            begin()
        for observer in self.driver.observers:
            observer.access(self.name, what, reads, writes)
        self.driver.scheduler.add(self.line, Work(what, run, loses=f"{what} broke it" if how == "lose" else None))

    def launch(
        self,
        what: str,
        run: Callable[[], None],
        reads: Sequence[Buffer] = (),
        writes: Sequence[Buffer] = (),
        blame: Blame | None = None,
    ) -> None:
        """Queue a kernel. ``run`` works on the arrays of the buffers, which it has taken from them before; the fence raises what
        ``blame`` makes of an error."""
        with self._held(what):
            self._check(what)
            for buffer in (*reads, *writes):
                self.device.check_buffer(buffer, what)
            self._enqueue(
                "launch",
                what,
                run if blame is None else blaming(run, blame),
                [b.range for b in reads],
                [b.range for b in writes],
                broken=[b.array for b in writes],
                blocks=[b.storage.block for b in (*reads, *writes)],
                blame=blame,
            )
            self.device.launches += 1

    # -- copies

    def copy(self, src: Buffer, dst: Buffer) -> None:
        with self._held("copy"):
            self._check("copy")
            source, target = self.device.check_buffer(src, "copy", True), self.device.check_buffer(dst, "copy")
            check_alike(source, target)
            self._enqueue(
                "copy",
                "copy",
                lambda: np.copyto(target, source.reshape(target.shape)),
                [src.range],
                [dst.range],
                broken=[target],
                blocks=[src.storage.block, dst.storage.block],
            )

    def from_host(self, array: Array, dst: Buffer) -> None:
        with self._held("from_host"):
            self._check("from_host")
            target = self.device.check_buffer(dst, "from_host")
            check_alike(array, target)
            if not target.size:
                return
            block, slot = self.driver.pinned.slot(array)
            self._enqueue(
                "copy",
                "from_host",
                lambda: np.copyto(target, slot.reshape(target.shape)),
                [block.range_of(slot)],
                [dst.range],
                broken=[target],
                begin=lambda: self.driver.slots.send(self, slot),
                blocks=[block, dst.storage.block],
            )

    def to_host(self, src: Buffer, dst: Array) -> None:
        with self._held("to_host"):
            self._check("to_host")
            source = self.device.check_buffer(src, "to_host")
            check_alike(source, dst)
            if not source.size:
                return
            block, slot = self.driver.pinned.slot(dst)
            self._enqueue(
                "copy",
                "to_host",
                lambda: np.copyto(slot, source.reshape(slot.shape)),
                [src.range],
                [block.range_of(slot)],
                broken=[slot],
                begin=lambda: self.driver.slots.expect(slot),
                blocks=[block, src.storage.block],
            )

    def set_arguments(self, data: bytes | bytearray | memoryview) -> None:
        with self._held("set_arguments"):
            self._check("set_arguments")
            if self.recording is not None:
                raise self.recording.refuse("set_arguments")
            taken = np.frombuffer(bytes(data), np.uint8)
            if taken.nbytes > self.device.argument_bytes:
                raise InvalidArgumentError(
                    "step arguments are too long",
                    expected=f"at most {self.device.argument_bytes}",
                    got=str(taken.nbytes),
                )
            target = self.arguments.array[: taken.nbytes]
            written = self.arguments.storage.block.range_of(target)
            self._enqueue(
                "arguments", "set_arguments", lambda: np.copyto(target, taken), [], [written], broken=[target]
            )

    # -- memory

    def allocate(self, nbytes: int) -> Storage:
        with self._held("allocate"):
            self._check("allocate")
            if self.recording is not None:
                raise self.recording.refuse("allocate")
            if self.driver.faults.call("allocate", f"{nbytes} bytes on {self.name}") == "lose":
                self.device.lose("allocate broke it")
                self.device.health.check()
            block = self.device.memory.take(nbytes, self.device.alignment, self.idle)
            self._poison(block, "allocate")
            return self.driver.hold(block, nbytes, self)

    def free(self, storage: Storage) -> None:
        with self._held("free"):
            if self.driver.recording is not None:
                raise self.driver.recording.refuse("free")
            if storage.owner is not self:
                raise InvalidArgumentError(f"{self.name} frees a block that is not of its allocate")
            storage.check()
            storage.live = False
            self.give_back(storage.block, storage.nbytes)

    def give_back(self, block: Block, nbytes: int) -> None:
        """Poison a block in the order of the queue, and let the next ``allocate`` have it. The driver is locked."""
        if self.device.health.reason is None:
            self._poison(block, "free")
        self.device.memory.give(block, nbytes, self.idle)

    def _poison(self, block: Block, what: str) -> None:
        for observer in self.driver.observers:
            observer.access(self.name, what, (), [block.range_of(block.bytes)])
        self.driver.scheduler.add(self.line, Work(what, block.poison))

    # -- order

    def event(self) -> DriverEvent:
        return DriverEvent(self)

    def record(self, event: Event | None = None) -> Event:
        event = self.event() if event is None else event
        if not isinstance(event, DriverEvent) or event.queue is not self:
            raise InvalidArgumentError(f"{self.name} can't record {event!r}, which is not its own")
        with self._held("record"):
            self._ask("record", f"an event of {self.name}")
            if self.recording is not None:
                event.point = self.recording.record(self.name)
                return event
            event.point = self.line.point()
            for observer in self.driver.observers:
                observer.record(self.name, event.point)
            return event

    def _ask(self, kind: Kind, what: str) -> None:
        """A call that queues no work of its own."""
        self.device.health.check()
        if self.recording is not None and self.recording is not self.driver.recording:
            raise self.recording.refuse(f"{kind} on {self.name} by another thread")
        if self.driver.faults.call(kind, what) == "lose":
            self.device.lose(f"{kind} of {what} broke it")
            self.device.health.check()

    def wait(self, event: Event) -> None:
        if not isinstance(event, DriverEvent) or event.queue.driver is not self.driver:
            raise InvalidArgumentError(f"{self.name} can't wait for {event!r}, which is of another driver")
        with self._held("wait"):
            self._ask("wait", f"{event!r} on {self.name}")
            point = event.point
            if point is None:
                raise self.driver.refused(f"{self.name} waits for {event!r}, which was never recorded")
            if isinstance(point, Mark):
                if not point.recording.open:
                    raise FailedPreconditionError(
                        f"{self.name} waits for {event!r}, which was recorded within a captured segment",
                        hint="record it again, after the replay",
                    )
                if point.recording is not self.driver.recording:
                    raise point.recording.refuse(f"wait on {self.name}, by another thread or another recording")
                point.recording.wait(self.name, point)
                self.recording = point.recording
                return
            if self.recording is not None:
                raise self.recording.refuse(f"wait on {self.name} for {event!r}", "it was recorded outside")
            for observer in self.driver.observers:
                observer.wait(self.name, point)
            self.driver.scheduler.add(self.line, Work(f"wait for {event!r}", after=point))

    def synchronize(self) -> None:
        with self._held("synchronize"):
            self.driver.refuse_in_capture(f"synchronize on {self.name}", self.recording)
            self.device.health.check()
            self.device.waits += 1
            self.driver.scheduler.drain(self.line)
            self.device.health.check()
            for observer in self.driver.observers:
                observer.fenced(self.name)
            self.driver.slots.fenced(self)
            error, self.line.error = self.line.error, None
            try:
                if error is not None:
                    raise error
            finally:
                del error  # its traceback holds this frame

    def settle(self) -> None:
        """Wait for what is queued, as a kernel does that must know a shape: no fence, its errors are left to the next one."""
        with self._held("settle"):
            self.driver.refuse_in_capture(f"waiting for {self.name}", self.recording)
            self.device.waits += 1
            self.driver.scheduler.drain(self.line)
            self.device.health.check()
            for observer in self.driver.observers:
                observer.fenced(self.name)

    @property
    def pending(self) -> int:
        """How much work of this queue will run; none on a lost device."""
        return self.line.pending

    # -- capture

    def capture(self, body: Callable[[], None]) -> Callable[[], None]:
        with HeldBack() as held:
            segment = self._record_segment(lambda: held.lifted(body))
        return lambda: self._replay(segment)

    def _record_segment(self, body: Callable[[], None]) -> Segment:
        with self._held("capture"):
            self._check("capture")
            if self.recording is not None:
                raise self.recording.refuse("capture", "it records already")
            if self.driver.faults.call("capture", f"a segment on {self.name}") == "lose":
                self.device.lose("capture broke it")
                self.device.health.check()
            recording = self.recording = Recording(self.name)
            self.driver.begin(recording)
        self._holder.acquire()  # while it records the queue is this thread's, and the driver is everybody's
        try:
            body()
            with self._held("capture"):
                return recording.finish()
        finally:
            self._holder.release()
            with self.driver.entered():
                recording.open = False
                recording.broken = self.recording = None
                self.driver.end(recording)

    def _replay(self, segment: Segment) -> None:
        what = f"a segment of {len(segment.steps)} on {self.name}"
        with self._held("replay"):
            self._check("replay")
            if self.recording is not None:
                raise self.recording.refuse("replay")
            how = self.driver.faults.call("replay", what)
            run = failing(what, (), None) if how == "fail" else lambda: segment.run(self.driver.scheduler.random)
            segment.begin()
            for observer in self.driver.observers:
                observer.replay(self.name, segment.notes)
            loses = f"{what} broke it" if how == "lose" else None
            self.driver.scheduler.add(self.line, Work(what, run, loses=loses))
            self.device.replays += 1


_ONE_HOLDER = "a queue belongs to whoever holds its stream slot, one thread at a time"
