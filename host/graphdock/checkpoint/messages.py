"""The protocol buffers in TensorFlow's checkpoints: the few fields that are needed, for the library ``protobuf`` to read.

The numbers are those of TensorFlow's ``tensor_bundle.proto``, ``saved_tensor_slice.proto`` and ``tensor.proto``.
"""

from __future__ import annotations

import functools
from typing import Any

from graphdock.errors import DataLossError, UnavailableError

__all__ = ["make", "parse"]

#: Message -> its fields: name -> number, and type; ``*`` marks a repeated field.
_MESSAGES: dict[str, dict[str, tuple[int, str]]] = {
    "Dim": {"size": (1, "int64")},
    "ShapeMessage": {"dim": (2, "*Dim"), "unknown_rank": (3, "bool")},
    "Extent": {"start": (1, "int64"), "length": (2, "int64?")},
    "SliceMessage": {"extent": (1, "*Extent")},
    "Header": {"num_shards": (1, "int32"), "endianness": (2, "int32")},
    "Entry": {
        "dtype": (1, "int32"),
        "shape": (2, "ShapeMessage"),
        "shard_id": (3, "int32"),
        "offset": (4, "int64"),
        "size": (5, "int64"),
        "crc32c": (6, "fixed32"),
        "slices": (7, "*SliceMessage"),
    },
    "Tensor": {
        "dtype": (1, "int32"),
        "tensor_shape": (2, "ShapeMessage"),
        "tensor_content": (4, "bytes"),
        "float_val": (5, "*float"),
        "double_val": (6, "*double"),
        "int_val": (7, "*int32"),
        "string_val": (8, "*bytes"),
        "scomplex_val": (9, "*float"),
        "int64_val": (10, "*int64"),
        "bool_val": (11, "*bool"),
        "dcomplex_val": (12, "*double"),
        "half_val": (13, "*int32"),
        "uint32_val": (16, "*uint32"),
        "uint64_val": (17, "*uint64"),
    },
    "SliceMeta": {
        "name": (1, "string"),
        "shape": (2, "ShapeMessage"),
        "type": (3, "int32"),
        "slice": (4, "*SliceMessage"),
    },
    "Meta": {"tensor": (1, "*SliceMeta")},
    "SavedSlice": {"name": (1, "string"), "slice": (2, "SliceMessage"), "data": (3, "Tensor")},
    "SavedSlices": {"meta": (1, "Meta"), "data": (2, "SavedSlice")},
}


@functools.cache
def _classes() -> dict[str, Any]:
    """Message -> its class, made in a pool of its own.

    Raises:
      UnavailableError: the library is not installed.
    """
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ImportError as error:
        raise UnavailableError(
            "TensorFlow's checkpoints are read with the library protobuf, which is not installed",
            hint="pip install 'graphdock[tensorflow-files]'",
        ) from error
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="graphdock/checkpoint.proto", package="graphdock", syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, (number, spelled) in fields.items():
            kind = spelled.strip("*?")
            made = message.field.add(name=field, number=number)
            made.label = kinds.LABEL_REPEATED if spelled.startswith("*") else kinds.LABEL_OPTIONAL
            if kind in _MESSAGES:
                made.type, made.type_name = kinds.TYPE_MESSAGE, f".graphdock.{kind}"
            else:
                made.type = kinds.Type.Value(f"TYPE_{kind.upper()}")
            if spelled.endswith("?"):  # whether it is there can be asked
                made.proto3_optional, made.oneof_index = True, len(message.oneof_decl)
                message.oneof_decl.add(name=f"_{field}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {n: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"graphdock.{n}")) for n in _MESSAGES}


def make(message: str, **fields: Any) -> Any:
    """A new message. Raises UnavailableError: the library protobuf is not installed."""
    return _classes()[message](**fields)


def parse(message: str, data: bytes, what: str) -> Any:
    """A message of bytes; ``what`` names it in errors.

    Raises:
      DataLossError: the bytes are none. UnavailableError: the library protobuf is not installed.
    """
    made = make(message)
    from google.protobuf.message import DecodeError

    try:
        made.ParseFromString(data)
    except (DecodeError, UnicodeDecodeError) as error:
        raise DataLossError(f"{what} is damaged: {error}") from error
    return made
