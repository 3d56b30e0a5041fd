"""A host's cuda plugin on another CUDA than the machine's."""

from __future__ import annotations

from typing import Any

from graphdock_cuda.device import CudaDevice
from graphdock_cuda.driver.api import Toolkit
from graphdock_cuda.factory import CudaFactory

__all__ = ["install"]


def install(host: Any, toolkit: Toolkit, device: int = 0) -> CudaDevice:
    """Let the host's plugin ``cuda`` work on ``toolkit``, and open a device of it.

    Raises FailedPreconditionError where the host has looked for GPUs already.
    """
    host.backend("cuda")
    factory = host.devices.get("cuda")
    assert isinstance(factory, CudaFactory)
    factory.use(toolkit)
    opened = host.open_device(f"/device:cuda:{device}")
    assert isinstance(opened, CudaDevice)
    return opened
