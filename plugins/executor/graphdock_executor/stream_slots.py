"""Stream slots: the queues of a device that steps take turns on, and what one instance of a step has of them.

A queued device has a few stream slots. An instance is bound to one of each queued device that its step uses; a step locks its
stream slots (:mod:`graphdock.contracts.runtime.resource_lock`) before it locks any variable, and gives them back after its fence.
So a stream slot runs one step at a time, and a step that waits for a variable never keeps one from a step that could free it. The
instance of a step that may block has stream slots of its own.

Where steps overlap (``steps_in_flight``), a step may end before its fence: its stream slots remember it
(:mod:`graphdock_executor.in_flight`), and whoever takes one of them next waits for it first. So a fence never meets errors
of two steps.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from graphdock.contracts.device import Device
from graphdock.contracts.queue import Event, Queue, QueuedDevice
from graphdock.contracts.runtime.resource_lock import LockRequest, LockSet, ResourceLock
from graphdock.contracts.runtime.resources import Resource
from graphdock.contracts.step import StepContext
from graphdock.errors import AbortedError, CancelledError, DeadlineExceededError, DeviceLostError, format_error

from graphdock_executor.device_error import asking
from graphdock_executor.lower.records import Lowered
from graphdock_executor.storage import Root
from graphdock_executor.stream_slot import Accesses, StreamFence, StreamSlot, shared_stream_slot, synchronize, unshare

__all__ = ["SLOTS_LOCK", "StreamSlots", "Recording", "devices_of", "lend", "worker_of"]

#: Errors of a step that no other error of it comes before.
_RAISED_AS_IT_IS = (AbortedError, CancelledError, DeadlineExceededError, DeviceLostError)
#: The lock of all stream slots; each step locks its own.
SLOTS_LOCK = ResourceLock()


def worker_of(device: Device, stream_slots: Mapping[Device, StreamSlot]) -> Any:
    """Worker that copies and allocates for a device in a step: its queue, or a synchronous device itself."""
    stream_slot = stream_slots.get(device)
    return device if stream_slot is None else stream_slot.queue


class StreamSlots:
    """The stream slots of one instance.

    Args:
      devices: the queued devices of the step.
      own: stream slots that nobody else uses, for a step that may block.
      label: names the step in messages.
      touches: resource -> the devices whose queues touch it in the step (None: the host), and whether they write it.
      overlaps: other steps may follow before this one's fence: it leaves fences.
      wanted: how many stream slots of a device there should be.

    Attributes:
      holder: of the stream slots, under :data:`SLOTS_LOCK`; a step that runs on them holds them from before its other locks until
        its fence. One that ends before that stays in flight there.
      fences: what the last step left, where steps overlap: one per stream slot.
    """

    def __init__(
        self,
        devices: Iterable[QueuedDevice],
        own: bool,
        label: Callable[[], str],
        touches: Mapping[Resource, Mapping[Device | None, bool]] = MappingProxyType({}),
        overlaps: bool = False,
        wanted: int = 1,
    ) -> None:
        self.of: dict[Device, StreamSlot] = {
            d: StreamSlot(d) if own else shared_stream_slot(d, wanted) for d in devices
        }
        self._taken = sorted(self.of.values(), key=lambda slot: slot.number)
        self._own = own
        self.holder = LockRequest(LockSet(label, writes=self._taken))
        self._accesses = Accesses(touches, self.of)
        self._ends: dict[StreamSlot, Event] | None = (
            {slot: slot.queue.event() for slot in self._taken} if overlaps else None
        )
        self._step: StepContext | None = None
        self._queued = self._open = self._follows = False
        self.fences: tuple[StreamFence, ...] = ()

    def close(self) -> None:
        """The instance is gone."""
        shared = () if self._own else self._taken
        self._own = True
        unshare(shared)

    def __iter__(self) -> Iterator[StreamSlot]:
        """The stream slots, in canonical order."""
        return iter(self._taken)

    def take(self, step: StepContext, function: Callable[..., Any], *args: Any) -> Any:
        """``function(*args)``, which runs this step. The caller holds the stream slots. Waits for what is in flight on them."""
        for stream_slot in self._taken:
            if stream_slot.in_flight is not None:
                stream_slot.in_flight.synchronize(stream_slot)
        self._step, self._queued, self._follows = step, False, False
        try:
            return function(*args)
        finally:
            self._step = None

    def follow(self) -> None:
        """Order what the step is about to do to its resources after what was queued to them. It has locked them."""
        self._accesses.follow()

    def follow_later(self) -> None:
        """As :meth:`follow`, where the step itself says: after what it sends ahead."""
        self._follows = True

    def follow_now(self) -> None:
        """The step has sent ahead what touches none of its resources."""
        if self._follows:
            self._follows = False
            self._accesses.follow()

    def queued(self) -> None:
        """All that the step does is queued: its resources get fences, and its locks on them end. A second call does nothing."""
        assert self._ends is not None and self._step is not None
        if self._queued:
            return
        made = {stream_slot: stream_slot.record(event) for stream_slot, event in self._ends.items()}
        self.fences = tuple(made.values())
        self._accesses.record(made)
        self._queued = True
        self._step.release_locks()

    def run(self, arguments: Mapping[Device, bytes], call: Callable[..., Any], feeds: Sequence[Any]) -> Any:
        """``call(*feeds)`` while the stream slots' queues are current on this thread, with these step arguments.

        At the end they are fenced, also after an error; unless the step may end before its work, and nothing went wrong.
        """
        try:
            with self.entered():
                return self._until_fence(arguments, call, feeds)
        finally:
            if self._open:  # an interrupt came where nothing else catches it
                error = sys.exception()
                assert error is not None
                _first(error, self._synchronize())

    def _until_fence(self, arguments: Mapping[Device, bytes], call: Callable[..., Any], feeds: Sequence[Any]) -> Any:
        self._open = True
        try:
            for device, data in arguments.items():
                self._set_arguments(self.of[device], data)
            results = call(*feeds)
            if self._ends is not None and self._step is not None:
                self.queued()
                if self._step.on_submit is not None:
                    self._step.on_submit(self)
                    self._open = False
                    return results
        except BaseException as error:
            first = _first(error, self._synchronize())
            if first is error:
                raise
            raise first from first.__cause__
        errors = self._synchronize()
        if errors:
            raise _first(errors[0], errors[1:])
        return results

    def _set_arguments(self, stream_slot: StreamSlot, data: bytes) -> None:
        with asking(stream_slot.device, "set_arguments"):
            previous = stream_slot.device.activate(stream_slot.queue)
            try:
                stream_slot.queue.set_arguments(data)
            finally:
                stream_slot.device.restore(previous)

    def _synchronize(self) -> list[BaseException]:
        """Wait for every stream slot, whatever happens meanwhile; an interrupt comes first among the errors."""
        errors: list[BaseException] = []
        for stream_slot in self._taken:
            try:
                stream_slot.synchronize()
                stream_slot.in_flight = None  # of this step, where an interrupt came while it was submitted
            except BaseException as error:  # noqa: BLE001 - the first one is raised, the others stand beside it
                errors.append(error)
        self._open = not all(isinstance(error, Exception) for error in errors)
        return sorted(errors, key=lambda error: isinstance(error, Exception))

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Each device and its queue are current on this thread; nothing is fenced. For making an instance."""
        previous: list[tuple[StreamSlot, Any]] = []
        try:
            for stream_slot in self._taken:
                with asking(stream_slot.device, "activate"):
                    previous.append((stream_slot, stream_slot.device.activate(stream_slot.queue)))
            yield
        finally:
            for stream_slot, found in reversed(previous):
                stream_slot.device.restore(found)

    def bind(self, namespace: dict[str, Any], lowered: Lowered) -> None:
        """Give the names of a step that stand for devices and queues their values."""
        of = self.of
        for name, (device, called) in lowered.methods.items():
            namespace[name.text] = _method(worker_of(device, of), called)
        for name, device in lowered.workers.items():
            namespace[name.text] = worker_of(device, of)
        for name, (device, dtype) in lowered.copiers.items():
            namespace[name.text] = _copier(worker_of(device, of), device, dtype)
        for name, queued in lowered.events.items():
            namespace[name.text] = of[queued].queue.event()
        namespace["follow"] = self.follow_now
        if self._ends is not None:
            namespace["queued"] = self.queued

    def bind_staging(self, namespace: dict[str, Any], device: QueuedDevice, nbytes: int, roots: Sequence[Root]) -> None:
        """Cut a step's staging memory from one block."""
        with asking(device, f"staging of {nbytes} bytes"):
            block = device.staging(max(nbytes, 1))
        for root in roots:
            cut = block[root.offset : root.offset + root.nbytes]  # of the block's own kind, which may watch its uses
            namespace[root.name] = cut.view(root.dtype.np).reshape(root.shape)


def _first(error: BaseException, late: Sequence[BaseException]) -> BaseException:
    """Choose which of a step's errors is raised; the others are noted on it.

    What a fence raises comes from work that was queued before the step stopped, so that it comes first: what stopped the step may
    only have stumbled over what that work left. What stops a step on purpose, or a lost device, is raised as it is.
    """
    stays = not isinstance(error, Exception) or isinstance(error, _RAISED_AS_IT_IS)
    first = next((e for e in late if not stays or not isinstance(e, Exception)), error)
    for other in (error, *late):
        if other is not first:
            first.add_note(f"besides, {format_error(other)}")
    return first


def _method(worker: Any, called: str) -> Callable[..., Any]:
    """Function that a step calls: of a queue, whose fences name its device, or of a synchronous device."""
    if isinstance(worker, Queue) and called == "synchronize":
        return functools.partial(synchronize, worker)
    if isinstance(worker, Queue) and called == "activate":
        return functools.partial(worker.device.activate, worker)
    made: Callable[..., Any] = getattr(worker, called)
    return made


def devices_of(lowered: Lowered) -> list[QueuedDevice]:
    """The queued devices that a step uses."""
    found: dict[Device, None] = {}
    for device, _ in (*lowered.methods.values(), *lowered.copiers.values()):
        found.setdefault(device)
    for device in (*lowered.workers.values(), *lowered.staging.values(), *lowered.events.values()):
        found.setdefault(device)
    for build in lowered.builds:
        if build.told is not None:
            found.setdefault(build.told.device)
    return [d for d in found if isinstance(d, QueuedDevice)]


def _copier(worker: Any, device: Device, dtype: Any) -> Callable[[Any], Any]:
    def copy(buffer: Any) -> Any:
        made = worker.empty(dtype, device.shape_of(buffer))
        worker.copy(buffer, made)
        return made

    return copy


class Recording:
    """A part of a step that its device records: run as it is the first time, recorded the second, replayed from then on.

    The first run lets kernels make what they make once (handles, workspaces), which no recording may hold.
    """

    __slots__ = ("_capture", "_ran", "_run")

    def __init__(self, body: Callable[[], None], capture: Callable[[Callable[[], None]], Callable[[], None] | None]):
        self._run = body
        self._capture: Callable[[Callable[[], None]], Callable[[], None] | None] | None = capture
        self._ran = False

    def __call__(self) -> None:
        if self._capture is not None and self._ran:
            from graphdock_executor.kernel_sanitizer import unchecked

            capture, self._capture = self._capture, None
            with unchecked():
                self._run = capture(self._run) or self._run
        self._ran = True
        self._run()


def lend(device: QueuedDevice, root: Root) -> Any:
    """Staging memory of its own for what a step fetches, as an array.

    A step that fails holds it until its fence: its error holds the step's names.
    """
    with asking(device, f"staging of {root.nbytes} bytes"):
        memory = device.staging(root.nbytes)
    return memory.view(root.dtype.np).reshape(root.shape)
