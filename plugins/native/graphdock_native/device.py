"""Devices in C: a shared library with the table of functions of ``include/graphdock/device.h``, as a device of queues.

    DEVICE = NativeDevice("slate", "_native/slate", package="graphdock_slate")
    KERNELS = [DEVICE.kernel("Relu", "relu", types={"T": ["float32"]})]

``DEVICE.factory()`` is what ``register_devices`` returns. The library is opened by the probe, never by declaring kernels.
"""

from __future__ import annotations

import functools
import itertools
import threading
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from graphdock import errors
from graphdock.contracts import (
    DeviceFactory,
    DeviceInfo,
    DeviceUnavailable,
    KernelDef,
    Queue,
    QueuedDevice,
    kernel_error,
)
from graphdock.errors import GraphdockError, PluginError

from graphdock_native.abi import DTYPES, STATUSES, cffi_of
from graphdock_native.library import NativeLibrary

__all__ = ["NativeDevice"]

#: Of the structs in device.h.
VERSION = 1
_WITHIN, _FROM_STAGING, _INTO_STAGING, _FROM_HOST = range(4)


@functools.cache
def _cffi() -> Any:
    return cffi_of("device.h", "device declarations", "const gd_device_api *graphdock_device(void);")


class _Api:
    """The library's functions, whose statuses become errors."""

    def __init__(self, path: Path) -> None:
        self.ffi = _cffi()
        if not path.is_file():
            raise PluginError(f"the native library {path} is not there", hint="reinstall its package, or build it")
        try:
            self._library = self.ffi.dlopen(str(path.resolve()))
            self.table = self._library.graphdock_device()
        except (OSError, AttributeError) as error:
            raise PluginError(
                f"the native library {path} is no device: {error}", hint="put GRAPHDOCK_DEVICE into one of its sources"
            ) from error
        if (self.table.version, self.table.size) != (VERSION, self.ffi.sizeof("gd_device_api")):
            raise PluginError(
                f"the native library {path} was compiled for another version of graphdock's interface for devices",
                expected=f"version {VERSION} of {self.ffi.sizeof('gd_device_api')} bytes",
                got=f"version {self.table.version} of {self.table.size} bytes",
                hint="compile it again with this graphdock's device.h",
            )

    def call(self, function: str, *args: Any) -> None:
        """Call a function of the table, with a buffer for its message. Raises the error of its status."""
        error = self.ask(function, *args)
        if error is not None:
            raise error

    def ask(self, function: str, *args: Any) -> GraphdockError | None:
        """Likewise; returns the error."""
        message = self.ffi.new("char[512]")
        status = getattr(self.table, function)(*args, message)
        if status == 0:
            return None
        text = self.ffi.string(message).decode("utf-8", "replace") or f"{function} returned status {status}"
        return STATUSES.get(status, errors.InternalError)(text)

    def made(self, kind: str, function: str, *args: Any) -> Any:
        """Return what a function of the table writes to its last argument."""
        out = self.ffi.new(kind)
        self.call(function, *args, out)
        return out[0]


class _Block:
    """Memory of the device; given back at the latest when nobody refers to it any more, in the order of its queue if it has one."""

    def __init__(self, device: _Device, address: Any, queue: _Queue | None) -> None:
        self.address = address
        self.release = weakref.finalize(self, _release, device.api, device.handle, queue, address)
        self.release.atexit = False


def _release(api: _Api, device: Any, queue: _Queue | None, address: Any) -> None:
    api.call("release", device, api.ffi.NULL if queue is None else queue.handle, address)


class _Buffer:
    """An array in the device's memory."""

    __slots__ = ("address", "dtype", "nbytes", "shape", "storage")

    def __init__(self, storage: _Block, address: Any, dtype: Any, shape: tuple[int, ...]) -> None:
        self.storage, self.address, self.dtype, self.shape = storage, address, dtype, shape
        self.nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize


class _Event:
    def __init__(self, device: _Device) -> None:
        self.device, self.recorded = device, False
        self.queue: _Queue | None = None
        self.handle = device.api.made("gd_event **", "new_event", device.handle)
        weakref.finalize(self, device.api.table.free_event, self.handle).atexit = False

    def checked(self) -> Any:
        if not self.recorded:
            raise errors.FailedPreconditionError(f"an event of {self.device.memory_space} was never recorded")
        return self.handle


class _Queue(Queue):
    """A queue of the library."""

    def __init__(self, device: _Device, name: str) -> None:
        self.device: Any = device
        self.name, self.api = name, device.api
        self.handle = self.api.made("gd_queue **", "new_queue", device.handle)
        weakref.finalize(self, self.api.table.free_queue, self.handle).atexit = False
        self._nodes: dict[int, Any] = {}
        self._tags = itertools.count(1)
        size = device.argument_bytes
        self.arguments = device.view(device.allocate(size), 0, np.dtype(np.uint8), (size,))

    def _check_current(self) -> None:
        current = getattr(self.device.threads, "current", None)
        if current is not self:
            raise errors.FailedPreconditionError(f"work for {self.name} while {current} is current on this thread")

    def launch(self, node: Any, name: str, arguments: Sequence[Any]) -> None:
        """Queue a kernel over buffers, and arrays of host memory."""
        self._check_current()
        ffi, count = self.api.ffi, len(arguments)
        told = ffi.new("gd_argument[]", max(count, 1))
        kept: list[Any] = []
        for one, value in zip(told, arguments, strict=False):
            on_host = not isinstance(value, _Buffer)
            array: Any = np.ascontiguousarray(value) if on_host else value
            shape = ffi.new("int64_t[]", array.shape or (0,))
            kept.append((array, shape))
            one.data = ffi.cast("void *", array.ctypes.data) if on_host else array.address
            one.shape, one.rank, one.on_host = shape, len(array.shape), on_host
            one.size, one.dtype = int(np.prod(array.shape, dtype=np.int64)), DTYPES[array.dtype.name]
        tag = next(self._tags)
        self._nodes[tag] = node
        self.api.call("launch", self.handle, name.encode(), told, count, tag)

    def _copy(self, target: Any, source: Any, nbytes: int, kind: int) -> None:
        self._check_current()
        pointers = [self.api.ffi.cast("void *", p) if isinstance(p, int) else p for p in (target, source)]
        self.api.call("copy", self.handle, *pointers, nbytes, kind)

    def copy(self, src: Any, dst: Any) -> None:
        self._copy(dst.address, src.address, dst.nbytes, _WITHIN)

    def from_host(self, array: Any, dst: Any) -> None:
        self._copy(dst.address, array.view(np.ndarray).ctypes.data, dst.nbytes, _FROM_STAGING)

    def to_host(self, src: Any, dst: Any) -> None:
        self._copy(dst.view(np.ndarray).ctypes.data, src.address, src.nbytes, _INTO_STAGING)

    def set_arguments(self, data: Any) -> None:
        taken = np.frombuffer(bytes(data), np.uint8)
        if taken.size > self.device.argument_bytes:
            raise errors.InvalidArgumentError("step arguments are too long", got=f"{taken.size} bytes")
        arguments: Any = self.arguments
        self._copy(arguments.address, taken.ctypes.data, taken.size, _FROM_HOST)

    def allocate(self, nbytes: int) -> _Block:
        block: _Block = self.device.take(nbytes, self.device.alignment, self)
        return block

    def free(self, storage: _Block) -> None:
        if storage.release.detach() is None:
            raise errors.FailedPreconditionError(f"{self.name} frees a block that was freed before")
        self.api.call("release", self.device.handle, self.handle, storage.address)

    def event(self) -> _Event:
        return _Event(self.device)

    def record(self, event: Any = None) -> _Event:
        event = event or self.event()
        self.api.call("record", self.handle, event.handle)
        event.queue, event.recorded = self, True
        return event  # type: ignore[no-any-return]

    def wait(self, event: Any) -> None:
        if not isinstance(event, _Event) or event.device.threads is not self.device.threads:
            raise errors.InvalidArgumentError(f"{self.name} can't wait for {event!r}, which is of another driver")
        self.api.call("wait", self.handle, event.checked())

    def synchronize(self) -> None:
        tag = self.api.ffi.new("int64_t *")
        last = next(self._tags)
        error = self.api.ask("synchronize", self.handle, tag)
        node = self._nodes.get(tag[0])
        self._nodes = {t: n for t, n in self._nodes.items() if t > last}
        if error is not None:
            raise error if node is None else kernel_error(error, node) from error


class _Device(QueuedDevice):
    """A device of the library."""

    def __init__(self, info: DeviceInfo, api: _Api, memory: int, threads: threading.local) -> None:
        super().__init__(info)
        self.api, self.threads = api, threads
        self.handle = api.made("gd_device **", "open", info.index, memory)
        self._queues: weakref.WeakSet[_Queue] = weakref.WeakSet()
        self._made = itertools.count()

    def new_queue(self) -> _Queue:
        queue = _Queue(self, f"{self.memory_space}/queue:{next(self._made)}")
        self._queues.add(queue)
        return queue

    def activate(self, queue: Any = None) -> Any:
        previous = getattr(self.threads, "current", None)
        self.threads.current = self.queue if queue is None else queue
        return previous

    def restore(self, previous: Any) -> None:
        self.threads.current = previous

    def take(self, nbytes: int, align: int, queue: _Queue | None = None) -> _Block:
        """A block, for work of a queue alone, or for any."""
        whose = self.api.ffi.NULL if queue is None else queue.handle
        made = self.api.ffi.new("void **")
        self.api.call("allocate", self.handle, whose, nbytes, align, made)
        return _Block(self, made[0], queue)

    def allocate(self, nbytes: int, align: int = 256) -> _Block:
        return self.take(nbytes, max(align, self.alignment))

    def view(self, storage: Any, offset: int, dtype: Any, shape: Sequence[int]) -> _Buffer:
        address = self.api.ffi.cast("char *", storage.address) + offset
        return _Buffer(
            storage, self.api.ffi.cast("void *", address), np.dtype(getattr(dtype, "np", dtype)), tuple(shape)
        )

    def staging(self, nbytes: int) -> Any:
        block = np.empty(nbytes + self.alignment, np.uint8)
        start = -block.ctypes.data % self.alignment
        return block[start : start + nbytes]

    def passed(self, event: Any) -> bool:
        return bool(self.api.made("int32_t *", "passed", event.checked()))

    def wait_host(self, event: Any) -> None:
        self.api.call("wait_host", event.checked())

    def synchronize(self) -> None:
        for queue in list(self._queues):
            self.wait_host(queue.record())

    def extent(self, buffer: Any) -> tuple[int, int]:
        return int(self.api.ffi.cast("intptr_t", buffer.address)), buffer.nbytes


class NativeDevice:
    """A device type of a shared library.

    Args:
      device_type: its name. ``file``, ``package``: as of a :class:`NativeLibrary`.
    """

    def __init__(self, device_type: str, file: str | Path, package: str | None = None) -> None:
        self.device_type = device_type
        self._library = NativeLibrary(file, package)

    @functools.cached_property
    def api(self) -> Any:
        return _Api(self._library.path)

    def factory(self) -> DeviceFactory:
        """The factory that ``register_devices`` returns. The plugin's option ``memory`` says how many bytes a device may take."""
        return _Factory(self)

    def kernel(
        self,
        op: str,
        name: str,
        *,
        attrs: Sequence[str] = (),
        shape: Callable[..., Sequence[int]] | None = None,
        **fields: Any,
    ) -> KernelDef:
        """The KernelDef of a kernel of the library, which ``launch`` is called for with ``name``.

        Args:
          attrs: attributes of the op (numbers, bools or lists of them), which follow inputs and outputs.
          shape: ``(*shapes of the inputs, **attrs)`` -> the output's, for plans that don't know it; default: broadcast. Its
            ValueError is an error of the call.
          fields: of KernelDef.
        """

        def build(ctx: Any) -> Callable[..., Any]:
            queue, node, outputs = ctx.queue, ctx.node, ctx.outputs
            values = {attr: ctx.attr(attr) for attr in attrs}
            told = [np.array(v, np.float64 if np.array(v).dtype.kind == "f" else np.int64) for v in values.values()]

            def planned(*args: Any) -> None:
                queue.launch(node, name, [*args, *told])

            def fresh(*args: Any) -> Any:
                try:
                    shapes = [a.shape for a in args]
                    known = np.broadcast_shapes(*shapes) if shape is None else shape(*shapes, **values)
                except ValueError as error:
                    raise errors.InvalidArgumentError(str(error)) from None
                made = queue.empty(outputs[0].dtype, tuple(known))
                planned(*args, made)
                return made

            return fresh if ctx.fresh else planned

        return KernelDef(op, self.device_type, build, name=name, **fields)


class _Factory(DeviceFactory):
    def __init__(self, native: NativeDevice) -> None:
        self.device_type = native.device_type
        self._native = native
        self._threads = threading.local()

    def probe(self) -> list[DeviceInfo]:
        try:
            count = self._native.api.made("int32_t *", "count")
        except errors.UnavailableError as error:
            raise DeviceUnavailable(error.message) from error
        return [DeviceInfo(self.device_type, i) for i in range(count)]

    def open(self, info: DeviceInfo, options: Any) -> _Device:
        return _Device(info, self._native.api, options.get("memory", 0), self._threads)
