"""Calls of the driver that CuPy's bindings lack, by ctypes: access to another GPU's pool."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from graphdock_cuda.driver.errors import CudaError

__all__ = ["LIBRARY", "allow_pool_access"]

#: The driver's library; it is there wherever a driver is.
LIBRARY = "libcuda.so.1"
_DEVICE, _READ_WRITE = 1, 3  # CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE


class _Access(ctypes.Structure):
    """``CUmemAccessDesc``."""

    _fields_ = (("type", ctypes.c_int), ("id", ctypes.c_int), ("flags", ctypes.c_int))


@functools.cache
def _library() -> Any:
    return ctypes.CDLL(LIBRARY)


def allow_pool_access(pool: int, device: int, library: Any = None) -> None:
    """Let a GPU read and write what a pool of another GPU hands out, which ``cudaDeviceEnablePeerAccess`` does not do.

    Args:
      pool: handle of the pool. ``device``: the GPU that may read and write. ``library``: with the driver's functions; default: it.

    Raises CudaError.
    """
    access = _Access(_DEVICE, device, _READ_WRITE)
    set_access = (library or _library()).cuMemPoolSetAccess
    status = set_access(ctypes.c_void_p(pool), ctypes.byref(access), ctypes.c_size_t(1))
    if status:
        raise CudaError("cuMemPoolSetAccess", status, f"GPU {device}")
