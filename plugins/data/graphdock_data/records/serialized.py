"""Tensors and Examples as bytes. Names, arguments and defaults are TensorFlow 1's."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
import numpy as np
from graphdock import ops as _ops
from graphdock.errors import ArgumentTypeError
from graphdock.typing import DTypeLike, TensorLike


def parse_tensor(serialized: TensorLike, out_type: DTypeLike, name: str | None = None) -> _ops.Tensor:
    """The tensor of the bytes of a TensorProto, of unknown shape. In the step an InvalidArgumentError where they are none."""
    return _ops.apply_op("ParseTensor", serialized=serialized, out_type=out_type, name=name)


def serialize_tensor(tensor: TensorLike, name: str | None = None) -> _ops.Tensor:
    """A tensor as the bytes of a TensorProto, a scalar string."""
    return _ops.apply_op("SerializeTensor", tensor=tensor, name=name)


def _sparse(value: Any) -> Any:
    found = _tf.convert_to_tensor_or_sparse_tensor(value)
    if not isinstance(found, _tf.SparseTensor):
        raise ArgumentTypeError("Input must be a SparseTensor.", got=repr(value))
    return found


def _string(out_type: DTypeLike) -> None:
    if _tf.as_dtype(out_type) is not _tf.string:
        raise ArgumentTypeError("sparse tensors are serialized as strings", got=str(out_type))


def serialize_sparse(sp_input: Any, name: str | None = None, out_type: DTypeLike = "string") -> _ops.Tensor:
    """A SparseTensor as the bytes of its three tensors: a string vector of 3."""
    _string(out_type)
    sparse = _sparse(sp_input)
    parts = (sparse.indices, sparse.values, sparse.dense_shape)
    return _tf.stack([serialize_tensor(part) for part in parts], name=name or "SerializeSparse")


def serialize_many_sparse(sp_input: Any, name: str | None = None, out_type: DTypeLike = "string") -> _ops.Tensor:
    """The rows of a SparseTensor, each as the bytes of its three tensors: ``[N, 3]`` strings."""
    _string(out_type)
    sparse = _sparse(sp_input)
    return _ops.apply_op(
        "SerializeManySparse",
        sparse_indices=sparse.indices,
        sparse_values=sparse.values,
        sparse_shape=sparse.dense_shape,
        name=name,
    )


def deserialize_many_sparse(
    serialized_sparse: TensorLike, dtype: DTypeLike, rank: int | None = None, name: str | None = None
) -> Any:
    """A SparseTensor whose rows are serialized ones, ``[N, 3]`` strings.

    Args:
      rank: of a row, where it is known.
    """
    made = _ops.apply_op("DeserializeManySparse", serialized_sparse=serialized_sparse, dtype=dtype, name=name)
    indices, values, shape = made
    whole = None if rank is None else rank + 1
    indices.set_shape([None, whole])
    shape.set_shape([whole])
    return _tf.SparseTensor(indices, values, shape)


def decode_compressed(bytes: TensorLike, compression_type: str = "", name: str | None = None) -> _ops.Tensor:
    """Strings that were compressed, ``"ZLIB"`` or ``"GZIP"``, decompressed."""
    return _ops.apply_op("DecodeCompressed", bytes=bytes, compression_type=compression_type, name=name)


def decode_json_example(json_examples: TensorLike, name: str | None = None) -> _ops.Tensor:
    """Examples that are spelled in JSON, as the bytes that ``parse_example`` takes."""
    return _ops.apply_op("DecodeJSONExample", json_examples=json_examples, name=name)


def make_tensor_proto(
    values: Any, dtype: DTypeLike | None = None, shape: Any = None, verify_shape: bool = False
) -> Any:
    """The TensorProto of a value.

    Args:
      shape: a value of fewer elements is filled up with its last one, unless ``verify_shape``.
    """
    from graphdock_storage.tensor_messages import tensor_proto

    with _tf.Graph().as_default(), _tf.Session() as session:
        constant = _tf.constant(values, dtype, shape, verify_shape=verify_shape)
        return tensor_proto(session.run(constant), constant.dtype)


def make_ndarray(tensor: Any) -> np.ndarray[Any, Any]:
    """The array of a TensorProto. Raises InvalidArgumentError: it is damaged."""
    from graphdock_storage.tensor_reading import array_of

    return array_of(tensor, "the TensorProto")
