"""The backend ``queued``: cpu's kernels on the fake driver, through its queues.

    device = graphdock_testing.queued.install(host, seed=7)
    tf.Session(config=tf.SessionConfig(backends=("queued", "cpu")), host=host)

A kernel is launched on the queue that it was built for (``BuildContext.queue``). What it computes happens when somebody waits. Host
inputs and the state of random streams are read when it is launched, as a real launch reads its arguments. Its inputs are
read-only while it runs. Fresh outputs of known shape are allocated in the order of the queue; a kernel whose output shape depends
on values settles the queue first, and so does one with outputs in host memory: neither can be captured. Strings stay elsewhere.

It is installed with graphdock and blocked: ``GRAPHDOCK_PLUGINS=queued GRAPHDOCK_BACKENDS=queued,cpu python program.py`` runs
any program on it (or ``allow = ["queued"]`` under ``[plugins]``). ``[session.options.queued]`` takes a ``seed``: which of the
many orders that a driver may choose. ``install`` gives a host a driver of its own; what the device offers to tests (``faults``,
``lose``, ``launches``, ``in_use``, ``driver.scheduler.step``, ``races.check(device)``) is in :mod:`graphdock_testing.driver`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from graphdock.contracts import (
    Bound,
    BuildContext,
    DeviceFactory,
    DeviceInfo,
    KernelDef,
    OpDef,
    build_kernel,
    dtypes,
    hookimpl,
)
from graphdock.contracts.kernel_errors import kernel_error
from graphdock.errors import InternalError

from graphdock_testing import doubles
from graphdock_testing.doubles import LaunchedStream, cpu_kernels
from graphdock_testing.driver.device import Driver, DriverDevice
from graphdock_testing.driver.memory import Array, Buffer
from graphdock_testing.driver.queue import DriverQueue
from graphdock_testing.driver.roles import roles

__all__ = ["DEVICE", "Plugin", "QueuedFactory", "install", "register_devices", "register_kernels", "wrap"]

DEVICE = "queued"

#: Bytes of device memory hold these.
_PLAIN = tuple(name for name, dtype in dtypes.ALL.items() if dtype.size)


class QueuedFactory(DeviceFactory):
    """Opens devices of one driver, as many as asked for.

    Args:
      seed, laziness: of the interleaving, see ``driver.scheduler``.
      stream_slots: of each device.
      shared: all devices have one memory space; else each has its own. ``peers``: each copies from the others' memory.
      fetch_bytes: of each device, see QueuedDevice.
      memory: bytes of a memory space; 0 for as many as there are.
    """

    device_type = DEVICE
    virtual = True

    def __init__(
        self,
        *,
        seed: int = 0,
        laziness: float | None = None,
        stream_slots: int = 2,
        shared: bool = False,
        memory: int = 0,
        peers: bool = False,
        fetch_bytes: int = 0,
    ) -> None:
        self.driver = Driver(seed, laziness)
        self._laziness, self._opened = laziness, False
        self._stream_slots, self._shared, self._memory = stream_slots, shared, memory
        self._peers, self._fetch_bytes = peers, fetch_bytes

    def probe(self) -> list[DeviceInfo]:
        about = {"queue": "runs when waited for"}
        return [DeviceInfo(DEVICE, 0, self._memory, about, architecture="numpy", multiprocessors=1)]

    def open(self, info: DeviceInfo, options: Mapping[str, Any]) -> DriverDevice:
        if not self._opened and "seed" in options:
            self.driver = Driver(options["seed"], self._laziness)
        self._opened = True
        space = DEVICE if self._shared else None
        return DriverDevice(info, self.driver, space, self._stream_slots, self._memory, self._peers, self._fetch_bytes)


# -- which of cpu's kernels


def wrap(kernel: KernelDef, opdef: OpDef) -> KernelDef | None:
    """The cpu kernel as a kernel of this backend; None where it takes no dtype that device memory holds.

    Strings are in host memory.
    """
    variables = {t.name for t in opdef.types}
    types = dict(kernel.types)
    for arg in (*opdef.inputs, *opdef.outputs):
        if arg.memory == "host" or arg.name in kernel.host or arg.dtype == "string":
            continue
        if arg.dtype == "variant":  # histories are lists, whose buffers this backend's kernels do not look into
            return None
        if arg.dtype in variables:
            allowed = types.get(arg.dtype) or next(t.allow for t in opdef.types if t.name == arg.dtype) or _PLAIN
            types[arg.dtype] = tuple(n for n in allowed if n in _PLAIN or (n == "string" and arg.arity == "many"))
            if not types[arg.dtype]:
                return None
    return replace(kernel, device=DEVICE, build=_builder(kernel), prepare=None, name=kernel.short_name, types=types)


def _builder(kernel: KernelDef) -> Callable[[BuildContext], Bound]:
    def build(ctx: BuildContext) -> Bound:
        bound = build_kernel(kernel, ctx)
        launcher = _Launcher(ctx, bound)
        return replace(bound, compute=launcher.call, capture_safe=bound.capture_safe and launcher.capture_safe)

    return build


# -- launching them


class _Launcher:
    """One kernel of one node, bound to a queue."""

    def __init__(self, ctx: BuildContext, bound: Bound) -> None:
        assert isinstance(ctx.device, DriverDevice) and isinstance(ctx.queue, DriverQueue)
        self.device, self.queue = ctx.device, ctx.queue
        self.node, self.what = ctx.node, ctx.node.origin or ctx.node.op
        self.compute = bound.compute
        self.outputs = ctx.outputs
        self.kinds = [o.mode.kind for o in ctx.outputs]
        self.roles = roles(ctx, bound)
        on_host = any(o.memory_space != ctx.device.memory_space for o in ctx.outputs)
        fresh = "fresh" in self.kinds
        known = all(o.shape is not None and None not in o.shape for o in ctx.outputs)
        self.capture_safe = not on_host and not fresh
        self.call: Callable[..., Any]
        if self.kinds and all(kind == "view" for kind in self.kinds):
            self.call = self.view
        elif on_host:
            self.call = self.at_once
        elif fresh:
            self.call = self.fresh if known else self.measured
        else:
            self.call = self.later

    def view(self, *args: Any) -> Any:
        """No work: another array over an input's storage."""
        sources = [a.storage for a in args if isinstance(a, Buffer)]
        made = []
        for result in _several(self._compute([a.array if isinstance(a, Buffer) else a for a in args])):
            holders = [s for s in sources if not result.size or np.may_share_memory(result, s.block.bytes)]
            if not holders:
                raise InternalError(f"kernel of {self.node.op} returned no view of its input", op=self.node.origin)
            made.append(Buffer(holders[0], result))
        return made if len(made) > 1 else made[0]

    def later(self, *args: Any) -> None:
        """Writes into buffers that it is given."""
        arrays, reads, writes = self._taken(args)
        self.queue.launch(self.what, lambda: self._compute(arrays), reads, writes, self._blame)

    def fresh(self, *args: Any) -> Any:
        """Writes into buffers of its own, allocated in the order of the queue."""
        arrays, reads, writes = self._taken(args)
        made = [self.queue.empty(o.dtype, o.shape) for o in self.outputs]  # type: ignore[arg-type]
        targets = [buffer.array for buffer in made]

        def run() -> None:
            for target, result in zip(targets, _several(self._compute(arrays)), strict=True):
                np.copyto(target, result)

        self.queue.launch(self.what, run, reads, [*writes, *made], self._blame)
        return made if len(made) > 1 else made[0]

    def measured(self, *args: Any) -> Any:
        """Waits for its inputs to know the shape of its outputs."""
        results = _several(self._now(args))
        made = [self.queue.empty(o.dtype, r.shape) for o, r in zip(self.outputs, results, strict=True)]
        targets = [buffer.array for buffer in made]

        def run() -> None:
            for target, result in zip(targets, results, strict=True):
                np.copyto(target, result)

        self.queue.launch(self.what, run, [], made, self._blame)
        return made if len(made) > 1 else made[0]

    def at_once(self, *args: Any) -> Any:
        """Waits for its inputs, and writes into or returns host memory."""
        result = self._now(args)
        if "fresh" not in self.kinds:
            return None
        made = []
        for one, info in zip(_several(result), self.outputs, strict=True):
            if info.memory_space == self.device.memory_space:
                buffer = self.queue.empty(info.dtype, one.shape)
                target = buffer.array
                self.queue.launch(self.what, _copy(target, one), [], [buffer], self._blame)
                one = buffer
            made.append(one)
        return made if len(made) > 1 else made[0]

    def _now(self, args: Sequence[Any]) -> Any:
        """Compute with what the queue has made until here."""
        arrays, reads, writes = self._taken(args)
        self.queue.launch(self.what, _nothing, reads, writes, self._blame)
        self.queue.settle()
        try:
            return self._compute(arrays)
        except Exception as error:
            blamed = self._blame(error)
            if blamed is error:
                raise
            raise blamed from error

    def _taken(self, args: Sequence[Any]) -> tuple[list[Any], list[Buffer], list[Buffer]]:
        """The arguments as work sees them, and the buffers that it reads and writes."""
        arrays: list[Any] = []
        reads: list[Buffer] = []
        writes: list[Buffer] = []
        for role, arg in zip(self.roles, args, strict=True):
            if not isinstance(arg, Buffer):
                arrays.append(_at_launch(arg, role.writes, self.queue))
                if getattr(arg, "slot", None) is not None:
                    reads.append(self.queue.arguments)
                continue
            array = arg.array.view()
            array.flags.writeable = array.flags.writeable and role.writes
            arrays.append(array)
            if role.reads:
                reads.append(arg)
            if role.writes:
                writes.append(arg)
        return arrays, reads, writes

    def _compute(self, arrays: Sequence[Any]) -> Any:
        with np.errstate(all="ignore"):
            return self.compute(*arrays)

    def _blame(self, error: Exception) -> Exception:
        return kernel_error(error, self.node)


def _several(result: Any) -> Sequence[Any]:
    return result if isinstance(result, (tuple, list)) else (result,)


def _copy(target: Array, source: Array) -> Callable[[], None]:
    return lambda: np.copyto(target, source)


def _nothing() -> None:
    pass


class _Stream(LaunchedStream):
    """A random stream as work sees it: the ordinal from the step arguments, the rest as it was at the launch."""

    def __init__(self, stream: Any, queue: DriverQueue) -> None:
        super().__init__(stream)
        self._slot = getattr(stream, "slot", None)
        self._arguments = queue.arguments.array

    def counter(self) -> Any:
        if self._slot is None:
            return self._launched
        word = self._arguments[self._slot : self._slot + 8]
        return int.from_bytes(word.tobytes(), "little"), *self._launched[1:]


def _at_launch(value: Any, written: bool, queue: DriverQueue) -> Any:
    """Host arguments as they are now; host memory that is written is itself."""
    if isinstance(value, np.ndarray):
        return value if written else value.copy()
    return _Stream(value, queue) if hasattr(value, "counter") and hasattr(value, "key") else value


# -- the plugin


class Plugin:
    """The plugin, with a driver of its own; arguments as for QueuedFactory."""

    def __init__(self, **options: Any) -> None:
        self.factory = QueuedFactory(**options)

    @hookimpl
    def register_devices(self) -> Iterable[DeviceFactory]:
        return [self.factory]

    @hookimpl
    def register_kernels(self, host: Any) -> Iterable[KernelDef]:
        return register_kernels(host)


@hookimpl
def register_devices() -> Iterable[DeviceFactory]:
    return [QueuedFactory()]


@hookimpl
def register_kernels(host: Any) -> Iterable[KernelDef]:
    wrapped = [wrap(kernel, host.ops.get(kernel.op)) for kernel in cpu_kernels(host)]
    return [kernel for kernel in wrapped if kernel is not None]


def install(host: Any, **options: Any) -> DriverDevice:
    """Register the plugin ``queued`` in a host, unless it is there, and open its first device; options as for QueuedFactory.

    A host that allows the installed one keeps that.
    """
    return doubles.install(host, DEVICE, Plugin(**options), DriverDevice)
