"""Dtypes, shapes and arrays as TensorFlow's messages have them."""

from __future__ import annotations

from typing import Any

import numpy as np
from graphdock.dtypes import DType
from graphdock.messages import make
from graphdock.shape import Dims

__all__ = ["DTYPES", "number_of", "shape_proto", "tensor_proto"]

#: TensorFlow's number of a DataType -> name of the dtype.
DTYPES = {
    1: "float32",
    2: "float64",
    3: "int32",
    4: "uint8",
    5: "int16",
    6: "int8",
    7: "string",
    8: "complex64",
    9: "int64",
    10: "bool",
    14: "bfloat16",
    17: "uint16",
    18: "complex128",
    19: "float16",
    20: "resource",
    21: "variant",
    22: "uint32",
    23: "uint64",
}
_NUMBERS = {name: number for number, name in DTYPES.items()}


def number_of(dtype: DType | str) -> int:
    """TensorFlow's number of a dtype, or of its name."""
    return _NUMBERS[dtype if isinstance(dtype, str) else dtype.name]


def shape_proto(dims: Dims) -> Any:
    """The TensorShapeProto of a static shape: None for an unknown one, None for an unknown dim."""
    if dims is None:
        return make("TensorShapeProto", unknown_rank=True)
    return make("TensorShapeProto", dim=[{"size": -1 if dim is None else dim} for dim in dims])


def tensor_proto(array: Any, dtype: DType, made: Any = None) -> Any:
    """The TensorProto of an array: strings one by one, everything else as the bytes of its elements, the lowest first.

    Args:
      made: an empty one, such as a field, to fill in.
    """
    made = make("TensorProto") if made is None else made
    made.dtype = number_of(dtype)
    made.tensor_shape.CopyFrom(shape_proto(array.shape))
    if dtype.kind == "S":
        made.string_val.extend([v if isinstance(v, bytes) else str(v).encode() for v in array.ravel()])
    else:
        made.tensor_content = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    return made
