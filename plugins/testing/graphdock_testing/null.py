"""A device that does nothing, for tests of planning and explaining: kernels of every op for which shapes are all that is made.

    testing.null.install(host)
    tf.Session(config=tf.SessionConfig(backends=("null",)), host=host).explain(loss)

Results are zeros of the right dtype and shape. Where a shape depends on values (Where), unknown dims count as 0. Loops whose
condition is computed on this device end at once: their condition reads as False.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
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
    hookimpl,
)

from graphdock_testing import doubles

__all__ = ["NullDevice", "NullFactory", "install", "register_devices", "register_kernels"]

DEVICE = "null"


class NullBuffer:
    """A shape without elements."""

    __slots__ = ("shape",)

    def __init__(self, shape: Sequence[int]) -> None:
        self.shape = tuple(shape)


class NullDevice(Device):
    """Has no memory; ``launches`` counts kernels."""

    def __init__(self, info: DeviceInfo) -> None:
        super().__init__(info)
        self.launches = 0

    def allocate(self, nbytes: int, align: int = 64) -> None:
        return None

    def view(self, storage: Any, offset: int, dtype: DType, shape: Sequence[int]) -> NullBuffer:
        return NullBuffer(shape)

    def copy(self, src: NullBuffer, dst: NullBuffer) -> None:
        pass

    def from_host(self, array: Any, dst: NullBuffer) -> None:
        pass

    def to_host(self, src: NullBuffer, dst: Any) -> None:
        dst.fill(b"" if dst.dtype.hasobject else 0)


class NullFactory(DeviceFactory):
    """Opens null devices, as many as asked for."""

    device_type = DEVICE
    virtual = True

    def probe(self) -> list[DeviceInfo]:
        return [DeviceInfo(DEVICE)]

    def open(self, info: DeviceInfo, options: Mapping[str, Any]) -> Device:
        return NullDevice(info)


def _build(ctx: BuildContext) -> Bound:
    device, outputs = ctx.device, ctx.outputs
    assert isinstance(device, NullDevice)

    def make(index: int) -> Any:
        out = outputs[index]
        shape = tuple(0 if d is None else d for d in out.shape or ())
        if out.memory_space == device.memory_space:
            return NullBuffer(shape)
        return np.full(shape, b"" if out.dtype.kind == "S" else 0, out.dtype.np)

    made = [i for i, out in enumerate(outputs) if out.mode.kind in ("fresh", "view")]

    def compute(*args: Any) -> Any:
        device.launches += 1
        for value in args[len(ctx.inputs) :]:
            if isinstance(value, np.ndarray):
                value.fill(b"" if value.dtype.hasobject else 0)
        if not made:
            return None
        results = [make(i) for i in made]
        return results if len(results) > 1 else results[0]

    return Bound(compute)


@hookimpl
def register_devices() -> Iterable[DeviceFactory]:
    return [NullFactory()]


@hookimpl
def register_kernels(host: Any) -> Iterable[KernelDef]:
    """A kernel for every op of every library, besides what the host runs itself."""
    kernels = []
    for op in host.ops.names():
        opdef = host.ops.get(op)
        if not opdef.verb.kernel:
            continue
        names = tuple(a.name for a in (*opdef.inputs, *opdef.outputs) if a.memory == "host")
        kernels.append(KernelDef(op, DEVICE, _build, layout="strided", host=names))
    return kernels


def install(host: Any) -> NullDevice:
    """Register the plugin ``null`` in a host, unless it is there, and open its first device."""
    return doubles.install(host, DEVICE, sys.modules[__name__], NullDevice)
