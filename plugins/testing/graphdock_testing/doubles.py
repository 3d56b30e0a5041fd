"""Doubles of devices: the default backend's kernels to wrap, arguments as a launch reads them, and installation."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from graphdock.contracts import Device, KernelDef

__all__ = ["LaunchedStream", "at_launch", "cpu_kernels", "install"]

D = TypeVar("D", bound=Device)


class LaunchedStream:
    """What a random stream said when a kernel was launched."""

    def __init__(self, stream: Any) -> None:
        self.key = stream.key
        self._launched = stream.counter()

    def counter(self) -> Any:
        return self._launched


def at_launch(value: Any) -> Any:
    """A host argument as it is now; buffers of a device stay what they will be."""
    if isinstance(value, np.ndarray):
        return value.copy()
    return LaunchedStream(value) if hasattr(value, "counter") and hasattr(value, "key") else value


def cpu_kernels(host: Any) -> list[KernelDef]:
    """The kernels of the plugin ``cpu``, which is loaded."""
    host.backend("cpu")
    return [r.kernel for r in host.kernels.all() if r.kernel.device == "cpu" and r.plugin == "cpu"]


def install(host: Any, name: str, plugin: Any, kind: type[D]) -> D:
    """Register a plugin in a host, unless one of the name is there, and open the first device of that type."""
    if all(state.name != name for state in host.plugins()):
        host.register(name, plugin)
    device: Device = host.open_device(f"/device:{name}:0")
    assert isinstance(device, kind)
    return device
