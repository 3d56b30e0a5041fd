"""The queue half of the device contract: queues, events, staging memory. Only a device whose work runs late writes it.

What happens in the order of a queue is a method of :class:`Queue`; a step binds ``queue.copy`` where it binds ``device.copy`` of a
synchronous device. What the host asks a device, whatever the queue, is a method of :class:`QueuedDevice`. One step on one queue::

    previous = device.activate(queue)       # on the thread that runs the step
    try:
        queue.set_arguments(data)           # what varies from step to step; data is free again
        queue.from_host(slot, x)            # slot: a view of device.staging(...), filled before
        queue.wait(theirs)                  # an event of another queue
        kernel(x, y)                        # was bound to this queue; queues its launch
        queue.record(mine)                  # mine = queue.event(), made once
        queue.to_host(y, result_slot)
    finally:
        try:
            queue.synchronize()             # the fence, also after a refused call
        finally:
            device.restore(previous)

Order. The work of one queue runs in the order in which it was queued, and never before the host has queued it. Nothing else is
ordered: two queues run side by side, each when it likes, unless an event says so. ``wait`` orders whatever the queue is given
later after whatever the event's queue was given before its record. The host knows that work is done when a fence, ``wait_host`` or
``passed`` has said so.

Memory. A storage of ``Queue.allocate`` follows its queue: ``free`` gives it back in queue order, at once for the next ``allocate``
of that queue, while work that uses it may still be queued. Work on other queues that uses it is ordered before the ``free``, by
whoever frees. When the last reference to a storage goes, it is freed as if by ``free``. A storage of ``Device.allocate`` belongs
to no queue: whoever drops its last reference has fenced every queue that used it. Staging memory is written again by the host,
and dropped, only once the host knows that the work that uses it is done.

Errors. A refused call raises where it is called, queues nothing, and leaves the queue usable. Work that fails raises at the next
fence of its queue, and only there; what was queued after it runs, on whatever the failed work left. A lost device raises
``DeviceLostError`` from the first call that notices and from every later one, on any queue of that device; only ``free`` and
``restore``, which clean up, never raise it.

Threads. A queue belongs to whoever holds it: one thread at a time, which may change between calls. Methods of
:class:`QueuedDevice` may be called from any thread. A device stays in the process that opened it: in a forked child it is
``forked``, steps on it are refused, and a session that is made there opens another.
"""

from __future__ import annotations

import os
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

from graphdock.contracts.device import HOST_MEMORY, Buffer, Device, DeviceInfo, Storage, returned
from graphdock.contracts.version import RenamedAttribute
from graphdock.dtypes import DType
from graphdock.errors import InvalidArgumentError
from graphdock.locks import new_lock

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Event", "Queue", "QueuedDevice"]

#: A point of a queue, as ``Queue.event`` makes it. Only the devices of the factory that made it look inside.
Event: TypeAlias = Any

#: Staging memory that the copies outside of steps keep for the next one.
_KEPT_BYTES = 1 << 26


class Queue(ABC):
    """One ordered queue of a device. Made by ``QueuedDevice.new_queue``.

    What queues work (the copies, ``allocate``, ``set_arguments``, ``capture`` and its replays, and kernels' launches) needs this
    queue to be current on the calling thread; ``record``, ``wait``, ``free`` and ``synchronize`` do not.

    Attributes:
      device: the device that made it.
      name: such as ``"cuda:0/queue:1"``, for messages.
      arguments: the step-argument block, for kernels: a uint8 buffer of ``device.argument_bytes`` at one address.
    """

    device: QueuedDevice
    name: str
    arguments: Buffer

    @abstractmethod
    def copy(self, src: Buffer, dst: Buffer) -> None:
        """Copy between two buffers of the device's memory space, of equal dtype and shape. ``src`` may be strided.

        ``src`` may lie in the memory of a device that ``device.reaches``, and is contiguous then.
        """

    @abstractmethod
    def from_host(self, array: NDArray[Any], dst: Buffer) -> None:
        """Copy ``array``, contiguous in staging memory, into ``dst``. It is read when the copy runs, at the latest at the fence.

        The host may write it again once it knows that the copy is done. After the fence its content is unspecified: a step fills
        what it sends.
        """

    @abstractmethod
    def to_host(self, src: Buffer, dst: NDArray[Any]) -> None:
        """Copy ``src`` into ``dst``, contiguous in staging memory: unspecified until the host knows that the copy is done."""

    @abstractmethod
    def allocate(self, nbytes: int) -> Storage:
        """A block of at least ``nbytes`` bytes, aligned to ``device.alignment``, for work queued from now on.

        Raises ResourceExhaustedError.
        """

    @abstractmethod
    def free(self, storage: Storage) -> None:
        """Give back a block of this queue's ``allocate``, once what is queued before has run. A second call is an error."""

    def empty(self, dtype: DType, shape: Sequence[int]) -> Buffer:
        """A buffer of its own; it keeps its block alive. Optional; default: ``allocate`` and the device's ``view``."""
        return self.device.view(self.allocate(max(dtype.size * prod(shape), 1)), 0, dtype, shape)

    @abstractmethod
    def event(self) -> Event:
        """An event of this queue that was never recorded. An instance makes its events once and records them in every step."""

    @abstractmethod
    def record(self, event: Event | None = None) -> Event:
        """Let ``event`` mean the point after all that is queued so far; returns it. Without one, a new event is made.

        It must be of this queue. Waits that were queued on its earlier point keep waiting for that one.
        """

    @abstractmethod
    def wait(self, event: Event) -> None:
        """Let what is queued from now on wait for the event's latest record. The host does not wait.

        Raises:
          InvalidArgumentError: the event is of another factory's device.
          FailedPreconditionError: it was never recorded, where the driver can tell.
        """

    @abstractmethod
    def synchronize(self) -> None:
        """The fence: wait until all that was queued here has run, and what it waited for.

        Raises the first error of the work queued here since the last fence, and forgets it; the error names the node (``op``,
        ``site``) where the device can tell. Raises DeviceLostError on a lost device.
        """

    @abstractmethod
    def set_arguments(self, data: bytes | bytearray | memoryview) -> None:
        """Copy ``data`` into the first bytes of ``arguments``, in queue order. ``data`` may be changed as soon as this returns.

        Raises InvalidArgumentError for more than ``device.argument_bytes`` bytes.
        """

    def capture(self, body: Callable[[], None]) -> Callable[[], None] | None:
        """Record the work that ``body`` queues here and return a function that queues it again, or None when it can't be.

        Optional; default: None, without a call of ``body``. ``body`` is called once, to record; none of its work runs. Addresses,
        the arguments of launches and staging addresses are frozen; the contents of memory, ``arguments`` among them, are read at
        each replay. A replay is one piece of work of this queue, in its order, and costs the host one call.

        Refused within ``body``, with a FailedPreconditionError that ``capture`` raises even if ``body`` swallows it: ``allocate``,
        ``free`` and ``set_arguments``; every fence and query (``synchronize``, ``wait_host``, ``passed``); the device's own copies,
        on its private queue; ``capture``; and ``wait`` for an event recorded outside. An event recorded within means nothing
        outside. Where the driver lets another queue wait for such an event, that queue's work is recorded too, and must be
        joined before ``body`` returns: this queue waits for an event recorded behind it. When ``body`` raises, nothing is kept
        and the error passes through.
        """
        return None

    def branch(self, flag: Buffer, then: Callable[[], None], otherwise: Callable[[], None] | None = None) -> None:
        """Do what ``then`` queues where the bool in ``flag`` holds once all that was queued before has run, else ``otherwise``.

        Optional; default: the host waits, and calls one of the two. Within ``capture``, of a device that is not ``undecided``, both
        are called, once each, and recorded: a replay does what one of them has queued. They queue work of this queue alone:
        kernels, copies, ``branch`` and ``loop``; no events, and none that was recorded before is waited for behind.
        """
        self.synchronize()
        if self._holds(flag):
            then()
        elif otherwise is not None:
            otherwise()

    def loop(self, flag: Buffer, test: Callable[[], None], body: Callable[[], None]) -> None:
        """Do what ``test`` queues, and as long as the bool in ``flag`` holds then, what ``body`` and ``test`` queue.

        Optional, and recorded, as ``branch``. How often they are called while it is recorded is not specified.
        """
        test()
        self.synchronize()
        while self._holds(flag):
            body()
            test()
            self.synchronize()

    def _holds(self, flag: Buffer) -> bool:
        """Value of a bool of the device; all work that writes it has run."""
        import numpy as np

        found = np.empty((), np.bool_)
        self.device.to_host(flag, found)
        return bool(found)

    def measure(self, work: Callable[[], None]) -> float:
        """Seconds that what ``work`` queues here takes, alone, for tuning. Fences before and after.

        Optional; default: the host's clock between two fences. A device with a clock of its own takes that.
        """
        self.synchronize()
        begin = time.perf_counter()
        work()
        self.synchronize()
        return time.perf_counter() - begin

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


class QueuedDevice(Device):
    """An open device whose work runs late, on queues.

    Kernels are bound to a queue. The methods ``empty``, ``copy``, ``from_host`` and ``to_host`` are for code outside of steps: they
    work on a private queue, one call at a time, and fence it before they return. They don't wait for other queues.

    Attributes:
      stream_slots: how many queues steps take turns on, and so how many may be in flight; more are made where a session asks for
        more steps in flight. Buffers and staging are each instance's own.
      alignment: see Device.
      argument_bytes: size of every queue's ``arguments``.
      undecided: why recordings can't hold ``Queue.branch`` and ``Queue.loop``, in words; empty where they can.
      fetch_bytes: what is fetched and has so many bytes gets staging memory of its own in every step, which the caller keeps as
        his array; for devices that keep a pool of it. 0: nothing does, and the host copies what is fetched.
      forked: this process was forked from the one that opened the device.
    """

    stream_slots: int = 2
    lanes = RenamedAttribute("stream_slots")
    forked: bool = False
    undecided: str = "recordings of it hold no conditions"
    fetch_bytes: int = 0
    alignment: int = 256
    argument_bytes: int = 1 << 16

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "lanes" in vars(cls):
            raise vars(QueuedDevice)["lanes"].error(cls)

    def __init__(self, info: DeviceInfo) -> None:
        super().__init__(info)
        _open.add(self)
        self._outside_lock = new_lock()
        self._outside_queue: Queue | None = None
        self._outside_staging: NDArray[Any] | None = None
        #: the runtime's own: the queues that steps take turns on
        self._slots: list[Any] = []

    @abstractmethod
    def new_queue(self) -> Queue:
        """Another queue. It lives until its last reference goes, which happens after its fence."""

    @abstractmethod
    def activate(self, queue: Queue | None = None) -> Any:
        """Make this device and ``queue`` current on the calling thread; returns what was current there, for ``restore``.

        Without a queue, the private one. Called before an instance's constants and variables are made, at a step's entry, and
        when the queue changes on a thread; never per kernel.
        """

    @abstractmethod
    def restore(self, previous: Any) -> None:
        """Make current on the calling thread what ``activate`` found there. Pairs of the two nest."""

    @abstractmethod
    def staging(self, nbytes: int) -> NDArray[Any]:
        """Host memory that the device reads and writes by itself (pinned): uint8, ``nbytes`` long, aligned to ``alignment``.

        Dear: an instance makes it once and cuts slots from it. Raises ResourceExhaustedError.
        """

    @abstractmethod
    def passed(self, event: Event) -> bool:
        """Return whether all work before the event's latest record is done; never waits. Takes no error from a fence.

        Raises FailedPreconditionError for an event that was never recorded, where the driver can tell.
        """

    @abstractmethod
    def wait_host(self, event: Event) -> None:
        """Wait on the calling thread until ``passed(event)``. Takes no error from a fence."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until the work of every queue is done. Takes no error from a fence; raises DeviceLostError only."""

    def reaches(self, other: Device) -> bool:
        """Return whether ``copy`` of its queues also takes sources in the memory of ``other``, which has another memory space.

        Optional; default: False, and values go through the host's memory. The answer is the same as long as both are open.
        """
        return False

    def extent(self, buffer: Buffer) -> tuple[int, int] | None:
        """First address of a buffer and the number of bytes from there to its end, gaps of a strided one included.

        Optional; default: None. With it, ``pytest --graphdock-backend NAME`` checks steps for races. Addresses are unique within
        the memory space.
        """
        return None

    @property
    def queue(self) -> Queue:
        """The private queue, for code outside of steps; made when first asked for."""
        with self._outside_lock:
            if self._outside_queue is None:
                self._outside_queue = queue_of(self)
            return self._outside_queue

    @contextmanager
    def at_once(self) -> Iterator[Queue]:
        """The private queue, current and to oneself; fenced at the end, also after an error.

        For executors that wait for each kernel, besides the copies below.
        """
        with self._outside_lock:
            queue = self.queue
            previous = self.activate(queue)
            try:
                try:
                    yield queue
                finally:
                    queue.synchronize()
            finally:
                self.restore(previous)

    def _slot(self, array: NDArray[Any]) -> NDArray[Any]:
        """Staging memory of ``array``'s dtype and shape, lent until the next call. The caller holds the lock."""
        if array.dtype.hasobject:
            raise InvalidArgumentError(
                f"{self!r} can't hold Python objects", got=f"an array of {array.dtype}", hint="keep strings on the cpu"
            )
        memory = self._outside_staging
        if memory is None or memory.nbytes < array.nbytes:
            memory = self.staging(max(array.nbytes, 1))
            if memory.nbytes <= _KEPT_BYTES:
                self._outside_staging = memory
        return memory[: array.nbytes].view(array.dtype).reshape(array.shape)

    def empty(self, dtype: DType, shape: Sequence[int]) -> Buffer:
        """A buffer of its own that belongs to no queue."""
        return self.view(self.allocate(max(dtype.size * prod(shape), 1), self.alignment), 0, dtype, shape)

    def copy(self, src: Buffer, dst: Buffer) -> None:
        """As ``Queue.copy``, and fenced."""
        with self.at_once() as queue:
            queue.copy(src, dst)

    def from_host(self, array: Any, dst: Buffer) -> None:
        """As ``Queue.from_host``, from any contiguous array, and fenced: ``array`` may be reused."""
        with self.at_once() as queue:
            slot = self._slot(array)
            slot[...] = array
            queue.from_host(slot, dst)

    def to_host(self, src: Buffer, dst: Any) -> None:
        """As ``Queue.to_host``, into any contiguous array, and fenced: the data is there."""
        with self._outside_lock:
            slot = self._slot(dst)
            with self.at_once() as queue:
                queue.to_host(src, slot)
            dst[...] = slot


_open: weakref.WeakSet[QueuedDevice] = weakref.WeakSet()


def _leave_behind() -> None:
    for device in list(_open):
        device.forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_behind)


def queue_of(device: QueuedDevice) -> Queue:
    """Another queue of a device. Raises PluginError, with the name of its plugin, where ``new_queue`` makes none."""
    made: Queue = returned(device.new_queue, Queue, device.plugin, f"{type(device).__name__}.new_queue")
    return made


def can_record(device: Device) -> bool:
    """Return whether a device records work to replay it."""
    if isinstance(device, QueuedDevice):
        return type(device.queue).capture is not Queue.capture
    return type(device).capture is not Device.capture and device.memory_space != HOST_MEMORY
