"""Arrays, dtypes and shapes as TensorFlow's messages have them."""

from __future__ import annotations

from typing import Any

import numpy as np
from graphdock.dtypes import DType
from graphdock.shape import Dims
from graphdock_tensorflow.checkpoints.names import number_of

from graphdock_storage.events.messages import TensorProto, TensorShapeProto

__all__ = ["shape_proto", "tensor_proto"]


def shape_proto(dims: Dims) -> TensorShapeProto:
    """A static shape: None for an unknown one, None for an unknown dim."""
    if dims is None:
        return TensorShapeProto(unknown_rank=True)
    made = TensorShapeProto()
    for dim in dims:
        made.dim.add(size=-1 if dim is None else dim)
    return made


def tensor_proto(array: Any, dtype: DType) -> TensorProto:
    """An array: strings one by one, everything else as the bytes of its elements, the lowest first."""
    made = TensorProto(dtype=number_of(dtype))
    made.tensor_shape.CopyFrom(shape_proto(array.shape))
    made.tensor_shape.SetInParent()  # of a scalar too
    if dtype.kind == "S":
        made.string_val.extend(np.ravel(array).tolist())
    else:
        raw = np.ascontiguousarray(array)
        made.tensor_content = raw.astype(raw.dtype.newbyteorder("<")).tobytes()
    return made
