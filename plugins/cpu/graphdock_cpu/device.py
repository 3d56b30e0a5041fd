"""The cpu device: NumPy arrays in host memory, a synchronous queue.

A *virtual* device type: ``device_count={"cpu": 4}`` opens four devices over the one memory, which is how programs for
many devices are tested on one machine. All of them share the memory space ``"host"``, so that no copy is made between
them; with the option ``memories = "apart"`` all but the first have a memory space of their own, and what they exchange is copied.
"""

from __future__ import annotations

import functools
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from graphdock.contracts import HOST_MEMORY, Buffer, Device, DeviceFactory, DeviceInfo, DType, Storage, errors

if TYPE_CHECKING:
    from graphdock.contracts import Rates

__all__ = ["CpuDevice", "CpuFactory"]

#: Rows of the matrices, of which one thread computes the product, and elements of the arrays that are timed.
_ROWS, _ELEMENTS = 64, 1 << 20


class CpuDevice(Device):
    """Host memory as a device. Every method may be called from any thread.

    Args:
      apart: its buffers are arrays of its own, which other devices reach by copies; of the first device never.
    """

    def __init__(self, info: DeviceInfo, apart: bool = False) -> None:
        super().__init__(info)
        if not (apart and info.index):
            self.memory_space = HOST_MEMORY

    def service(self, name: str, version: int) -> Any:
        """``single-threaded``, 1: a context in which BLAS computes on the thread that calls it."""
        if (name, version) == ("single-threaded", 1):
            from graphdock_cpu.blas import one_thread

            return one_thread()
        return super().service(name, version)

    def allocate(self, nbytes: int, align: int = 64) -> Storage:
        """A uint8 array of ``nbytes`` bytes whose first byte is aligned to ``align`` (a power of two)."""
        try:
            block = np.empty(nbytes + align, np.uint8)
        except (MemoryError, ValueError) as error:  # the latter for more than a process can address
            raise errors.ResourceExhaustedError(
                f"cpu:{self.info.index} has no memory for a block of {nbytes} bytes",
                hint="use a smaller batch, or free what other sessions hold",
            ) from error
        start = -block.ctypes.data % align
        return block[start : start + nbytes]

    def view(self, storage: Storage, offset: int, dtype: DType, shape: Sequence[int]) -> Buffer:
        """An array over ``storage``. Strings and resources are Python objects, which raw bytes can't hold: they get
        an array of
        their own."""
        if dtype.size == 0:
            return np.empty(shape, object)
        return np.ndarray(shape, dtype.np, storage, offset)

    def empty(self, dtype: DType, shape: Sequence[int]) -> Buffer:
        return np.empty(shape, dtype.np)

    def copy(self, src: Buffer, dst: Buffer) -> None:
        np.copyto(dst, src)

    def from_host(self, array: Any, dst: Buffer) -> None:
        np.copyto(dst, array)

    def to_host(self, src: Buffer, dst: Any) -> None:
        np.copyto(dst, src)

    def rates(self) -> Rates:
        """Of NumPy's products, of its copies of memory, and of its smallest call: measured in some two milliseconds."""
        return _rates()


@functools.cache
def _rates() -> Rates:
    """Virtual cpus are one machine."""
    from graphdock.contracts import Rates  # which a session that asks for no costs does without

    a = np.ones((_ROWS, _ROWS), np.float32)
    x, few = np.ones(_ELEMENTS, np.float32), np.ones(4, np.float32)
    out, y, some = np.empty_like(a), np.empty_like(x), np.empty_like(few)
    launch = _quickest(lambda: np.add(few, few, some))
    flops = 2.0 * _ROWS**3 / _quickest(lambda: np.matmul(a, a, out))
    return Rates(flops, 2.0 * x.nbytes / _quickest(lambda: np.copyto(y, x)), launch)


def _quickest(function: Callable[[], object]) -> float:
    best = 1.0
    for _ in range(10):
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return max(best, 1e-7)


class CpuFactory(DeviceFactory):
    """Opens cpu devices; there is always one, and as many as asked for."""

    device_type = "cpu"
    virtual = True

    def probe(self) -> list[DeviceInfo]:
        return [DeviceInfo("cpu", 0, _memory_bytes(), {"cores": str(_cores()), "processor": platform.machine()})]

    def open(self, info: DeviceInfo, options: Mapping[str, Any]) -> Device:
        return CpuDevice(info, options.get("memories") == "apart")


def _cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _memory_bytes() -> int:
    """Physical memory, 0 where the system does not say."""
    names = getattr(os, "sysconf_names", {})
    if "SC_PAGE_SIZE" in names and "SC_PHYS_PAGES" in names:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return 0
