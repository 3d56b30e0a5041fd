"""Arrays of TensorFlow's messages: what a TensorProto of a file holds, which may lie about its size."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from graphdock.dtypes import DType, as_dtype
from graphdock.errors import DataLossError, InvalidArgumentError
from graphdock.messages import make

from graphdock_storage.tensor_messages import DTYPES

__all__ = ["FIELDS", "array_of", "dims_of", "dtype_name", "sole"]

#: Dtype -> the field of its elements where they are no raw bytes, and what NumPy takes them for.
FIELDS = {
    "float32": ("float_val", np.float32),
    "float64": ("double_val", np.float64),
    "int32": ("int_val", np.int32),
    "int16": ("int_val", np.int32),
    "int8": ("int_val", np.int32),
    "uint8": ("int_val", np.int32),
    "uint16": ("int_val", np.int32),
    "int64": ("int64_val", np.int64),
    "bool": ("bool_val", np.bool_),
    "complex64": ("scomplex_val", np.float32),
    "complex128": ("dcomplex_val", np.float64),
    "float16": ("half_val", np.int32),
    "bfloat16": ("half_val", np.int32),
    "uint32": ("uint32_val", np.uint32),
    "uint64": ("uint64_val", np.uint64),
}
#: The most bytes that a few elements of a file may stand for; a larger tensor has all its elements in the file.
_REPEATED = 1 << 28
_DEEPEST_SHAPE = 254


def dtype_name(number: int, where: str) -> str:
    """The dtype of TensorFlow's number; a reference is of what it refers to.

    Raises:
      InvalidArgumentError: graphdock has no such dtype.
    """
    name = DTYPES.get(number - 100 if number > 100 else number)
    if name is None:
        known = make("TensorProto").DESCRIPTOR.fields_by_name["dtype"].enum_type.values_by_number.get(number)
        raise InvalidArgumentError(f"{where}: graphdock has no dtype {number if known is None else known.name}")
    return name


def dims_of(shape: Any, where: str) -> list[int | None] | None:
    """The dims of a TensorShapeProto; None for an unknown rank, and in the place of an unknown dim.

    Raises:
      DataLossError: there is no such shape.
    """
    if shape.unknown_rank:
        return None
    dims = [int(d.size) for d in shape.dim]
    if len(dims) > _DEEPEST_SHAPE or any(d < -1 for d in dims) or math.prod(max(d, 1) for d in dims) > 1 << 62:
        raise DataLossError(f"{where}: there is no such shape", got=str(dims[:20]))
    return [None if d < 0 else d for d in dims]


def array_of(tensor: Any, where: str) -> np.ndarray[Any, Any]:
    """The array of a TensorProto, which has all elements as bytes, or the first ones, of which the last is repeated.

    Raises:
      DataLossError: the elements do not fit its shape, or are too many to repeat. InvalidArgumentError: no such dtype.
    """
    dtype = as_dtype(dtype_name(tensor.dtype, where))
    dims = dims_of(tensor.tensor_shape, where)
    if dims is None or None in dims:
        raise DataLossError(f"{where}: a tensor's shape must be known", got=str(dims))
    shape = [int(d or 0) for d in dims]
    count = math.prod(shape)
    if dtype.kind in "RV":
        raise InvalidArgumentError(f"{where} is a tensor of {dtype.name}s, which cannot be stored")
    if tensor.tensor_content and dtype.kind != "S":
        data = tensor.tensor_content
        if len(data) != count * dtype.size:
            raise DataLossError(
                f"{where} lies about its size", expected=f"{count * dtype.size} bytes", got=f"{len(data)}"
            )
        return _shaped(np.frombuffer(data, dtype.np), shape, where)
    values = _listed(tensor, dtype, where)
    if len(values) == count:
        return _shaped(values, shape, where)
    if len(values) > count or not len(values):
        if not len(values) and dtype.kind != "S":  # what is left out is zero
            values = np.zeros(1, dtype.np)
        elif not len(values):
            values = np.array([b""], object)
        else:
            raise DataLossError(f"{where} lies about its size", expected=f"{count} elements", got=str(len(values)))
    if count * max(dtype.size, 8) > _REPEATED:
        raise DataLossError(
            f"{where} lies about its size: {len(values)} elements are to stand for {count}",
            hint="write the tensor with all its elements",
        )
    out = np.empty(count, values.dtype)
    out[: len(values)] = values
    out[len(values) :] = values[-1]
    return _shaped(out, shape, where)


def sole(tensor: Any, where: str) -> np.ndarray[Any, Any] | None:
    """The number that a TensorProto of a known shape repeats, as a scalar; None where it holds several, or text."""
    dtype = as_dtype(dtype_name(tensor.dtype, where))
    if dtype.kind in "RVS" or tensor.tensor_content or None in (dims_of(tensor.tensor_shape, where) or [None]):
        return None
    values = _listed(tensor, dtype, where)
    return None if len(values) > 1 else _shaped(values if len(values) else np.zeros(1, dtype.np), [], where)


def _listed(tensor: Any, dtype: DType, where: str) -> np.ndarray[Any, Any]:
    if dtype.kind == "S":
        out = np.empty(len(tensor.string_val), object)
        out[:] = list(tensor.string_val)
        return out
    field, kind = FIELDS[dtype.name]
    values: np.ndarray[Any, Any] = np.array(getattr(tensor, field), kind)
    if field == "half_val":
        return values.astype(np.uint16).view(dtype.np)
    if dtype.is_complex:
        if values.size % 2:
            raise DataLossError(f"{where}: a complex number lacks its imaginary part")
        return values.view(dtype.np)
    return values.astype(dtype.np)


def _shaped(values: np.ndarray[Any, Any], shape: list[int], where: str) -> np.ndarray[Any, Any]:
    try:
        made = values.reshape(shape)
    except ValueError as error:  # NumPy's own limit of rank
        raise DataLossError(f"{where} is of no array: {error}") from None
    if made.dtype == np.bool_ and made.view(np.uint8).max(initial=0) > 1:
        raise DataLossError(f"{where} holds a byte that is neither true nor false")
    return made
