"""Calls of the driver's library, against a library that notes what it is asked."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import pytest
from graphdock_cuda.driver.errors import CudaError
from graphdock_cuda.driver.libcuda import allow_pool_access, has_context


class Library:
    """Answers with ``status``, and keeps the pool, the bytes of the descriptions, and their count."""

    def __init__(self, status: int = 0) -> None:
        self.status, self.asked = status, ()

    def cuMemPoolSetAccess(self, pool: Any, access: Any, count: Any) -> int:
        self.asked = (pool.value, ctypes.string_at(access, 12), count.value)
        return self.status

    def cuDevicePrimaryCtxGetState(self, device: Any, flags: Any, active: Any) -> int:
        self.asked = (device.value,)
        flags._obj.value, active._obj.value = 8, int(device.value == 2)
        return self.status


def test_a_device_that_somebody_uses_has_a_context() -> None:
    library = Library()
    assert (has_context(2, library), library.asked) == (True, (2,))
    assert has_context(1, library) is False
    with pytest.raises(CudaError, match="cuDevicePrimaryCtxGetState: GPU 5") as found:
        has_context(5, Library(101))
    assert found.value.status == 101


def test_a_gpu_is_let_into_a_pool() -> None:
    library = Library()
    allow_pool_access(0xAB00, 3, library)
    # a location (of type device, number 3), and the right to read and to write
    assert library.asked == (0xAB00, struct.pack("<3i", 1, 3, 3), 1)


def test_a_refusal_is_an_error() -> None:
    with pytest.raises(CudaError, match="cuMemPoolSetAccess") as found:
        allow_pool_access(1, 2, Library(801))
    assert found.value.status == 801
