"""Random arrays and comparisons that the interpreter tests share. A kernel that reads or writes past an array's end crashes."""

from __future__ import annotations

import ctypes
import math
import mmap
from typing import Any

import numpy as np
from graphdock_triton.testing.launching import DTYPES

__all__ = ["assert_close", "draw", "empty", "wide"]

#: Of results near 1, by element type. The interpreter cuts bfloat16 where a GPU rounds it.
TOLERANCE = {"fp32": 3e-6, "fp16": 2e-3, "bf16": 1.2e-2}


def _guarded(shape: Any, dtype: Any) -> np.ndarray:
    """Memory for an array, with a page behind it that nobody may touch."""
    shape, dtype = (shape,) if isinstance(shape, int) else shape, np.dtype(dtype)
    count = math.prod(shape)
    pages = -(-count * dtype.itemsize // mmap.PAGESIZE)
    memory = mmap.mmap(-1, (pages + 1) * mmap.PAGESIZE)
    begin = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    refused = ctypes.CDLL(None, use_errno=True).mprotect(
        ctypes.c_void_p(begin + pages * mmap.PAGESIZE), ctypes.c_size_t(mmap.PAGESIZE), 0
    )
    assert not refused, ctypes.get_errno()
    offset = pages * mmap.PAGESIZE - count * dtype.itemsize
    return np.frombuffer(memory, np.uint8, count * dtype.itemsize, offset).view(dtype).reshape(shape)


def draw(rng: np.random.Generator, shape: Any, kind: str = "fp32", scale: float = 1.0) -> np.ndarray:
    out = _guarded(shape, DTYPES[kind])
    out[...] = (rng.standard_normal(shape) * scale).astype(out.dtype)
    return out


def empty(shape: Any, kind: str = "fp32") -> np.ndarray:
    """An array of NaN: what a kernel doesn't write is seen."""
    out = _guarded(shape, DTYPES[kind])
    out[...] = np.nan
    return out


def wide(*arrays: np.ndarray) -> Any:
    """In float64."""
    out = [np.asarray(a).astype(np.float64) for a in arrays]
    return out[0] if len(out) == 1 else out


def assert_close(got: np.ndarray, expected: Any, kind: str, loose: float = 1.0) -> None:
    """``got`` equals a float64 result but for the rounding of ``kind``; ``loose``: how much more than one result near 1."""
    limit = TOLERANCE[kind] * loose
    np.testing.assert_allclose(wide(got), expected, rtol=limit, atol=limit)
