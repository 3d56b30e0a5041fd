"""The tandem device: two engines that share one memory. Each queue is a thread, which does its work one after another.

Nothing but the board's own methods touches its memory: a Buffer is no NumPy array, and host code that takes it for one fails.
"""

import threading
import weakref
from queue import SimpleQueue

import numpy as np
from graphdock.contracts import DeviceFactory, DeviceInfo, Queue, QueuedDevice, errors, kernel_error

__all__ = ["Buffer", "TandemDevice", "TandemFactory", "TandemQueue"]


class Buffer:
    """An array in the board's memory. ``array`` is for work that runs on the board."""

    __slots__ = ("array", "storage")

    def __init__(self, storage, array):
        self.storage, self.array = storage, array

    @property
    def shape(self):
        return self.array.shape


class Storage:
    """A block of the board's memory; ``release`` gives it back, at the latest when nobody refers to it any more."""

    def __init__(self, board, nbytes, align):
        board.take(nbytes)
        self.release = weakref.finalize(self, board.give_back, nbytes)
        block = np.empty(nbytes + align, np.uint8)
        start = -block.ctypes.data % align
        self.bytes = block[start : start + nbytes]


class Board:
    """State that both engines share: the memory's size, and which queue is current on which thread."""

    def __init__(self, memory):
        self.memory, self.in_use = memory, 0
        self.threads = threading.local()
        self._lock = threading.RLock()  # a finalizer may run in the middle of take

    def take(self, nbytes):
        with self._lock:
            if self.in_use + nbytes > self.memory:
                raise errors.ResourceExhaustedError(
                    f"tandem has no {nbytes} bytes left", got=f"{self.in_use} of {self.memory} bytes in use"
                )
            self.in_use += nbytes

    def give_back(self, nbytes):
        with self._lock:
            self.in_use -= nbytes


class Line:
    """Work in order, and the thread that does it. It doesn't know its queue, so that the queue can go."""

    def __init__(self, name):
        self.work = SimpleQueue()
        self.error = None
        threading.Thread(target=self._serve, name=name, daemon=True).start()

    def _serve(self):
        with np.errstate(all="ignore"):
            while (run := self.work.get()) is not None:
                try:
                    run()
                except Exception as error:  # noqa: BLE001 - the fence raises the first
                    self.error = self.error or error
                del run  # it holds memory


def _plain(array):
    """Staging memory as the device sees it: an address. In a test the host's own view of it reports each access."""
    return array.view(np.ndarray)


class Event:
    """``point`` is None until the event is recorded; it is set when the work before the record is done."""

    def __init__(self, queue):
        self.queue, self.point = queue, None


class TandemQueue(Queue):
    """One line of work of an engine."""

    def __init__(self, device, name):
        self.device, self.name = device, name
        self._line = Line(name)
        weakref.finalize(self, self._line.work.put, None)
        self.arguments = device.view(
            device.allocate(device.argument_bytes), 0, np.dtype(np.uint8), (device.argument_bytes,)
        )

    def _give(self, run):
        """Queue work. What is wrong with the call itself is said here, and queues nothing."""
        current = getattr(self.device.board.threads, "current", None)
        if current is not self:
            raise errors.FailedPreconditionError(f"work for {self.name} while {current} is current on this thread")
        self._line.work.put(run)

    def launch(self, node, run):
        """Queue a kernel; an error of its work names the node."""

        def named():
            try:
                run()
            except Exception as error:
                raise kernel_error(error, node) from error

        self._give(named)

    def copy(self, src, dst):
        source, target = src.array, dst.array  # work holds the arrays, and so the memory, until it has run
        self._give(lambda: np.copyto(target, source))

    def from_host(self, array, dst):
        slot, target = _plain(array), dst.array
        self._give(lambda: np.copyto(target, slot))

    def to_host(self, src, dst):
        source, slot = src.array, _plain(dst)
        self._give(lambda: np.copyto(slot, source))

    def set_arguments(self, data):
        taken = np.frombuffer(bytes(data), np.uint8)  # a copy: ``data`` may change as soon as this returns
        if taken.size > self.device.argument_bytes:
            raise errors.InvalidArgumentError("step arguments are too long", got=f"{taken.size} bytes")
        target = self.arguments.array[: taken.size]
        self._give(lambda: np.copyto(target, taken))

    def allocate(self, nbytes):
        return Storage(self.device.board, nbytes, self.device.alignment)

    def free(self, storage):
        if not storage.release.alive:
            raise errors.FailedPreconditionError(f"{self.name} frees a block that was freed before")
        storage.release()  # the bytes themselves live until the queued work that uses them has run

    def event(self):
        return Event(self)

    def record(self, event=None):
        event = event or Event(self)
        event.point = threading.Event()
        self._line.work.put(event.point.set)
        return event

    def wait(self, event):
        if getattr(event, "queue", None) is None or event.queue.device.board is not self.device.board:
            raise errors.InvalidArgumentError(f"{self.name} can't wait for {event!r}, which is of another driver")
        self._line.work.put(self.device.point_of(event).wait)

    def synchronize(self):
        self.record().point.wait()
        error, self._line.error = self._line.error, None
        if error is not None:
            raise error


class TandemDevice(QueuedDevice):
    """One engine. Both have the same memory space, so that a buffer of one needs no copy for the other, but an event."""

    def __init__(self, info, board):
        super().__init__(info)
        self.board = board
        self.memory_space = "tandem"
        self._queues = weakref.WeakSet()
        self._made = 0

    def new_queue(self):
        name = f"tandem:{self.info.index}/queue:{self._made}"
        self._made += 1
        queue = TandemQueue(self, name)
        self._queues.add(queue)
        return queue

    def activate(self, queue=None):
        previous = getattr(self.board.threads, "current", None)
        self.board.threads.current = self.queue if queue is None else queue
        return previous

    def restore(self, previous):
        self.board.threads.current = previous

    def allocate(self, nbytes, align=256):
        return Storage(self.board, nbytes, max(align, self.alignment))

    def view(self, storage, offset, dtype, shape):
        return Buffer(storage, np.ndarray(tuple(shape), getattr(dtype, "np", dtype), storage.bytes, offset))

    def staging(self, nbytes):
        block = np.empty(nbytes + self.alignment, np.uint8)
        start = -block.ctypes.data % self.alignment
        return block[start : start + nbytes]

    @staticmethod
    def point_of(event):
        if event.point is None:
            raise errors.FailedPreconditionError("an event of tandem was never recorded")
        return event.point

    def passed(self, event):
        return self.point_of(event).is_set()

    def wait_host(self, event):
        self.point_of(event).wait()

    def synchronize(self):
        for queue in list(self._queues):
            queue.record().point.wait()

    def extent(self, buffer):
        """For the race checker. Every buffer of this device is contiguous."""
        return buffer.array.ctypes.data, buffer.array.nbytes


class TandemFactory(DeviceFactory):
    device_type = "tandem"

    def __init__(self):
        self._board = None

    def probe(self):
        return [DeviceInfo("tandem", i, memory_bytes=1 << 30, attributes={"engine": str(i)}) for i in range(2)]

    def open(self, info, options):
        if self._board is None:
            self._board = Board(options["memory"])
        return TandemDevice(info, self._board)
