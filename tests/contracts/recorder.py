"""Skeleton (a): a device as cuda is one. Its own memory space, its own queue, whole steps captured and replayed.

A buffer is an address and a size: dtype and shape are facts of the plan, which kernels learn when they are built. Kernels reach the
queue through the service ``launch``, version 1, which packages that own no device use as this one's own kernels do.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from graphdock.contracts import (
    ArgInfo,
    Bound,
    BuildContext,
    Device,
    DeviceFactory,
    DeviceInfo,
    DType,
    KernelDef,
    OutInfo,
    PlanNode,
    errors,
    hookimpl,
)
from numpy.typing import NDArray

DEVICE = "recorder"


@dataclass(frozen=True)
class Pointer:
    """A place in a block of device memory."""

    block: NDArray[np.uint8]
    offset: int
    nbytes: int

    def bytes(self) -> NDArray[np.uint8]:
        return self.block[self.offset : self.offset + self.nbytes]

    def typed(self, dtype: DType, shape: Sequence[int]) -> NDArray[Any]:
        """What a program on the device sees."""
        return np.ndarray(tuple(shape), dtype.np, self.block, self.offset)


Work = Callable[[], None]


class Stream:
    """One ordered queue. While a thread records, what it queues is kept for later; other threads go on as ever."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self._recordings: dict[int, list[tuple[str, Work]]] = {}
        self._order = threading.Lock()

    @property
    def recording(self) -> bool:
        """Whether the calling thread records."""
        return threading.get_ident() in self._recordings

    def record(self, body: Callable[[], None]) -> list[tuple[str, Work]]:
        """What ``body`` queues."""
        recorded = self._recordings[threading.get_ident()] = []
        try:
            body()
        finally:
            del self._recordings[threading.get_ident()]
        return recorded

    def enqueue(self, name: str, work: Work) -> None:
        recording = self._recordings.get(threading.get_ident())
        if recording is not None:
            recording.append((name, work))
            return
        self.run(name, (work,))

    def run(self, name: str, works: Sequence[Work]) -> None:
        with self._order:
            self.log.append(name)
            for work in works:
                work()


class Launcher:
    """The service ``launch``, version 1: runs a program over typed views of device memory, in queue order."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def __call__(
        self, name: str, program: Callable[..., None], arguments: Sequence[tuple[Pointer, DType, Sequence[int]]]
    ) -> None:
        held = tuple(arguments)
        self._stream.enqueue(name, lambda: program(*[p.typed(dtype, shape) for p, dtype, shape in held]))


class RecorderDevice(Device):
    """Counts what it is asked for: ``allocations``, ``captures``, ``replays``, and the log of its stream."""

    def __init__(self, info: DeviceInfo) -> None:
        super().__init__(info)
        self.stream = Stream()
        self.queue = self.stream
        self.allocations = 0
        self.captures = 0
        self.replays = 0
        self.activations = 0

    def allocate(self, nbytes: int, align: int = 64) -> NDArray[np.uint8]:
        self.allocations += 1
        return np.full(max(nbytes, 1), 0xFF, np.uint8)

    def view(self, storage: NDArray[np.uint8], offset: int, dtype: DType, shape: Sequence[int]) -> Pointer:
        return Pointer(storage, offset, dtype.size * math.prod(shape))

    def copy(self, src: Pointer, dst: Pointer) -> None:
        self.stream.enqueue("copy", lambda: np.copyto(dst.bytes(), src.bytes()))

    def from_host(self, array: NDArray[Any], dst: Pointer) -> None:
        staged = np.ascontiguousarray(array).reshape(-1).view(np.uint8).copy()
        self.stream.enqueue("host to device", lambda: np.copyto(dst.bytes(), staged))

    def to_host(self, src: Pointer, dst: NDArray[Any]) -> None:
        if self.stream.recording:
            raise errors.FailedPreconditionError("a copy to the host waits for the queue, which is being recorded")
        self.stream.log.append("device to host")
        dst.reshape(-1).view(np.uint8)[...] = src.bytes()

    def activate(self) -> None:
        self.activations += 1

    def capture(self, body: Callable[[], None]) -> Callable[[], None] | None:
        self.captures += 1
        recorded = self.stream.record(body)

        def replay() -> None:
            self.replays += 1
            self.stream.run(f"graph of {len(recorded)}", [work for _, work in recorded])

        return replay

    def service(self, name: str, version: int) -> Any:
        if (name, version) == ("launch", 1):
            return Launcher(self.stream)
        return super().service(name, version)


class RecorderFactory(DeviceFactory):
    """There are two of them."""

    device_type = DEVICE

    def probe(self) -> list[DeviceInfo]:
        return [DeviceInfo(DEVICE, i) for i in range(2)]

    def open(self, info: DeviceInfo, options: Mapping[str, Any]) -> Device:
        return RecorderDevice(info)


def whole_shapes(node: PlanNode) -> str | None:
    """A pointer has no shape of its own, so every shape must be known when the kernel is built."""
    for value in (*node.inputs, *node.outputs):
        if value.shape is None or None in value.shape:
            return f"the shape of {value.name} is not known"
    return None


def elementwise(name: str, program: Callable[..., Any]) -> Callable[[BuildContext], Bound]:
    """``build`` of a kernel that launches one program over the inputs and the output."""

    def build(ctx: BuildContext) -> Bound:
        launch = ctx.device.service("launch", 1)
        infos: list[ArgInfo | OutInfo] = [*ctx.inputs, *ctx.outputs]
        facts = [(info.dtype, tuple(d or 0 for d in info.shape or ())) for info in infos]

        def compute(*pointers: Pointer) -> None:
            launch(name, program, [(p, dtype, shape) for p, (dtype, shape) in zip(pointers, facts, strict=True)])

        return Bound(compute)

    return build


@hookimpl
def register_devices() -> Iterable[DeviceFactory]:
    return [RecorderFactory()]


@hookimpl
def register_kernels() -> Iterable[KernelDef]:
    return [
        KernelDef("Mul", DEVICE, elementwise("mul", np.multiply), check=whole_shapes, modes=("planned",)),
        KernelDef(
            "AssignAddVariableOp",
            DEVICE,
            elementwise("assign_add", lambda variable, value: np.add(variable, value, variable)),
            check=whole_shapes,
            modes=("planned",),
        ),
    ]
