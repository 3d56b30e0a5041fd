"""Any QueuedDevice under the race checker: its calls are watched at the boundary of the contract.

The device brings ``extent``. Its queues' methods are replaced on the instances, so that queues must be made after the first
``watch`` or ``check`` of the device: begin before the first session. Kernels are watched where they are bound:
``watch_kernels(host, "mychip")`` before the first session, too. The conformance kit does both.

What a kernel does beyond its arguments (a workspace of the queue, a queue of the kernel's own) is not seen. Memory that the
device gives out anew counts as nobody's: that it does so in the right order is its own affair.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from weakref import WeakSet

import numpy as np
from graphdock.contracts import (
    BindContext,
    Bound,
    BuildContext,
    KernelDef,
    PrepareContext,
    Prepared,
    Queue,
    QueuedDevice,
    build_kernel,
    dtypes,
)
from graphdock.errors import InvalidArgumentError

from graphdock_testing.driver.detector import Detector, Note, Range
from graphdock_testing.driver.roles import Role, roles
from graphdock_testing.driver.staging import Staging

__all__ = ["Instrument", "observers_of", "watch_kernels", "wrap_kernels"]

_ATTRIBUTE = "_graphdock_instrument"
#: Every watch: a queue may wait for an event of another device.
_watches: WeakSet[Instrument] = WeakSet()


def observers_of(device: Any) -> list[Detector]:
    """The detectors that a device tells of its work. Raises InvalidArgumentError for a device that can't be observed."""
    own: Callable[[], list[Detector]] | None = getattr(device, "observers", None)
    if own is not None:
        return own()
    if not isinstance(device, QueuedDevice):
        raise InvalidArgumentError(f"{device!r} can't be observed", hint="only a QueuedDevice has something to order")
    if type(device).extent is QueuedDevice.extent:
        raise InvalidArgumentError(f"{device!r} can't be observed", hint="give it `extent`, see QueuedDevice")
    present: Instrument | None = getattr(device, _ATTRIBUTE, None)
    return (present or Instrument(device)).observers


class _Point:
    """One record of an event."""


class Instrument:
    """The watch over one device; ``observers`` are told what happens. Without one, calls cost a test more."""

    def __init__(self, device: QueuedDevice) -> None:
        self.device = device
        self.observers: list[Detector] = []
        #: Event's id -> the event, its latest point, and the recording within which that lies.
        self._points: dict[int, tuple[Any, _Point, list[Note] | None]] = {}
        #: Storage's id -> its bytes.
        self._blocks: dict[int, Range] = {}
        #: Queue's name -> what it records.
        self._recordings: dict[str, list[Note]] = {}
        self._queues: list[str] = []
        _watches.add(self)
        setattr(device, _ATTRIBUTE, self)
        self._replace(device, "new_queue", lambda call: lambda: self._watch(call()))
        self._replace(device, "passed", self._passed)
        self._replace(device, "wait_host", self._wait_host)
        self._replace(device, "synchronize", self._all_fenced)
        self._replace(device, "staging", self._staging)
        self._replace(device, "allocate", self._allocate)
        if device._outside_queue is not None:
            self._watch(device._outside_queue)

    def _replace(self, owner: Any, name: str, around: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        try:
            setattr(owner, name, around(getattr(owner, name)))
        except AttributeError:
            raise InvalidArgumentError(f"{owner!r} can't be watched: it takes no attributes") from None

    # -- ranges

    def range_of(self, buffer: Any) -> Range:
        """Where a buffer of the device lies."""
        extent = self.device.extent(buffer)
        assert extent is not None
        return Range(self.device.memory_space, extent[0], extent[0] + extent[1])

    @staticmethod
    def _host_range(array: Any) -> Range:
        start = array.ctypes.data
        return Range("staging", start, start + array.nbytes)

    # -- calls of the device

    def _passed(self, call: Callable[[Any], bool]) -> Callable[[Any], bool]:
        def passed(event: Any) -> bool:
            point = self._points.get(id(event))
            answer = call(event)
            if answer and point is not None:
                for observer in self.observers:
                    observer.reached(point[1])
            return answer

        return passed

    def _wait_host(self, call: Callable[[Any], None]) -> Callable[[Any], None]:
        def wait_host(event: Any) -> None:
            point = self._points.get(id(event))
            call(event)
            if point is not None:
                for observer in self.observers:
                    observer.reached(point[1])

        return wait_host

    def _all_fenced(self, call: Callable[[], None]) -> Callable[[], None]:
        def synchronize() -> None:
            call()
            for observer in self.observers:
                for name in self._queues:
                    observer.fenced(name)

        return synchronize

    def _staging(self, call: Callable[[int], Any]) -> Callable[[int], Any]:
        def staging(nbytes: int) -> Any:
            memory = call(nbytes).view(Staging)
            memory.used = self._used
            for observer in self.observers:
                observer.forget([self._host_range(memory)])
            return memory

        return staging

    def _used(self, array: Any, write: bool) -> None:
        touched = [self._host_range(array)] if array.flags.c_contiguous else _pieces(array)
        for observer in self.observers:
            observer.host("the program", () if write else touched, touched if write else ())

    def _allocate(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def allocate(nbytes: int, *args: Any, **options: Any) -> Any:
            storage = call(nbytes, *args, **options)
            self._new(storage, nbytes)
            return storage

        return allocate

    def _new(self, storage: Any, nbytes: int) -> None:
        if nbytes:
            found = self.range_of(self.device.view(storage, 0, dtypes.uint8, (nbytes,)))
            self._blocks[id(storage)] = found
            for observer in self.observers:
                observer.forget([found])

    # -- calls of a queue

    def _watch(self, queue: Queue) -> Queue:
        self._queues.append(queue.name)
        name = queue.name
        for call in ("copy", "from_host", "to_host"):
            self._replace(queue, call, self._copy(name, call))
        self._replace(queue, "allocate", self._allocate)
        self._replace(queue, "free", self._free(name))
        self._replace(queue, "record", self._record(name))
        self._replace(queue, "wait", self._wait(name))
        self._replace(queue, "synchronize", self._fence(name))
        self._replace(queue, "set_arguments", self._set_arguments(queue))
        self._replace(queue, "capture", self._capture(name))
        return queue

    def access(self, queue: str, what: str, reads: Sequence[Range], writes: Sequence[Range]) -> None:
        """Work is queued, or recorded."""
        recording = self._recordings.get(queue)
        if recording is not None:
            recording.append(Note("access", queue, what, tuple(reads), tuple(writes)))
            return
        for observer in self.observers:
            observer.access(queue, what, reads, writes)

    def _copy(self, name: str, what: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
        source = self._host_range if what == "from_host" else self.range_of
        target = self._host_range if what == "to_host" else self.range_of

        def around(call: Callable[..., None]) -> Callable[..., None]:
            def copy(src: Any, dst: Any) -> None:
                call(src, dst)
                self.access(name, what, [source(src)], [target(dst)])

            return copy

        return around

    def _free(self, name: str) -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
        def around(call: Callable[[Any], None]) -> Callable[[Any], None]:
            def free(storage: Any) -> None:
                call(storage)
                found = self._blocks.pop(id(storage), None)
                if found is not None:
                    self.access(name, "free", [], [found])

            return free

        return around

    def _record(self, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def around(call: Callable[..., Any]) -> Callable[..., Any]:
            def record(event: Any = None) -> Any:
                made = call() if event is None else call(event)
                recording, point = self._recordings.get(name), _Point()
                self._points[id(made)] = made, point, recording
                if recording is not None:
                    recording.append(Note("record", name, point=point))
                else:
                    for observer in self.observers:
                        observer.record(name, point)
                return made

            return record

        return around

    def _wait(self, name: str) -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
        def around(call: Callable[[Any], None]) -> Callable[[Any], None]:
            def wait(event: Any) -> None:
                call(event)
                found = next((w._points[id(event)] for w in _watches if id(event) in w._points), None)
                if found is None:
                    return
                _, point, recording = found
                if recording is not None and any(recording is r for r in self._recordings.values()):
                    self._recordings[name] = recording
                    recording.append(Note("wait", name, point=point))
                else:
                    for observer in self.observers:
                        observer.wait(name, point)

            return wait

        return around

    def _fence(self, name: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
        def around(call: Callable[[], None]) -> Callable[[], None]:
            def synchronize() -> None:
                try:
                    call()
                finally:
                    for observer in self.observers:
                        observer.fenced(name)

            return synchronize

        return around

    def _set_arguments(self, queue: Queue) -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
        def around(call: Callable[[Any], None]) -> Callable[[Any], None]:
            def set_arguments(data: Any) -> None:
                call(data)
                space, start, _ = self.range_of(queue.arguments)
                self.access(queue.name, "set_arguments", [], [Range(space, start, start + len(data))])

            return set_arguments

        return around

    def _capture(self, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def around(call: Callable[..., Any]) -> Callable[..., Any]:
            def capture(body: Callable[[], None]) -> Callable[[], None] | None:
                notes: list[Note] = []

                def recorded() -> None:
                    self._recordings[name] = notes
                    body()

                try:
                    replay = call(recorded)
                finally:
                    self._recordings = {q: r for q, r in self._recordings.items() if r is not notes}
                if replay is None:
                    return None

                def watched() -> None:
                    replay()
                    for observer in self.observers:
                        observer.replay(name, notes)

                return watched

            return capture

        return around


def _pieces(array: Any) -> list[Range]:
    """The rows of a strided piece of host memory."""
    plain = array.view(np.ndarray)
    if plain.ndim < 2:
        return [
            Range("staging", at, at + plain.itemsize)
            for at in (plain[i : i + 1].ctypes.data for i in range(plain.size))
        ]
    return [
        found for row in plain for found in ([Instrument._host_range(row)] if row.flags.c_contiguous else _pieces(row))
    ]


def watch_kernels(host: Any, plugin: str) -> None:
    """Let the kernels of a plugin report what they read and write, on every device that is watched when they are built."""
    wrap_kernels(host, plugin, _reported)


def wrap_kernels(
    host: Any, plugin: str, around: Callable[[BuildContext, Bound], Bound], moving: Callable[[], bool] = lambda: False
) -> None:
    """Replace the kernels of a plugin by what ``around`` makes of each when it is bound.

    Kernels that are prepared while ``moving`` says so are told no address beforehand, and are not recorded.
    """
    mine = [r for r in host.kernels.all() if r.plugin == plugin]
    host.kernels.discard(plugin)
    for registered in mine:
        host.kernels.add(_wrapped(registered.kernel, around, moving), registered.plugin, registered.package)


def _wrapped(
    kernel: KernelDef, around: Callable[[BuildContext, Bound], Bound], moving: Callable[[], bool]
) -> KernelDef:
    name = kernel.short_name
    if kernel.prepare is None:
        return replace(kernel, build=lambda ctx: around(ctx, build_kernel(kernel, ctx)), name=name)
    told = kernel.prepare

    def prepare(ctx: PrepareContext) -> Prepared:
        prepared, moves = told(ctx), moving()

        def bind(at: BindContext) -> Callable[..., Any]:
            at = replace(at, buffers=(None,) * len(at.buffers)) if moves else at
            return around(at, prepared.facts(prepared.bind(at))).compute

        return replace(prepared, bind=bind, capture_safe=prepared.capture_safe and not moves)

    return replace(kernel, prepare=prepare, name=name)


def _reported(ctx: BuildContext, bound: Bound) -> Bound:
    instrument: Instrument | None = getattr(ctx.device, _ATTRIBUTE, None)
    if instrument is None or ctx.queue is None:
        return bound
    return replace(bound, compute=_reporting(ctx, bound, roles(ctx, bound), instrument))


def _reporting(ctx: BuildContext, bound: Bound, known: Sequence[Role], instrument: Instrument) -> Callable[..., Any]:
    compute, what, queue = bound.compute, ctx.node.origin or ctx.node.op, ctx.queue.name
    fresh = [o.memory_space == ctx.device.memory_space and o.mode.kind == "fresh" for o in ctx.outputs]
    views = bool(ctx.outputs) and all(o.mode.kind == "view" for o in ctx.outputs)

    def reported(*args: Any) -> Any:
        result = compute(*args)
        if views:
            return result
        mine = [(role, arg) for role, arg in zip(known, args, strict=True) if role.on_device]
        reads = [instrument.range_of(arg) for role, arg in mine if role.reads]
        writes = [instrument.range_of(arg) for role, arg in mine if role.writes]
        made = result if isinstance(result, (tuple, list)) else (result,)
        writes += [instrument.range_of(buffer) for buffer, new in zip(made, fresh, strict=False) if new]
        instrument.access(queue, what, reads, writes)
        return result

    return reported
