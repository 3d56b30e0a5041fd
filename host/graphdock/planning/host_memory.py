"""Host memory as the runtime itself needs it: NumPy arrays for feeds, fetches and small tensors that steer kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphdock.contracts.device import HOST_MEMORY, Buffer, Device, DeviceInfo, Storage
from graphdock.dtypes import DType
from graphdock.errors import ResourceExhaustedError

__all__ = ["HostMemory"]


class HostMemory(Device):
    """A device without kernels whose buffers are NumPy arrays. Usable from any thread."""

    def __init__(self) -> None:
        super().__init__(DeviceInfo("host"))
        self.memory_space = HOST_MEMORY

    def allocate(self, nbytes: int, align: int = 64) -> Storage:
        try:
            block = np.empty(nbytes + align, np.uint8)
        except (MemoryError, ValueError):  # the latter for more than a process can address
            raise ResourceExhaustedError(f"host memory has no {nbytes} bytes for a step's buffers") from None
        start = -block.ctypes.data % align
        return block[start : start + nbytes]

    def view(self, storage: Storage, offset: int, dtype: DType, shape: Sequence[int]) -> Buffer:
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
