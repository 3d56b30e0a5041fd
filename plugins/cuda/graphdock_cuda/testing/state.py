"""State that the calls of the fake driver share: devices, handles, what is queued, and what is recorded."""

from __future__ import annotations

import ctypes
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from graphdock_testing.driver.capture import Mark, Recording, Step
from graphdock_testing.driver.detector import Detector, Note, Pending, Range
from graphdock_testing.driver.interrupts import HeldBack
from graphdock_testing.driver.scheduler import Health, Line, QueuePoint, Scheduler, Work

from graphdock_cuda.driver.api import Properties
from graphdock_cuda.driver.errors import STICKY, CudaError
from graphdock_cuda.testing.faults import Fault, Faults
from graphdock_cuda.testing.image import KernelFailure
from graphdock_cuda.testing.log import Log
from graphdock_cuda.testing.memory import Arena, Block

__all__ = [
    "UNSET",
    "Capture",
    "Condition",
    "Device",
    "Event",
    "Misuse",
    "Record",
    "State",
    "Stream",
    "Touched",
    "Use",
    "bytes_of",
]

#: Bytes that were read and bytes that were written.
Touched = tuple[Sequence[Range], Sequence[Range]]
#: What a condition is before a kernel of the launch has set it.
UNSET = 0xFFFFFFFF
#: Seconds that each piece of work takes on the clock of its device.
_TICK = 1e-6


class Misuse(CudaError):
    """A call that a real driver may well take, and that goes wrong later: of freed memory, of a handle that was destroyed."""


class Device:
    """One fake GPU. ``status`` is the sticky error that its context died of, 0 while it lives; ``clock`` is in seconds.

    ``peers`` are devices whose memory it may use, ``streams`` counts those that were made.
    """

    def __init__(self, index: int, properties: Properties) -> None:
        self.index = index
        self.name = f"cuda:{index}"
        self.properties = properties
        self.memory = Arena(self.name, properties.memory)
        self.health = Health(self.name)
        self.status = 0
        self.clock = 0.0
        self.peers: set[int] = set()
        self.streams = 0

    def check(self, call: str) -> None:
        """Raises CudaError when the context is dead."""
        if self.status:
            raise self.error(call)

    def error(self, call: str) -> CudaError:
        """Return what every call says once the context is dead."""
        return CudaError(call, self.status, f"{STICKY.get(self.status, 'an error')}: {self.health.reason}")


class Stream:
    """A stream. ``capture`` is what records it, or None; when ``destroyed``, its work still runs."""

    def __init__(self, device: Device, name: str) -> None:
        self.device = device
        self.name = f"{device.name}/{name}"
        self.line = Line(self.name, device.health)
        self.capture: Capture | None = None
        self.destroyed = False


@dataclass(eq=False, slots=True)
class Record:
    """One record of an event: a point of a line, and the time when it was reached."""

    point: QueuePoint
    time: float | None = None


@dataclass(eq=False, slots=True)
class Event:
    """An event and its latest record: None, one in a line, or one within a recording."""

    device: Device
    timing: bool
    record: Record | Mark | None = None


@dataclass(frozen=True, slots=True)
class Use:
    """Memory that work points at. ``module``: the handle of the code that it runs, or 0."""

    block: Block | None = None
    module: int = 0


@dataclass(eq=False, slots=True)
class Condition:
    """Control of one conditional node: kernels set ``word``, whose address is its handle.

    Attributes:
      capture: the recording whose graph it was made for.
      used: a node has it.
    """

    capture: Capture
    used: bool = False
    word: ctypes.c_uint32 = field(default_factory=lambda: ctypes.c_uint32(UNSET))


@dataclass(eq=False)
class Capture(Recording):
    """A recording, what it points at, and what each launch of its graph adds to the log.

    ``around``: of the body of a conditional node, the recording that the node is in, the condition, and whether it repeats.
    """

    around: tuple[Capture, Condition, bool] | None = None
    conditions: list[Condition] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    uses: set[Use] = field(default_factory=set)
    counted: list[tuple[str, str, int]] = field(default_factory=list)
    lines: list[tuple[str, str]] = field(default_factory=list)


class State:
    """See FakeDriver for the attributes."""

    def __init__(self, properties: Sequence[Properties], seed: int, peers: bool, newest: int) -> None:
        self.newest = newest
        self.lock = threading.RLock()
        self.devices = [Device(index, found) for index, found in enumerate(properties)]
        self.peers = peers
        self.host = Arena("pinned memory")
        self._arenas = (self.host, *(device.memory for device in self.devices))
        self.scheduler = Scheduler(seed)
        self.faults = Faults()
        self.log = Log()
        self.detector = Detector()
        self.misuses: list[Misuse] = []
        #: whether images tell which bytes they read and write
        self.traced = False
        #: of the graph that runs: what its notes, by their ids, stand for in this launch
        self.replaying: dict[int, Pending] = {}
        self._objects: dict[int, tuple[str, Any]] = {}
        self._dead: dict[int, str] = {}
        self._made = 0
        self._thread = threading.local()
        #: devices that were made current
        self.opened: set[int] = set()
        self._captures: list[Capture] = []
        self._streams: list[Stream] = []
        self._defaults = [self._new_stream(device, "default stream") for device in self.devices]

    # -- handles

    def new_handle(self, kind: str, thing: Any) -> int:
        """A number that no other thing ever has."""
        self._made += 1
        handle = 0x7F00_0000_0000 + 64 * self._made
        self._objects[handle] = (kind, thing)
        return handle

    def thing(self, kind: str, handle: int, call: str) -> Any:
        """Return what a handle stands for. Raises Misuse for one that was destroyed, and for one of another kind."""
        found = self._objects.get(handle)
        if found is None and handle in self._dead:
            raise self.misuse(call, 400, f"{self._dead[handle]} {handle:#x} was destroyed")
        if found is None or found[0] != kind:
            raise self.misuse(
                call, 400, f"expected the handle of a {kind}, got {found[0] if found else 'none'}: {handle:#x}"
            )
        return found[1]

    def drop_handle(self, kind: str, handle: int, call: str) -> Any:
        """Its thing, which is gone for others from now on."""
        thing = self.thing(kind, handle, call)
        del self._objects[handle]
        self._dead[handle] = kind
        return thing

    def misuse(self, call: str, status: int, text: str) -> Misuse:
        """The error for a call that is wrong; kept, so that a caller that swallows it is found too."""
        error = Misuse(call, status, text)
        self.misuses.append(error)
        return error

    @property
    def live(self) -> Counter[str]:
        """Return how many things there are that somebody must give back: streams, events, modules, graphs, blocks, pinned
        blocks.
        """
        with self.lock:
            found = Counter(kind for kind, _ in self._objects.values() if kind != "function")
            found["block"] = sum(len(device.memory.blocks) for device in self.devices)
            found["pinned block"] = len(self.host.blocks)
            return +found

    # -- calls

    @property
    def device(self) -> Device:
        """Return what is current on this thread."""
        return self.devices[getattr(self._thread, "device", 0)]

    def select(self, index: int) -> None:
        """Make a device and its context current on this thread."""
        self._thread.device = index
        self._thread.context = True
        self.opened.add(index)

    @contextmanager
    def call(
        self,
        name: str,
        what: str = "",
        device: Device | None = None,
        unsafe: bool = False,
        releases: bool = False,
        context: bool = False,
    ) -> Iterator[Fault | None]:
        """A call of the driver: locked, logged, and failing where a fault or the state of the context says so.

        Args:
          device: whose context it needs; the current one when None.
          unsafe: a thread that records can't make it.
          releases: it gives something back, and does so even when it fails.
          context: it is the driver's, which needs a context on this thread; calls of the runtime make one.

        Gives a fault that happens when the work runs.
        """
        with HeldBack(), self.lock:
            device = device or self.device
            self.log.add(name, what)
            fault = self.faults.call(name, what)
            if fault is not None and not fault.late and fault.status in STICKY:
                self.end_context(device, fault.status, f"call {fault.number}, {name}, was told to")
            if unsafe:
                self.refuse_in_capture(name)
            failure: Exception | None = None
            if context and not getattr(self._thread, "context", False):
                failure = self.misuse(name, 201, "no context is current on this thread")
            elif device.status:
                failure = device.error(name)
            elif fault is not None and not fault.late:
                failure = CudaError(name, fault.status, f"call {fault.number} was told to fail")
            if failure is not None and not releases:
                raise failure
            yield fault if fault is not None and fault.late else None
            if failure is not None:
                raise failure

    def end_context(self, device: Device, status: int, reason: str) -> None:
        """A context dies: its work is gone, and every call says so. A second reason changes nothing."""
        if not device.status:
            device.status = status
            device.health.lose(reason)
            for stream in self.streams_of(device):
                self.detector.fenced(stream.name)

    # -- streams

    def stream_of(self, handle: int, call: str) -> Stream:
        """The stream of a handle; 0 is the default one of the current device."""
        if handle == 0:
            return self._defaults[self.device.index]
        found: Stream = self.thing("stream", handle, call)
        return found

    def _new_stream(self, device: Device, name: str = "") -> Stream:
        if not name:
            name = f"stream:{device.streams}"
            device.streams += 1
        stream = Stream(device, name)
        self._streams.append(stream)
        return stream

    def streams_of(self, device: Device) -> list[Stream]:
        """Those that may have work, or had some that the host has not waited for."""
        return [stream for stream in self._streams if stream.device is device]

    def drain(self, stream: Stream, call: str) -> None:
        """Run all work of a stream; the host knows then that it is done. Raises what its work raised."""
        self.scheduler.drain(stream.line)
        self._raise_of(stream, call)
        self.detector.fenced(stream.name)
        if stream.destroyed:
            self._streams.remove(stream)

    def _raise_of(self, stream: Stream, call: str) -> None:
        stream.device.check(call)
        error, stream.line.error = stream.line.error, None
        if error is not None:
            raise error

    def queue(
        self,
        stream: Stream,
        what: str,
        run: Callable[[], Touched | None],
        *,
        uses: Sequence[Use] = (),
        reads: Sequence[Range] = (),
        writes: Sequence[Range] = (),
        counted: tuple[str, str, int] | None = None,
        late: Fault | None = None,
        device: Device | None = None,
    ) -> None:
        """Put work into the line of a stream, or into what records it.

        Args:
          uses: blocks and modules that must be there when it runs.
          reads, writes: bytes, as far as they are known. ``run`` may give those that it found.
          counted: for the log.
        """
        device = device or stream.device
        pieces = [use.block for use in uses if use.block is not None]
        lives = [_life(block) for block in pieces]
        # where some bytes are known only when work has run, all are told then
        now = (lives, ()) if self.traced else ([*reads, *lives], writes)

        def perform(pending: Pending | None) -> None:
            if device.status:
                return
            device.clock += _TICK
            if late is not None:
                self.end_context(device, late.status, f"{what}, call {late.number}, was told to fail late")
                return
            try:
                self._alive(what, uses)
                touched = run() or ((), ())
                self._intact(what, pieces)
            except KernelFailure as failure:
                self.end_context(device, failure.status, str(failure))
                return
            if pending is not None:
                self.detector.ran(pending, [*reads, *touched[0]], [*writes, *touched[1]])

        capture = stream.capture
        if capture is None:
            self.detector.access(stream.name, what, *now)
            pending = self.detector.queued(stream.name, what) if self.traced else None
            self.scheduler.add(stream.line, Work(what, lambda: perform(pending)))
            if counted is not None:
                self.log.work(*counted)
            return
        self.check_capture(capture, what)
        note = Note("access", stream.name, what, tuple(now[0]), tuple(now[1]))
        capture.add(stream.name, Step(note, lambda: perform(self.replaying.get(id(note)))))
        capture.uses.update(uses)
        capture.lines.append((stream.name, what))
        if counted is not None:
            capture.counted.append(counted)

    def _alive(self, what: str, uses: Sequence[Use]) -> None:
        for use in uses:
            block = use.block
            if block is not None and not block.live and not block.region.open:
                raise KernelFailure(f"{what} uses {block}", 700, block.address)

    def _intact(self, what: str, blocks: Sequence[Block]) -> None:
        for block in blocks:
            if block.region.block is block and block.region.open and not block.intact():
                self.misuse(what, 700, f"wrote beyond {block}")
                block.guard()
                raise KernelFailure(f"{what} wrote beyond {block}", 700, block.address)

    def lifetime(self, stream: Stream, what: str, block: Block) -> None:
        """A block comes or goes in the order of a stream: other work that uses it must be ordered before or after."""
        self.detector.access(stream.name, what, (), [_life(block)])

    def lifetime_on_host(self, what: str, block: Block) -> None:
        """A block comes or goes at once."""
        self.detector.host(what, (), [_life(block)])

    # -- recordings

    def refuse_in_capture(self, call: str, stream: Stream | None = None) -> None:
        """Raises CudaError when this thread records, or when the stream is recorded; the recording is broken then."""
        for capture in self._captures:
            if capture.thread == threading.get_ident() or (stream is not None and stream.capture is capture):
                raise self.break_capture(capture, CudaError(call, 900))

    def break_capture(self, capture: Capture, error: CudaError) -> CudaError:
        """The recording is of no more use, nor are those around it; gives the error."""
        while True:
            capture.broken = capture.broken or error
            if capture.around is None:
                return error
            capture = capture.around[0]

    def check_capture(self, capture: Capture, call: str) -> None:
        """Raises CudaError when the recording is broken."""
        if capture.broken is not None:
            raise CudaError(call, 901, f"capture invalidated: {capture.broken}")

    # -- memory

    def block_at(self, address: int, call: str, nbytes: int = 0) -> Block | None:
        """The block that holds these bytes; None where the address is of no memory that this driver knows.

        Raises Misuse for memory that was freed, and beyond a block's end.
        """
        for arena in self._arenas:
            if arena.base <= address < arena.stop:
                block = arena.find(address)
                if block is None:
                    raise self.misuse(call, 1, f"{address:#x} lies in {arena.space}, and in no block of it")
                if not block.live or address > block.end or address + nbytes > block.end:
                    raise self.misuse(call, 1, f"{nbytes or 'the'} bytes at {address:#x} are not within {block}")
                return block
        return None

    def device_of(self, block: Block) -> Device | None:
        """Return whose memory it is; None for pinned memory."""
        return next((device for device in self.devices if device.memory.space == block.space), None)


def _life(block: Block) -> Range:
    """A block's life, as bytes of a space of its own: freeing writes it, using reads it."""
    return Range(f"the blocks of {block.space}", block.number, block.number + 1)


def bytes_of(block: Block, address: int, nbytes: int) -> Range:
    """Bytes of a block, for the race checker."""
    return Range(block.space, address, address + nbytes)
