"""Tensors, shapes and attributes of TensorFlow's messages as plain data, and back.

Plain data is what :mod:`graphdock_tensorflow.plain_data.attr_values` reads, but that a tensor may stand there as an array.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from graphdock.dtypes import DType, as_dtype
from graphdock.errors import DataLossError, GraphdockError, InvalidArgumentError
from graphdock.messages import make
from graphdock_storage.tensor_messages import DTYPES, number_of, shape_proto
from graphdock_storage.tensor_messages import tensor_proto as of_bytes

__all__ = [
    "array_of",
    "attr_of",
    "dims_of",
    "dtype_name",
    "from_attr",
    "repeated",
    "tensor_proto",
]

#: Dtype -> the field of its elements where they are no raw bytes, and what NumPy takes them for.
_FIELDS = {
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


def repeated(value: Any) -> int:
    """The bytes that the tensors of an AttrValue take beyond their elements in the file, 8 of a string; at least that."""
    tensors = [value.tensor] if value.WhichOneof("value") == "tensor" else value.list.tensor
    return sum(8 * max(0, math.prod(max(int(d.size), 0) for d in t.tensor_shape.dim) - t.ByteSize()) for t in tensors)


def _listed(tensor: Any, dtype: DType, where: str) -> np.ndarray[Any, Any]:
    if dtype.kind == "S":
        out = np.empty(len(tensor.string_val), object)
        out[:] = list(tensor.string_val)
        return out
    field, kind = _FIELDS[dtype.name]
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


def tensor_proto(array: np.ndarray[Any, Any], made: Any = None) -> Any:
    """The TensorProto of an array, a single element as a number; in ``made`` where it is given, which is empty."""
    array = np.asarray(array)
    dtype = as_dtype(array.dtype)
    made = make("TensorProto") if made is None else made
    field = _FIELDS[dtype.name][0] if dtype.kind != "S" else ""
    if array.size != 1 or field not in ("float_val", "double_val", "int_val", "int64_val", "bool_val"):
        return of_bytes(array, dtype, made)
    made.dtype = number_of(dtype)
    made.tensor_shape.CopyFrom(shape_proto(array.shape))
    getattr(made, field).append(array.ravel()[0].item())
    return made


# -- attributes -------------------------------------------------------------------------------------------------------

_READERS: dict[str, tuple[str, Callable[[Any, str], Any]]] = {
    "int": ("i", lambda v, where: int(v)),
    "float": ("f", lambda v, where: _float(v)),
    "bool": ("b", lambda v, where: bool(v)),
    "string": ("s", lambda v, where: _text(v, where)),
    "type": ("type", dtype_name),
    "shape": ("shape", dims_of),
    "tensor": ("tensor", array_of),
}


def _float(value: float) -> Any:
    """The shortest number that is the same float32; what is no number of JSON is a string."""
    return float(str(np.float32(value))) if math.isfinite(value) else repr(value)


def _text(value: bytes, where: str) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise InvalidArgumentError(f"{where} is no text", got=repr(value[:40])) from None


def from_attr(kind: str, value: Any, where: str) -> Any:
    """An AttrValue as the plain data of an attribute of type ``kind``, without its type.

    Raises:
      InvalidArgumentError: it is of another type. DataLossError: it is no such value.
    """
    found = value.WhichOneof("value")
    if kind.startswith("list("):
        field, read = _READERS[kind[5:-1]]
        if found != "list":
            raise InvalidArgumentError(f"{where} is wrong", expected=kind, got=str(found))
        return [read(v, f"{where}[{i}]") for i, v in enumerate(getattr(value.list, field))]
    field, read = _READERS[kind]
    if found != field:
        raise InvalidArgumentError(f"{where} is wrong", expected=kind, got=str(found))
    return read(getattr(value, field), where)


def attr_of(kind: str, value: Any, made: Any = None) -> Any:
    """The AttrValue of the plain data of an attribute of type ``kind``; in ``made`` where that is given, which is empty."""
    made = make("AttrValue") if made is None else made
    if kind.startswith("list("):
        one = kind[5:-1]
        made.list.SetInParent()
        for item in value:
            if one in ("shape", "tensor"):
                getattr(made.list, one).add().CopyFrom(_one(one, item))
            else:
                getattr(made.list, _READERS[one][0]).append(_one(one, item))
    elif kind == "tensor":  # which may be large
        tensor_proto(value, made.tensor)
    elif kind == "shape":
        made.shape.CopyFrom(shape_proto(value))
    else:
        setattr(made, _READERS[kind][0], _one(kind, value))
    return made


def _one(kind: str, value: Any) -> Any:
    if kind == "type":
        return number_of(value)
    if kind == "shape":
        return shape_proto(value)
    if kind == "tensor":
        return tensor_proto(value)
    if kind == "string":
        return value.encode(errors="surrogatepass")
    if kind == "float":
        return float(value)
    if kind == "int" and not -(1 << 63) <= value < 1 << 63:
        raise GraphdockError(f"{value} is too large for an attribute of TensorFlow's")
    return value
