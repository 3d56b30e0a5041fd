"""A fake asynchronous device for tests: its own memory space, and a queue that runs late.

    host.register("fake", graphdock_testing.fake)      # or testing.fake.install(host)
    tf.Session(config=tf.SessionConfig(backends=("fake", "cpu")), host=host)

Every cpu kernel is wrapped: ``compute`` only appends a closure to the device's queue; what it computes happens, in order, when
something waits for the device (``to_host``, ``synchronize``, or the shape of a buffer that a kernel has yet to make). Until then
planned buffers hold whatever they held, so that a runtime which reads too early, frees too early or forgets a transfer computes
wrong numbers. Buffers are no NumPy arrays: host code that touches one by mistake fails at once. Host inputs and the state of
random streams are read when the kernel is queued, as a real launch reads its arguments.
"""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from graphdock.contracts import (
    Bound,
    BuildContext,
    Device,
    DeviceFactory,
    DeviceInfo,
    DType,
    KernelDef,
    build_kernel,
    hookimpl,
)
from graphdock.contracts.kernel_errors import kernel_error
from graphdock.locks import new_lock

from graphdock_testing import doubles
from graphdock_testing.doubles import at_launch, cpu_kernels

__all__ = ["FakeBuffer", "FakeDevice", "FakeFactory", "install", "register_devices", "register_kernels"]

DEVICE = "fake"


class FakeBuffer:
    """Memory of a fake device. ``array`` is None until the kernel that makes the buffer has run."""

    __slots__ = ("array", "device")

    def __init__(self, device: FakeDevice, array: np.ndarray[Any, Any] | None) -> None:
        self.device = device
        self.array = array

    def settled(self) -> np.ndarray[Any, Any]:
        """The array; waits for the queue when no kernel has made it yet."""
        if self.array is None:
            self.device.synchronize()
            assert self.array is not None
        return self.array

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.settled().shape)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"host code reads a buffer of {self.device!r} as if it were a NumPy array")


class FakeDevice(Device):
    """See the module. ``launches`` counts queued kernels; ``waits`` how often somebody waited for the queue."""

    def __init__(self, info: DeviceInfo) -> None:
        super().__init__(info)
        self._work: deque[Callable[[], None]] = deque()
        self._lock = new_lock()
        self.launches = 0
        self.waits = 0
        self.queue = self

    # -- the queue

    def enqueue(self, work: Callable[[], None]) -> None:
        with self._lock:
            self._work.append(work)

    @property
    def pending(self) -> int:
        """How much queued work has not run."""
        return len(self._work)

    def synchronize(self) -> None:
        with self._lock:
            self.waits += 1
            work = self._work
            try:
                while work:
                    work.popleft()()
            except BaseException:
                work.clear()
                raise

    # -- memory

    def allocate(self, nbytes: int, align: int = 64) -> np.ndarray[Any, Any]:
        return np.full(max(nbytes, 1), 0xFF, np.uint8)

    def view(self, storage: Any, offset: int, dtype: DType, shape: Sequence[int]) -> FakeBuffer:
        if dtype.size == 0:
            return FakeBuffer(self, np.full(shape, b"", object))
        return FakeBuffer(self, np.ndarray(shape, dtype.np, storage, offset))

    def empty(self, dtype: DType, shape: Sequence[int]) -> FakeBuffer:
        if dtype.size == 0:
            return FakeBuffer(self, np.full(shape, b"", object))
        return self.view(self.allocate(dtype.size * math.prod(shape)), 0, dtype, shape)

    def copy(self, src: FakeBuffer, dst: FakeBuffer) -> None:
        self.enqueue(lambda: np.copyto(dst.settled(), src.settled()))

    def from_host(self, array: Any, dst: FakeBuffer) -> None:
        staged = np.array(array, copy=True)
        self.enqueue(lambda: np.copyto(dst.settled(), staged))

    def to_host(self, src: FakeBuffer, dst: Any) -> None:
        self.synchronize()
        np.copyto(dst, src.settled())


class FakeFactory(DeviceFactory):
    """Opens fake devices, as many as asked for; each has a memory space of its own."""

    device_type = DEVICE
    virtual = True

    def probe(self) -> list[DeviceInfo]:
        return [DeviceInfo(DEVICE, 0, 0, {"queue": "runs when waited for"})]

    def open(self, info: DeviceInfo, options: Mapping[str, Any]) -> Device:
        return FakeDevice(info)


def wrap(kernel: KernelDef) -> KernelDef:
    """The cpu kernel as a kernel of the fake device."""

    def build(ctx: BuildContext) -> Bound:
        bound = build_kernel(kernel, ctx)
        compute = _launcher(ctx, bound)
        return replace(bound, compute=compute)

    return replace(kernel, device=DEVICE, build=build, prepare=None, name=kernel.short_name)


def _launcher(ctx: BuildContext, bound: Bound) -> Callable[..., Any]:
    device, compute, node = ctx.device, bound.compute, ctx.node
    assert isinstance(device, FakeDevice)
    kinds = [o.mode.kind for o in ctx.outputs]
    on_host = any(o.memory_space != device.memory_space for o in ctx.outputs)

    def call(args: Sequence[Any]) -> Any:
        try:
            with np.errstate(all="ignore"):
                return compute(*[a.settled() if isinstance(a, FakeBuffer) else a for a in args])
        except Exception as error:
            explained = kernel_error(error, node)
            if explained is error:
                raise
            raise explained from error

    def placed(result: Any) -> Any:
        """What compute returned, as buffers of the memory space of each output."""
        several = isinstance(result, (tuple, list))
        made = [
            r if o.memory_space != device.memory_space else FakeBuffer(device, r)
            for r, o in zip(result if several else (result,), ctx.outputs, strict=True)
        ]
        return made if several else made[0]

    def view(*args: Any) -> Any:
        return placed(call(args))

    def at_once(*args: Any) -> Any:
        device.launches += 1
        device.synchronize()
        result = call(args)
        if "fresh" not in kinds:
            return None
        return placed(result)

    def later(*args: Any) -> Any:
        device.launches += 1
        kept = [at_launch(a) for a in args]
        if "fresh" not in kinds:
            device.enqueue(lambda: call(kept))
            return None
        made = [FakeBuffer(device, None) for _ in kinds]

        def work() -> None:
            result = call(kept)
            for buffer, array in zip(made, result if isinstance(result, (tuple, list)) else (result,), strict=True):
                buffer.array = np.array(array, copy=True)

        device.enqueue(work)
        return made if len(made) > 1 else made[0]

    if kinds and all(k == "view" for k in kinds):
        return view
    return at_once if on_host else later


@hookimpl
def register_devices() -> Iterable[DeviceFactory]:
    return [FakeFactory()]


@hookimpl
def register_kernels(host: Any) -> Iterable[KernelDef]:
    return [wrap(kernel) for kernel in cpu_kernels(host) if not _reads_histories(host.ops.get(kernel.op))]


def _reads_histories(opdef: Any) -> bool:
    """Return whether an op takes or makes a list of buffers, into which this device's kernels do not look."""
    return any(arg.dtype == "variant" for arg in (*opdef.inputs, *opdef.outputs))


def install(host: Any) -> FakeDevice:
    """Register the plugin ``fake`` in a host, unless it is there, and open its first device."""
    return doubles.install(host, DEVICE, sys.modules[__name__], FakeDevice)
