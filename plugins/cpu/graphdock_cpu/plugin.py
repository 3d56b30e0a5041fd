"""Entry point of the ``cpu`` plugin."""

from __future__ import annotations

import importlib
from collections.abc import Iterable

from graphdock.contracts import DeviceFactory, KernelDef, hookimpl

#: Modules of ``graphdock_cpu.kernels``; each holds a list ``KERNELS``.
FAMILIES = (
    "array",
    "core",
    "counting",
    "custom",
    "indexing",
    "math",
    "matmul",
    "nn",
    "optimizers",
    "random",
    "reduce",
    "scatter",
    "train",
    "views",
)


@hookimpl
def register_devices() -> Iterable[DeviceFactory]:
    from graphdock_cpu.device import CpuFactory

    return [CpuFactory()]


@hookimpl
def register_kernels() -> Iterable[KernelDef]:
    kernels: list[KernelDef] = []
    for family in FAMILIES:
        kernels += importlib.import_module(f"graphdock_cpu.kernels.{family}").KERNELS
    return kernels
