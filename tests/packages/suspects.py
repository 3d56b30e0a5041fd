"""Kernels that may be at fault, on three kinds of memory: the host's, a synchronous device's own, and one with queues.

A body is a function of arrays, ``body(x, *outs)``, as a cpu kernel has it: it writes the outputs that it is given, and returns
arrays where it is given none. ``host_with`` registers it as the kernel of ``fault.Op`` on one of :data:`PLACES`. Nothing protects
the arrays that it sees, as nothing protects memory from a real kernel.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

import graphdock as tf
import numpy as np
from graphdock.contracts import (
    ArgDef,
    Bound,
    BuildContext,
    Device,
    DeviceFactory,
    DeviceInfo,
    KernelDef,
    OpDef,
    OpLibrary,
    TypeVarDef,
    hookimpl,
)
from graphdock.plugin.host import Host
from graphdock_testing import queued
from graphdock_testing.driver.memory import Buffer
from graphdock_testing.driver.roles import roles

__all__ = ["PLACES", "Chip", "ChipBuffer", "ChipFactory", "host_with", "kernel", "opdef", "run"]

#: Device types by the kind of their memory.
PLACES = ("cpu", "chip", "queued")
_LIBRARY = "tests_suspect_ops"


class ChipBuffer:
    """Memory that the host can't read."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def dtype(self) -> np.dtype:
        return self.array.dtype


class Chip(Device):
    """A synchronous device with memory of its own, full of zeros: what hides a kernel that takes its output for zero."""

    def allocate(self, nbytes, align=64):
        return np.zeros(nbytes, np.uint8)

    def view(self, storage, offset, dtype, shape):
        return ChipBuffer(np.ndarray(tuple(shape), dtype.np, storage, offset))

    def copy(self, src, dst):
        np.copyto(dst.array, src.array)

    def from_host(self, array, dst):
        np.copyto(dst.array, array)

    def to_host(self, src, dst):
        np.copyto(dst, src.array)


class ChipFactory(DeviceFactory):
    device_type = "chip"

    def probe(self):
        return [DeviceInfo("chip")]

    def open(self, info, options):
        return Chip(info)


# -- kernels


def kernel(place: str, body: Callable[..., Any], op: str = "fault.Op", **fields: Any) -> KernelDef:
    """``body`` as a kernel of a device type."""
    scratch = fields.pop("scratch", ())

    def build(ctx: BuildContext) -> Bound:
        bound = Bound(body, scratch=scratch)
        if place == "cpu":
            return bound
        return Bound(_on_chip(body) if place == "chip" else _on_queue(ctx, bound), scratch=scratch)

    return KernelDef(op, place, build, **fields)


def _wrapped(result: Any) -> Any:
    if isinstance(result, np.ndarray):
        return ChipBuffer(result)
    return type(result)(map(_wrapped, result)) if isinstance(result, (list, tuple)) else result


def _on_chip(body: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: _wrapped(body(*[a.array if isinstance(a, ChipBuffer) else a for a in args]))


def _on_queue(ctx: BuildContext, bound: Bound) -> Callable[..., Any]:
    queue, known = ctx.queue, roles(ctx, bound)

    def launched(*args: Any) -> Any:
        arrays = [a.array if isinstance(a, Buffer) else a for a in args]
        pairs = [(role, a) for role, a in zip(known, args, strict=True) if isinstance(a, Buffer)]
        reads, writes = [a for r, a in pairs if r.reads], [a for r, a in pairs if r.writes]
        if not ctx.fresh:
            queue.launch("suspect", lambda: bound.compute(*arrays), reads, writes)
            return None
        queue.settle()  # its shape depends on values
        result = bound.compute(*arrays)
        return _on_device(result, queue)

    return launched


def _on_device(result: Any, queue: Any) -> Any:
    if isinstance(result, (list, tuple)):
        return type(result)([_on_device(r, queue) for r in result])
    if not isinstance(result, np.ndarray):
        return result
    made = queue.empty(tf.as_dtype(result.dtype), result.shape)
    queue.launch("suspect", lambda: np.copyto(made.array, result), [], [made])
    return made


# -- the op, and a host that has it


def opdef(outputs: int = 1, **facts: Any) -> OpDef:
    """``fault.Op(x) -> y`` (``y0``, ``y1`` where it has several), of equal dtype and shape."""
    names = ["y"] if outputs == 1 else [f"y{i}" for i in range(outputs)]
    kinds = (TypeVarDef("T", ("float32", "float64", "int32")),)
    inputs = (ArgDef("x", "T", "[*S]"),)
    return OpDef("fault.Op", inputs=inputs, outputs=tuple(ArgDef(n, "T", "[*S]") for n in names), types=kinds, **facts)


def host_with(
    *kernels: KernelDef, op: OpDef | None = None, factory: DeviceFactory | None = None, **options: Any
) -> Host:
    """A host with the plugin ``fault`` (the op, these kernels, the chip), and the backend ``queued``."""
    made = opdef() if op is None else op
    module = types.ModuleType(_LIBRARY)
    module.OPS, module.OPERATORS = {made.name: lambda: made}, {}  # type: ignore[attr-defined]
    sys.modules[_LIBRARY] = module

    class Plugin:
        @hookimpl
        def register_ops(self):
            return [OpLibrary(_LIBRARY)]

        @hookimpl
        def register_devices(self):
            return [ChipFactory() if factory is None else factory]

        @hookimpl
        def register_kernels(self):
            return list(kernels)

    host = Host()
    queued.install(host, **options)
    host.register("fault", Plugin())
    host.backend("fault")
    return host


def run(
    host: Host, place: str, value: Any, *, steps: int = 1, fetch: Any = None, dims: Any = "same", **config: Any
) -> Any:
    """``fault.Op`` on a placeholder; what the last of some steps gives. ``fetch(x, outputs)``: what is fetched."""
    array = np.asarray(value, np.float32)
    backends = ("fault", "cpu") if place == "chip" else tuple(dict.fromkeys((place, "fault", "cpu")))
    shape = array.shape if dims == "same" else dims
    with tf.Graph(host).as_default() as graph:
        x = tf.placeholder(tf.float32, shape)
        with tf.device(place):
            outputs = graph.add_op(host.ops.get("fault.Op"), [x], {"T": tf.float32}, "suspect").outputs
        fetched = (outputs[0] if len(outputs) == 1 else list(outputs)) if fetch is None else fetch(x, outputs)
        with tf.Session(config=tf.SessionConfig(backends=backends, **config), host=host, graph=graph) as sess:
            for _ in range(steps):
                result = sess.run(fetched, {x: array})
    return result
