"""Triton's interpreter over NumPy arrays, without torch.

The interpreter asks of each pointer argument what it asks of a torch tensor; :class:`HostTensor` answers for an array, in whose memory
the kernel then reads and writes. Whether kernels are interpreted is settled for a process when triton is first imported: set
``TRITON_INTERPRET=1`` before, in a process of its own (:func:`require` checks it).

What the interpreter can't do, and kernels of this package therefore don't: arithmetic on bfloat16 (load, then ``.to(tl.float32)``;
``tl.dot`` of bfloat16 has an ``UPCAST`` branch for tests); it cuts a bfloat16 that it stores where a GPU rounds it.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from graphdock.contracts import errors

__all__ = ["HostTensor", "require", "tensors"]


def require() -> None:
    """Raise FailedPreconditionError unless this process interprets Triton kernels."""
    if os.environ.get("TRITON_INTERPRET") != "1":
        raise errors.FailedPreconditionError(
            "Triton kernels are not interpreted in this process", hint="set TRITON_INTERPRET=1 before triton is imported"
        )


class _Storage:
    """The memory of an array, as the interpreter asks for it."""

    __slots__ = ("_array",)

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def data_ptr(self) -> int:
        return int(self._array.ctypes.data)

    def cpu(self) -> _Storage:
        return self

    def copy_(self, other: _Storage) -> _Storage:
        """Called after the grid with what ``cpu`` gave: the kernel wrote in place."""
        return self


class HostTensor:
    """An array as an argument of an interpreted kernel. bfloat16 arrays are ml_dtypes'."""

    __slots__ = ("_array", "_storage", "dtype")

    def __init__(self, array: np.ndarray) -> None:
        self._array = array
        self._storage = _Storage(array)
        self.dtype = "int1" if array.dtype == np.bool_ else array.dtype.name

    def data_ptr(self) -> int:
        return int(self._array.ctypes.data)

    def untyped_storage(self) -> _Storage:
        return self._storage

    def new_empty(self, *_: Any, device: Any = None) -> HostTensor:
        return HostTensor(self._array)

    def set_(self, storage: Any, offset: Any, size: Any, stride: Any) -> HostTensor:
        return self

    def storage_offset(self) -> int:
        return 0

    def size(self) -> tuple[int, ...]:
        return self._array.shape

    def stride(self) -> tuple[int, ...]:
        return tuple(s // self._array.itemsize for s in self._array.strides)

    def element_size(self) -> int:
        return self._array.itemsize

    @property
    def shape(self) -> tuple[int, ...]:
        return self._array.shape


def tensors(*values: Any) -> list[Any]:
    """Arguments of a kernel: arrays become tensors, other things stay."""
    return [HostTensor(v) if isinstance(v, np.ndarray) else v for v in values]
