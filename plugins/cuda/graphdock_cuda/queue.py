"""A queue of a GPU: one stream, the step arguments, recordings as CUDA graphs."""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from graphdock.contracts import DType, Event, Queue, errors
from graphdock.locks import collector_paused

from graphdock_cuda.arguments import Sender
from graphdock_cuda.driver.api import Driver
from graphdock_cuda.launch import Launch, u64
from graphdock_cuda.memory import Array, Block, array_over

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graphdock_cuda.device import CudaDevice

__all__ = ["CudaEvent", "CudaQueue"]

#: Held by the one recording of the process.
_recorder = threading.Lock()


class CudaEvent:
    """An event of a queue. ``recorded``: it stands for a point, outside of recordings."""

    __slots__ = ("__weakref__", "handle", "queue", "recorded", "within")

    def __init__(self, queue: CudaQueue) -> None:
        self.queue = queue
        with queue.device.current():
            self.handle = queue.driver.event()
        self.recorded = False
        #: the recording in which it was last recorded
        self.within: _Recording | None = None
        weakref.finalize(self, _quietly, os.getpid(), queue.driver.event_destroy, self.handle).atexit = False

    def __repr__(self) -> str:
        return f"<event of {self.queue.name}>"


class _Recording:
    """Record of one capture.

    Attributes:
      broken: the first call that was refused. ``wanted``: does it, where the recording may begin anew behind it.
      members: the queues that it took in.
    """

    __slots__ = ("broken", "members", "open", "wanted")

    def __init__(self, origin: CudaQueue) -> None:
        self.broken: Exception | None = None
        self.members = [origin]
        self.open = True
        self.wanted: Callable[[], object] | None = None

    def refuse(self, call: str, why: str = "") -> Exception:
        error = errors.FailedPreconditionError(
            f"{call} is refused while a segment is recorded" + (f": {why}" if why else ""),
            hint="do it before or after the captured segment",
        )
        self.broken = self.broken or error
        return error

    def want(self, call: str, do: Callable[[], object]) -> Exception:
        """Refuse a call that has to be made once, by ``do``: a branch that no step has taken yet finds what it needs here."""
        if self.broken is None:
            self.wanted = do
        return self.refuse(call)


class CudaQueue(Queue):
    """One stream of a GPU.

    Attributes:
      stream: CUDA's handle.
      launches: kernels that were queued here, those of replays not counted; ``replays``: recordings that were replayed.
    """

    device: CudaDevice

    def __init__(self, device: CudaDevice, name: str) -> None:
        self.device = device
        self.name = name
        self.driver: Driver = device.driver
        self.launches = 0
        self.replays = 0
        self.recording: _Recording | None = None
        with device.current():
            self.stream = self.driver.stream()
            weakref.finalize(self, device.pool.retire, self.stream).atexit = False
            self.arguments: Array = device.lasting(device.argument_bytes)
        self._send: Sender | None = None

    def _open(self, call: str) -> _Recording | None:
        """The recording that this queue belongs to; refuses what would disturb another one of this thread."""
        threads = self.device.recording
        if threads is not self.recording:
            found = threads or self.recording
            assert found is not None
            raise found.refuse(
                f"{call} on {self.name}", "the queue is not part of it" if threads else "by another thread"
            )
        return threads

    @contextmanager
    def _calling(self, doing: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            raised = self.device.explained(error, doing)
            if raised is error:
                raise
            raise raised from error

    # -- copies

    def copy(self, src: Array, dst: Array) -> None:
        self._open("copy")
        if src.nbytes != dst.nbytes:
            raise errors.InvalidArgumentError(
                "a copy between arrays of different sizes", expected=repr(dst), got=repr(src)
            )
        if not src.nbytes:
            return
        there, here = src.block.device, self.device.index
        with self._calling("copy"):
            if there == here:
                self.driver.copy(dst.address, src.address, src.nbytes, self.stream)
            else:
                self.driver.copy_peer(dst.address, here, src.address, there, src.nbytes, self.stream)

    def from_host(self, array: NDArray[Any], dst: Array) -> None:
        self._open("from_host")
        if array.nbytes:
            with self._calling("copy from the host"):
                self.driver.copy(dst.address, array.ctypes.data, array.nbytes, self.stream)

    def to_host(self, src: Array, dst: NDArray[Any]) -> None:
        self._open("to_host")
        if src.nbytes:
            with self._calling("copy to the host"):
                self.driver.copy(dst.ctypes.data, src.address, src.nbytes, self.stream)

    def set_arguments(self, data: bytes | bytearray | memoryview) -> None:
        recording = self._open("set_arguments")
        if recording is not None:
            raise recording.refuse("set_arguments")
        if len(data) > self.device.argument_bytes:
            raise errors.InvalidArgumentError(
                "step arguments are too long", expected=f"at most {self.device.argument_bytes}", got=str(len(data))
            )
        if self._send is None:
            self._send = Sender(self.device, self.arguments.address, self.stream)
        with self._calling("send the step's arguments"):
            self._send(data)

    # -- memory

    def allocate(self, nbytes: int) -> Block:
        recording = self._open("allocate")
        if recording is not None:
            raise recording.refuse("allocate")
        return self.device.pool.take(nbytes, self.stream)

    def free(self, storage: Block) -> None:
        for found in (self.device.recording, self.recording):
            if found is not None:
                raise found.refuse("free")
        if storage.stream != self.stream:
            raise errors.InvalidArgumentError(f"{self.name} frees a block that is not of its allocate")
        self.device.pool.give(storage)

    def empty(self, dtype: DType, shape: Sequence[int]) -> Array:
        nbytes = dtype.size
        for dim in shape:
            nbytes *= dim
        return array_over(self.allocate(nbytes or 1), 0, dtype, shape)

    # -- order

    def event(self) -> CudaEvent:
        with self._calling("make an event"):
            return CudaEvent(self)

    def record(self, event: Event | None = None) -> Event:
        event = self.event() if event is None else event
        if not isinstance(event, CudaEvent) or event.queue is not self:
            raise errors.InvalidArgumentError(f"{self.name} can't record {event!r}, which is not its own")
        recording = self._open("record")
        with self._calling("record an event"):
            self.driver.event_record(event.handle, self.stream)
        event.recorded, event.within = recording is None, recording
        return event

    def wait(self, event: Event) -> None:
        if not isinstance(event, CudaEvent):
            raise errors.InvalidArgumentError(f"{self.name} can't wait for {event!r}, which is of another driver")
        if event.within is not None:
            self._join(event)
        elif self._open("wait") is not None:
            assert self.recording is not None
            raise self.recording.refuse(f"wait on {self.name} for {event!r}", "it was recorded outside")
        elif not event.recorded:
            raise errors.FailedPreconditionError(f"{self.name} waits for {event!r}, which was never recorded")
        with self._calling("wait for an event"):
            self.driver.stream_wait(self.stream, event.handle)

    def _join(self, event: CudaEvent) -> None:
        """This queue takes part in the recording in which ``event`` was recorded."""
        recording = event.within
        assert recording is not None
        if not recording.open:
            raise errors.FailedPreconditionError(
                f"{self.name} waits for {event!r}, which was recorded within a captured segment",
                hint="record it again, after the replay",
            )
        if recording is not self.device.recording:
            raise recording.refuse(f"wait on {self.name}", "by another thread")
        if self.recording is None:
            self.device.pool.begin_recording(self.stream)
            self.recording = recording
            recording.members.append(self)

    def synchronize(self) -> None:
        for found in (self.device.recording, self.recording):
            if found is not None:
                raise found.refuse(f"synchronize on {self.name}")
        with self._calling("run what was queued"):
            try:
                self.driver.stream_synchronize(self.stream)
            except Exception as error:
                self._wait_all_the_same(error)
                raise
        self.device.check_errors(self)

    def _wait_all_the_same(self, error: Exception) -> None:
        """After a fence that was refused: others take it that the work is done. On a lost device none will be."""
        if isinstance(self.device.explained(error, "run what was queued"), errors.DeviceLostError):
            return
        try:
            self.driver.stream_synchronize(self.stream)
        except Exception as late:  # noqa: BLE001 - the first error is raised; this one stands beside it
            error.add_note(f"and again: {late}")

    # -- recorded work

    def capture(self, body: Callable[[], None]) -> Callable[[], None]:
        if self._open("capture") is not None:
            assert self.recording is not None
            raise self.recording.refuse("capture", "it records already")
        self.device.pool.settle()
        graph = None
        while graph is None:
            recording = _Recording(self)
            try:
                graph = self._recorded(body, recording)
            except errors.FailedPreconditionError:
                if recording.wanted is None:
                    raise
                recording.wanted()
        with self._calling("instantiate a recorded segment"):
            try:
                make = functools.partial(self.driver.instantiate, graph, self.stream)
                executable = self.device.relieved("instantiate a recorded segment", make)
            finally:
                self.driver.graph_destroy(graph)
        return _Replay(self, executable)

    def _recorded(self, body: Callable[[], None], recording: _Recording) -> int:
        """The graph of what ``body`` queues. The collector rests: what it would free may not be freed within a recording."""
        driver = self.driver
        with _recorder, collector_paused(), self._calling("record a segment"):
            self.device.pool.begin_recording(self.stream)
            try:
                driver.capture_begin(self.stream)
                self.recording = self.device.recording = recording
                try:
                    body()
                except BaseException as error:
                    self._discard(error)
                    raise
                finally:
                    recording.open = False
                    self.device.recording = None
                    for member in recording.members:
                        member.recording = None
                if recording.broken is not None:
                    self._discard(recording.broken)
                    raise recording.broken
                return driver.capture_end(self.stream)
            finally:
                for member in recording.members:
                    self.device.pool.end_recording(member.stream)

    def branch(self, flag: Array, then: Callable[[], None], otherwise: Callable[[], None] | None = None) -> None:
        if self._open("branch") is None:
            super().branch(flag, then, otherwise)
            return
        first, second = self._condition(), 0 if otherwise is None else self._condition()
        self._set(flag, first, second)
        self._body(first, False, then)
        if otherwise is not None:
            self._body(second, False, otherwise)

    def loop(self, flag: Array, test: Callable[[], None], body: Callable[[], None]) -> None:
        if self._open("loop") is None:
            super().loop(flag, test, body)
            return

        def iteration() -> None:
            body()
            test()
            self._set(flag, condition, 0)

        test()
        condition = self._condition()
        self._set(flag, condition, 0)
        self._body(condition, True, iteration)

    def _condition(self) -> int:
        with self._calling("record a condition"):
            return self.driver.condition(self.stream)

    def _set(self, flag: Array, condition: int, other: int) -> None:
        """Queue the kernel that sets the conditions of nodes behind it."""
        params = (u64(flag.address), u64(condition), u64(other))
        with self._calling("record a condition"):
            function = self.device.set_condition()
            Launch(self.driver, function, (1,), (1,), 0, params, self.stream).run()

    def _body(self, condition: int, repeats: bool, body: Callable[[], None]) -> None:
        """Record a conditional node. Where ``body`` raises, the whole recording is discarded."""
        with self._calling("record a condition"):
            self.driver.body_begin(self.stream, condition, repeats)
        body()
        with self._calling("record a condition"):
            self.driver.body_end(self.stream)

    def _discard(self, error: BaseException) -> None:
        """Leave a recording that failed."""
        try:
            self.driver.graph_destroy(self.driver.capture_end(self.stream))
        except Exception as late:  # noqa: BLE001 - why it failed is known; what the driver says of it stands beside
            error.add_note(f"and the driver: {late}")


class _Replay:
    """Queues a recorded segment again. It keeps its graph until the last reference goes."""

    __slots__ = ("__weakref__", "_launch", "_queue")

    def __init__(self, queue: CudaQueue, executable: int) -> None:
        self._queue = queue
        self._launch = functools.partial(queue.driver.graph_launch, executable, queue.stream)
        weakref.finalize(self, _quietly, os.getpid(), queue.driver.graph_exec_destroy, executable).atexit = False

    def __call__(self) -> None:
        queue = self._queue
        if queue.device.recording is not None:
            raise queue.device.recording.refuse("replay")
        try:
            self._launch()
        except Exception as error:
            raised = queue.device.explained(error, "replay a recorded segment")
            if raised is error:
                raise
            raise raised from error
        queue.replays += 1


def _quietly(process: int, destroy: Callable[[int], None], handle: int) -> None:
    """Give a handle back where nobody can be told: a lost device has lost its handles, too."""
    if process != os.getpid():  # it is the parent's, whose child was forked
        return
    try:
        destroy(handle)
    except Exception as error:
        if not isinstance(getattr(error, "status", None), int):
            raise
