"""Opens GPUs."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

from graphdock.contracts import DeviceFactory, DeviceInfo, DeviceUnavailable, errors

from graphdock_cuda import probe
from graphdock_cuda.device import CudaDevice
from graphdock_cuda.driver.api import Toolkit
from graphdock_cuda.driver.errors import explain, name_of
from graphdock_cuda.memory import Pinned

__all__ = ["CudaFactory"]

_BUSY = 46


class CudaFactory(DeviceFactory):
    """The GPUs of this machine.

    Args:
      make: CUDA; called at the first probe or opening, never before.
    """

    device_type = "cuda"

    def __init__(self, make: Callable[[], Toolkit] = probe.real_toolkit) -> None:
        self._make = make
        self._toolkit: Toolkit | None = None
        self._process = os.getpid()
        self._pinned: Pinned | None = None
        self._lock = threading.Lock()

    @property
    def toolkit(self) -> Toolkit:
        """CUDA, made when first needed. Raises DeviceUnavailable, in a child too that was forked after that."""
        with self._lock:
            if self._toolkit is None:
                self._process = os.getpid()
                self._toolkit = self._make()
                self._pinned = Pinned(self._toolkit.driver)
            if self._process != os.getpid():
                raise DeviceUnavailable(
                    "this process was forked from one that had opened CUDA, which stays there",
                    "start it with multiprocessing's method 'spawn' or 'forkserver', or fork before the first session",
                )
            return self._toolkit

    def use(self, toolkit: Toolkit) -> None:
        """Work on this CUDA, in place of the machine's. For tests, before the first probe or opening.

        Raises FailedPreconditionError after that.
        """
        with self._lock:
            if self._toolkit is not None:
                raise errors.FailedPreconditionError("this factory has found its GPUs already")
            self._make = lambda: toolkit

    def probe(self) -> list[DeviceInfo]:
        return probe.devices(self.toolkit.driver)

    def open(self, info: DeviceInfo, options: Mapping[str, Any]) -> CudaDevice:
        toolkit = self.toolkit
        assert self._pinned is not None
        try:
            return CudaDevice(info, toolkit, self._pinned, options)
        except Exception as error:
            status = getattr(error, "status", None)
            if status != _BUSY:
                raise explain(error, f"cuda:{info.index}", "open it") from error
            raise DeviceUnavailable(
                f"cuda:{info.index} is {name_of(status)}", "nvidia-smi lists processes and compute modes"
            ) from error

    def declared(self, architecture: str, options: Mapping[str, Any]) -> CudaDevice:
        from graphdock_cuda.declared import declared_toolkit

        toolkit = declared_toolkit(architecture)
        return CudaDevice(probe.info_of(0, toolkit.driver.properties(0)), toolkit, Pinned(toolkit.driver), options)
