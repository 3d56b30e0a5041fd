"""Entry point of the ``cuda`` plugin. It touches no driver and imports no binding to one."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable

from graphdock.contracts import DeviceFactory, KernelDef, hookimpl

from graphdock_cuda.driver.api import Toolkit

#: Modules of ``graphdock_cuda.kernels``; each holds a list ``KERNELS``.
FAMILIES: tuple[str, ...] = (
    "elementwise",
    "layer_norm",
    "matmul",
    "normalization",
    "softmax",
)


def kernels() -> list[KernelDef]:
    """All kernels of the package."""
    found: list[KernelDef] = []
    for name in FAMILIES:
        found += importlib.import_module(f"graphdock_cuda.kernels.{name}").KERNELS
    return found


@hookimpl
def register_devices() -> Iterable[DeviceFactory]:
    from graphdock_cuda.factory import CudaFactory

    return [CudaFactory()]


@hookimpl
def register_kernels() -> Iterable[KernelDef]:
    return kernels()


class Plugin:
    """The plugin over a CUDA of one's own, for ``Host.register("cuda", Plugin(make))``: tests, tools.

    Args:
      make: CUDA; called at the first probe or opening.
    """

    def __init__(self, make: Callable[[], Toolkit]) -> None:
        from graphdock_cuda.factory import CudaFactory

        self.factory = CudaFactory(make)

    @hookimpl
    def register_devices(self) -> Iterable[DeviceFactory]:
        return [self.factory]

    @hookimpl
    def register_kernels(self) -> Iterable[KernelDef]:
        return kernels()
