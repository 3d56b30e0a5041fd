"""Faults of a device whose queues are threads: found by what an adversary queues before them, not by luck.

Each is a fault of the example ``tandem``, as an author would make it.
"""

from __future__ import annotations

import dataclasses
import sys
import threading
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from graphdock.contracts import Bound, DeviceFactory, KernelDef, hookimpl
from graphdock.plugin.host import Host

from planted.bench import Fault

TANDEM = Path(__file__).parents[3] / "examples" / "plugins" / "tandem" / "src"
#: Bytes of memory, few enough for leaks to be found.
MEMORY = 1 << 28


def load_tandem() -> Any:
    """The example's module of devices."""
    sys.path.insert(0, str(TANDEM))
    try:
        import graphdock_tandem.device as module

        return module
    finally:
        sys.path.remove(str(TANDEM))


tandem = load_tandem()


def opened(queue: Any = None, device: Any = None, memory: int = MEMORY) -> Any:
    """A device of tandem, or of a class derived from it, with queues of a class."""

    class Kind(device or tandem.TandemDevice):
        def new_queue(self):
            made = (queue or tandem.TandemQueue)(self, f"late/{self._made}")
            self._made += 1
            self._queues.add(made)
            return made

    info = dataclasses.replace(tandem.TandemFactory().probe()[0], device_type="late", memory_bytes=memory)
    return Kind(info, tandem.Board(memory))


def faulty() -> dict[str, tuple[Any, Any, str]]:
    """Name -> (queue, device, the check that finds it)."""

    class NoWait(tandem.TandemQueue):
        def wait(self, event):
            pass

    class WaitsForTheFirst(tandem.TandemQueue):
        """It waits for the first record of an event."""

        def record(self, event=None):
            known = None if event is None else event.point
            made = super().record(event)
            if known is not None:
                made.first = getattr(made, "first", known)
            return made

        def wait(self, event):
            self._line.work.put(getattr(event, "first", event.point).wait)

    class RecordsEarly(tandem.TandemQueue):
        """An event passes as soon as it is recorded."""

        def record(self, event=None):
            event = event or tandem.Event(self)
            event.point = threading.Event()
            event.point.set()
            return event

        def synchronize(self):
            done = threading.Event()
            self._line.work.put(done.set)
            done.wait()

    class ReadsLate(tandem.TandemQueue):
        def set_arguments(self, data):
            target = self.arguments.array[: len(data)]
            self._line.work.put(lambda: np.copyto(target, np.frombuffer(bytes(data), np.uint8)))

    class FencesNothing(tandem.TandemQueue):
        def synchronize(self):
            pass

    class OnePool(tandem.TandemQueue):
        """A freed block is any queue's at once."""

        def allocate(self, nbytes):
            pool = self.device.__dict__.setdefault("pool", [])
            return pool.pop() if pool else super().allocate(nbytes)

        def free(self, storage):
            self.device.__dict__.setdefault("pool", []).append(storage)

    class Leaks(tandem.TandemQueue):
        def free(self, storage):
            self.__dict__.setdefault("kept", []).append(storage)

    class Forgets(tandem.TandemDevice):
        """One queue is current, whatever the thread."""

        def activate(self, queue=None):
            previous = self.board.__dict__.get("one")
            self.board.one = self.board.threads.current = self.queue if queue is None else queue
            return previous

        def restore(self, previous):
            self.board.one = previous

    class OneCurrent(tandem.TandemQueue):
        def _give(self, run):
            (self.device.board.one or self)._line.work.put(run)

    class FromHostLater(tandem.TandemDevice):
        """from_host of the device returns before the array was read."""

        def from_host(self, array, dst):
            if not hasattr(self, "kept"):
                self.kept = self.new_queue()
                self.late = self.kept._line
            line = self.late
            gate = threading.Event()
            line.work.put(gate.wait)
            line.work.put(lambda: np.copyto(dst.array, array))
            self.gates = [*getattr(self, "gates", []), gate]

        def to_host(self, src, dst):
            for gate in getattr(self, "gates", []):
                gate.set()
            done = threading.Event()
            if hasattr(self, "late"):
                self.late.work.put(done.set)
                done.wait()
            super().to_host(src, dst)

    class WaitsItself(tandem.TandemQueue):
        """The host waits for the event, in place of the queue."""

        def wait(self, event):
            event.point.wait()

    class CopiesAtOnce(tandem.TandemQueue):
        """As a driver does whose memory of the host is not pinned: it returns when the copy is done."""

        def from_host(self, array, dst):
            super().from_host(array, dst)
            self.record().point.wait()

    class FetchesAtOnce(tandem.TandemQueue):
        def to_host(self, src, dst):
            super().to_host(src, dst)
            self.record().point.wait()

    class SetsAtOnce(tandem.TandemQueue):
        def set_arguments(self, data):
            super().set_arguments(data)
            self.record().point.wait()

    return {
        "the host waits in place of the queue": (WaitsItself, None, "late calls"),
        "from_host waits for its copy": (CopiesAtOnce, None, "late calls"),
        "to_host waits for its copy": (FetchesAtOnce, None, "late calls"),
        "set_arguments waits for its queue": (SetsAtOnce, None, "late calls"),
        "wait does nothing": (NoWait, None, "late waits"),
        "an event is waited for at its first record": (WaitsForTheFirst, None, "late waits"),
        "an event passes at once": (RecordsEarly, None, "late records"),
        "set_arguments reads late": (ReadsLate, None, "late arguments"),
        "the fence does not wait": (FencesNothing, None, "late fences"),
        "one pool for all queues": (OnePool, None, "late frees"),
        "blocks leak": (Leaks, None, "leaks"),
        "one queue is current for all threads": (OneCurrent, Forgets, "threads"),
        "from_host reads late": (None, FromHostLater, "late arguments"),
    }


def _changed(change: Callable[[Any, Any, Any], Any]) -> Callable[[KernelDef], KernelDef]:
    """A kernel of tandem on the device ``late``; ``change(ctx, compute, args)`` is what it does when it is called."""

    def make(kernel: KernelDef) -> KernelDef:
        def build(ctx: Any) -> Bound:
            made = kernel.build(ctx)
            bound = made if isinstance(made, Bound) else Bound(made)
            return dataclasses.replace(bound, compute=lambda *args: change(ctx, bound.compute, args))

        return dataclasses.replace(kernel, device="late", build=build)

    return make


def _blocks(ctx: Any, compute: Any, args: Any) -> Any:
    made = compute(*args)
    ctx.queue.synchronize()
    return made


def _looks(ctx: Any, compute: Any, args: Any) -> Any:
    """It reads an input back, to see whether the numbers are right."""
    ctx.device.wait_host(ctx.queue.record())
    return compute(*args)


def _reads_late(ctx: Any, compute: Any, args: Any) -> Any:
    import graphdock_tandem.kernels as module

    taken, module._taken = module._taken, lambda v: v.array if isinstance(v, tandem.Buffer) else v
    try:
        return compute(*args)
    finally:
        module._taken = taken


#: Name -> (what a call does, the op whose ``late`` case finds it).
LAUNCHES: dict[str, tuple[Callable[..., Any], str]] = {
    "a launch fences its queue": (_blocks, "Tanh"),
    "a launch waits for its inputs": (_looks, "MatMul"),
    "an update fences its queue": (_blocks, "ResourceApplyGradientDescent"),
    "a kernel reads host arguments late": (_reads_late, "Sum"),
}


def kernels(change: Callable[..., Any] | None = None) -> list[KernelDef]:
    """tandem's kernels on the device ``late``."""
    sys.path.insert(0, str(TANDEM))
    try:
        from graphdock_tandem.kernels import KERNELS
    finally:
        sys.path.remove(str(TANDEM))
    return [_changed(change or (lambda ctx, compute, args: compute(*args)))(kernel) for kernel in KERNELS]


def event_host(queue: Any = None, device: Any = None, launch: Callable[..., Any] | None = None) -> Host:
    """A host whose plugin ``fault`` has the device ``late``; with ``launch``, which a kernel's call does, tandem's kernels too."""

    class Factory(DeviceFactory):
        device_type = "late"

        def probe(self):
            return [dataclasses.replace(tandem.TandemFactory().probe()[0], device_type="late", memory_bytes=MEMORY)]

        def open(self, info, options):
            return opened(queue, device)

    host = Host()
    hook = hookimpl(specname="register_devices")(lambda: [Factory()])
    mine = hookimpl(specname="register_kernels")(lambda: [] if launch is None else kernels(launch))
    host.register("fault", types.SimpleNamespace(__name__="fault", register_devices=hook, register_kernels=mine))
    return host


def faults() -> list[Fault]:
    kit = frozenset({"conformance"})
    queued = [
        Fault(name, "event", "threads", kit, lambda told=told: event_host(*told[:2]), text=told[2])
        for name, told in faulty().items()
    ]
    launched = [
        Fault(name, "event", "threads", kit, lambda told=told: event_host(launch=told[0]), text=f"{told[1]}[late")
        for name, told in LAUNCHES.items()
    ]
    return queued + launched
