"""Tensors, shapes and attributes of TensorFlow's messages as plain data, and back.

Plain data is what :mod:`graphdock_tensorflow.plain_data.attr_values` reads, but that a tensor may stand there as an array.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from graphdock.dtypes import as_dtype
from graphdock.errors import GraphdockError, InvalidArgumentError
from graphdock.messages import make
from graphdock_storage.tensor_messages import number_of, shape_proto
from graphdock_storage.tensor_messages import tensor_proto as of_bytes
from graphdock_storage.tensor_reading import FIELDS, array_of, dims_of, dtype_name

__all__ = [
    "array_of",
    "attr_of",
    "dims_of",
    "dtype_name",
    "from_attr",
    "repeated",
    "tensor_proto",
]


def repeated(value: Any) -> int:
    """The bytes that the tensors of an AttrValue take beyond their elements in the file, 8 of a string; at least that."""
    tensors = [value.tensor] if value.WhichOneof("value") == "tensor" else value.list.tensor
    return sum(8 * max(0, math.prod(max(int(d.size), 0) for d in t.tensor_shape.dim) - t.ByteSize()) for t in tensors)


def tensor_proto(array: np.ndarray[Any, Any], made: Any = None) -> Any:
    """The TensorProto of an array, a single element as a number; in ``made`` where it is given, which is empty."""
    array = np.asarray(array)
    dtype = as_dtype(array.dtype)
    made = make("TensorProto") if made is None else made
    field = FIELDS[dtype.name][0] if dtype.kind != "S" else ""
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
