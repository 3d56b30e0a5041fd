"""DLPack: arrays of other libraries as values and feeds, without a copy where NumPy can read them, and fetched arrays for others.

The protocol is https://dmlc.github.io/dlpack/latest/python_spec.html. What NumPy does not take of it, bfloat16, is read here.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from graphdock.dtypes import bfloat16
from graphdock.errors import DTypeError, InvalidArgumentError

__all__ = ["from_dlpack", "to_dlpack"]

#: Number of a device type -> its name; those that NumPy reads as host memory are in _HOST.
_DEVICES = {
    1: "CPU",
    2: "CUDA",
    3: "CUDA host",
    4: "OpenCL",
    7: "Vulkan",
    8: "Metal",
    10: "ROCm",
    11: "ROCm host",
    13: "CUDA managed",
    14: "oneAPI",
}
_HOST = (1, 3, 11, 13)
_BFLOAT = 4


class _Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class _Kind(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    """DLTensor, with which a DLManagedTensor begins."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("rank", ctypes.c_int32),
        ("dtype", _Kind),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    ]


def _tensor_of(capsule: Any) -> _Tensor:
    """The DLTensor in a capsule that nobody has consumed; it lives as long as the capsule."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return _Tensor.from_address(get(capsule, b"dltensor"))


def from_dlpack(value: Any) -> Any:
    """A NumPy array over the memory of another library's array; any other value as it is.

    Elements are not copied, except bfloat16's, which NumPy does not take. The array may be read-only.

    Raises:
      InvalidArgumentError: the memory is a device's, or the owner does not hand it out. DTypeError: elements that NumPy lacks.
    """
    if isinstance(value, (np.ndarray, np.generic)) or not hasattr(type(value), "__dlpack__"):
        return value
    what = f"a {type(value).__module__}.{type(value).__qualname__}"
    device, index = _device_of(value, what)
    if device not in _HOST:
        raise InvalidArgumentError(
            f"{what} lies in the memory of {_DEVICES.get(device, f'a device of DLPack type {device}')}:{index}",
            expected="host memory",
            hint="copy it to the host first; in PyTorch value.cpu()",
        )
    try:
        return np.from_dlpack(value)
    except Exception as error:  # noqa: BLE001 - whatever its owner raises is told
        return _otherwise(value, what, error)


def _device_of(value: Any, what: str) -> tuple[int, int]:
    try:
        device, index = value.__dlpack_device__()
        return int(device), int(index)
    except Exception as error:  # noqa: BLE001 - whatever its owner raises is told
        raise InvalidArgumentError(f"{what} does not say where it lies: {type(error).__name__}: {error}") from error


def _otherwise(value: Any, what: str, refused: Exception) -> Any:
    """Return what NumPy refused: a copy of bfloat16, or an error that says why."""
    try:
        capsule = value.__dlpack__()
        tensor = _tensor_of(capsule)
    except Exception as error:  # noqa: BLE001 - whatever its owner raises is told
        if hasattr(type(value), "__array__") and "grad" not in str(error):
            return value  # read-only, perhaps: NumPy asks its owner for an array
        hint = "value.detach()" if "grad" in str(error) else None
        raise InvalidArgumentError(f"{what} does not hand out its memory: {error}", hint=hint) from error
    kind = tensor.dtype
    if (kind.code, kind.bits, kind.lanes) != (_BFLOAT, 16, 1):
        raise DTypeError(
            f"{what} has elements that graphdock lacks", got=f"DLPack dtype code {kind.code}, {kind.bits} bits"
        ) from refused
    copied = _halves(tensor)
    del capsule
    return copied.view(bfloat16.np)


def _halves(tensor: _Tensor) -> np.ndarray[Any, Any]:
    """A row-major copy of elements of two bytes, as uint16."""
    shape = tuple(tensor.shape[i] for i in range(tensor.rank))
    if 0 in shape:
        return np.empty(shape, np.uint16)
    if tensor.strides:
        steps = [tensor.strides[i] for i in range(tensor.rank)]
    else:
        steps = [1] * tensor.rank
        for axis in reversed(range(tensor.rank - 1)):
            steps[axis] = steps[axis + 1] * shape[axis + 1]
    reach = [(d - 1) * s for d, s in zip(shape, steps, strict=True)]
    low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
    start = (tensor.data or 0) + tensor.offset
    memory = (ctypes.c_char * (2 * (high - low + 1))).from_address(start + 2 * low)
    view = np.ndarray(shape, np.uint16, memory, -2 * low, tuple(2 * s for s in steps))
    return np.array(view, order="C")


class _Export:
    """An array with the two methods of the protocol."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._array = array

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> Any:
        array = self._array
        if not array.flags.writeable:
            raise BufferError("the array is read-only: others could write it; hand out a copy")
        if array.dtype != bfloat16.np:
            return array.__dlpack__(**options)
        options.pop("max_version", None)  # the older form, which every reader takes
        capsule = array.view(np.uint16).__dlpack__(**options)
        _tensor_of(capsule).dtype.code = _BFLOAT
        return capsule


def to_dlpack(value: Any) -> Any:
    """Return what other libraries' ``from_dlpack`` take: a fetched array, bfloat16 included, without a copy.

        tensor = torch.from_dlpack(tf.to_dlpack(session.run(y)))

    NumPy hands out its arrays by itself, but for bfloat16.

    Args:
      value: what ``Session.run`` returns for one tensor: an array, or a scalar of NumPy's, which is copied.

    Raises:
      DTypeError: strings have no such form. BufferError: from the reader, where the array is read-only.
    """
    array = np.asarray(value)
    if array.dtype.hasobject or array.dtype.kind in "USMmV" and array.dtype != bfloat16.np:
        raise DTypeError(f"{array.dtype} has no form in DLPack", expected="numbers or bools")
    return _Export(array)
