"""Calls of the driver that CuPy's bindings lack, by ctypes: its version where CuPy may be missing, contexts, access to pools."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from graphdock_cuda.driver.errors import CudaError

__all__ = ["LIBRARY", "allow_pool_access", "driver_version", "has_context", "wheels_for"]

#: The driver's library; it is there wherever a driver is.
LIBRARY = "libcuda.so.1"
_DEVICE, _READ_WRITE = 1, 3  # CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE


class _Access(ctypes.Structure):
    """``CUmemAccessDesc``."""

    _fields_ = (("type", ctypes.c_int), ("id", ctypes.c_int), ("flags", ctypes.c_int))


@functools.cache
def _library() -> Any:
    return ctypes.CDLL(LIBRARY)


def driver_version(library: Any = None) -> int:
    """As ``Driver.driver_version``, where CuPy may be missing."""
    version = ctypes.c_int()
    try:
        status = (library or _library()).cuDriverGetVersion(ctypes.byref(version))
    except OSError:  # no driver
        return 0
    return 0 if status else version.value


def has_context(device: int, library: Any = None) -> bool:
    """See Driver.has_context."""
    flags, active = ctypes.c_uint(), ctypes.c_int()
    state = (library or _library()).cuDevicePrimaryCtxGetState
    status = state(ctypes.c_int(device), ctypes.byref(flags), ctypes.byref(active))
    if status:
        raise CudaError("cuDevicePrimaryCtxGetState", status, f"GPU {device}")
    return bool(active.value)


def wheels_for(newest: int, extra: str = "cuda") -> str:
    """Return how to install what a driver takes that supports CUDA ``newest`` (0: not known), by an extra of this package."""
    if not newest:
        return f"pip install 'graphdock-cuda[{extra}13]', or [{extra}12] for drivers of CUDA 12"
    return f"pip install 'graphdock-cuda[{extra}{12 if newest < 13000 else 13}]'"


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
