"""The protocol buffers of TensorFlow's graphs and checkpoints, for the library ``protobuf`` to read and write.

Names, numbers and types are those of TensorFlow's ``graph.proto``, ``node_def.proto``, ``attr_value.proto``, ``tensor.proto``,
``function.proto``, ``meta_graph.proto``, ``saver.proto``, ``saved_model.proto``, ``variable.proto``, ``tensor_bundle.proto``,
``tensor_slice.proto`` and ``saved_tensor_slice.proto``. Fields that are not here are kept when a message is read and written
again. The classes stand in a pool of their own, so that TensorFlow may be in the same process.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from graphdock.errors import DataLossError, UnavailableError

__all__ = ["DATA_TYPES", "NAMES", "from_bytes", "from_text", "make", "to_text"]

#: TensorFlow's DataType.
DATA_TYPES = {
    "DT_INVALID": 0,
    "DT_FLOAT": 1,
    "DT_DOUBLE": 2,
    "DT_INT32": 3,
    "DT_UINT8": 4,
    "DT_INT16": 5,
    "DT_INT8": 6,
    "DT_STRING": 7,
    "DT_COMPLEX64": 8,
    "DT_INT64": 9,
    "DT_BOOL": 10,
    "DT_QINT8": 11,
    "DT_QUINT8": 12,
    "DT_QINT32": 13,
    "DT_BFLOAT16": 14,
    "DT_QINT16": 15,
    "DT_QUINT16": 16,
    "DT_UINT16": 17,
    "DT_COMPLEX128": 18,
    "DT_HALF": 19,
    "DT_RESOURCE": 20,
    "DT_VARIANT": 21,
    "DT_UINT32": 22,
    "DT_UINT64": 23,
}
#: Enum -> its values. A DataType has a reference too, which is 100 more.
_ENUMS = {
    "DataType": {**DATA_TYPES, **{f"{n}_REF": v + 100 for n, v in DATA_TYPES.items() if v}},
    "CheckpointFormatVersion": {"LEGACY": 0, "V1": 1, "V2": 2},
}
#: Message -> its fields: name -> number and type. ``*`` marks a repeated field, ``|`` one of a union, ``map K`` a map from K.
_MESSAGES: dict[str, dict[str, tuple[int, str]]] = {
    "TensorShapeProto": {"dim": (2, "*TensorShapeProto.Dim"), "unknown_rank": (3, "bool")},
    "TensorShapeProto.Dim": {"size": (1, "int64"), "name": (2, "string")},
    "TensorProto": {
        "dtype": (1, "DataType"),
        "tensor_shape": (2, "TensorShapeProto"),
        "version_number": (3, "int32"),
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
    "AttrValue": {
        "list": (1, "|AttrValue.ListValue"),
        "s": (2, "|bytes"),
        "i": (3, "|int64"),
        "f": (4, "|float"),
        "b": (5, "|bool"),
        "type": (6, "|DataType"),
        "shape": (7, "|TensorShapeProto"),
        "tensor": (8, "|TensorProto"),
        "placeholder": (9, "|string"),
        "func": (10, "|NameAttrList"),
    },
    "AttrValue.ListValue": {
        "s": (2, "*bytes"),
        "i": (3, "*int64"),
        "f": (4, "*float"),
        "b": (5, "*bool"),
        "type": (6, "*DataType"),
        "shape": (7, "*TensorShapeProto"),
        "tensor": (8, "*TensorProto"),
        "func": (9, "*NameAttrList"),
    },
    "NameAttrList": {"name": (1, "string"), "attr": (2, "map string AttrValue")},
    "NodeDef": {
        "name": (1, "string"),
        "op": (2, "string"),
        "input": (3, "*string"),
        "device": (4, "string"),
        "attr": (5, "map string AttrValue"),
    },
    "VersionDef": {"producer": (1, "int32"), "min_consumer": (2, "int32"), "bad_consumers": (3, "*int32")},
    "OpDef": {
        "name": (1, "string"),
        "input_arg": (2, "*OpDef.ArgDef"),
        "output_arg": (3, "*OpDef.ArgDef"),
        "attr": (4, "*OpDef.AttrDef"),
        "summary": (5, "string"),
        "description": (6, "string"),
        "is_aggregate": (16, "bool"),
        "is_stateful": (17, "bool"),
        "is_commutative": (18, "bool"),
        "allows_uninitialized_input": (19, "bool"),
        "control_output": (20, "*string"),
    },
    "OpDef.ArgDef": {
        "name": (1, "string"),
        "description": (2, "string"),
        "type": (3, "DataType"),
        "type_attr": (4, "string"),
        "number_attr": (5, "string"),
        "type_list_attr": (6, "string"),
        "is_ref": (16, "bool"),
    },
    "OpDef.AttrDef": {
        "name": (1, "string"),
        "type": (2, "string"),
        "default_value": (3, "AttrValue"),
        "description": (4, "string"),
        "has_minimum": (5, "bool"),
        "minimum": (6, "int64"),
        "allowed_values": (7, "AttrValue"),
    },
    "OpList": {"op": (1, "*OpDef")},
    "FunctionDef": {
        "signature": (1, "OpDef"),
        "node_def": (3, "*NodeDef"),
        "ret": (4, "map string string"),
        "attr": (5, "map string AttrValue"),
        "control_ret": (6, "map string string"),
    },
    "GradientDef": {"function_name": (1, "string"), "gradient_func": (2, "string")},
    "FunctionDefLibrary": {"function": (1, "*FunctionDef"), "gradient": (2, "*GradientDef")},
    "GraphDef": {
        "node": (1, "*NodeDef"),
        "library": (2, "FunctionDefLibrary"),
        "version": (3, "int32"),
        "versions": (4, "VersionDef"),
    },
    "SaverDef": {
        "filename_tensor_name": (1, "string"),
        "save_tensor_name": (2, "string"),
        "restore_op_name": (3, "string"),
        "max_to_keep": (4, "int32"),
        "sharded": (5, "bool"),
        "keep_checkpoint_every_n_hours": (6, "float"),
        "version": (7, "CheckpointFormatVersion"),
    },
    "SaveSliceInfoDef": {
        "full_name": (1, "string"),
        "full_shape": (2, "*int64"),
        "var_offset": (3, "*int64"),
        "var_shape": (4, "*int64"),
    },
    "VariableDef": {
        "variable_name": (1, "string"),
        "initializer_name": (2, "string"),
        "snapshot_name": (3, "string"),
        "save_slice_info_def": (4, "SaveSliceInfoDef"),
        "is_resource": (5, "bool"),
        "initial_value_name": (6, "string"),
        "trainable": (7, "bool"),
        "synchronization": (8, "int32"),
        "aggregation": (9, "int32"),
    },
    "CollectionDef": {
        "node_list": (1, "|CollectionDef.NodeList"),
        "bytes_list": (2, "|CollectionDef.BytesList"),
        "int64_list": (3, "|CollectionDef.Int64List"),
        "float_list": (4, "|CollectionDef.FloatList"),
        "any_list": (5, "|CollectionDef.AnyList"),
    },
    "CollectionDef.NodeList": {"value": (1, "*string")},
    "CollectionDef.BytesList": {"value": (1, "*bytes")},
    "CollectionDef.Int64List": {"value": (1, "*int64")},
    "CollectionDef.FloatList": {"value": (1, "*float")},
    "CollectionDef.AnyList": {"value": (1, "*CollectionDef.AnyList.AnyValue")},
    "CollectionDef.AnyList.AnyValue": {"type_url": (1, "string"), "value": (2, "bytes")},
    "TensorInfo": {
        "name": (1, "|string"),
        "dtype": (2, "DataType"),
        "tensor_shape": (3, "TensorShapeProto"),
        "coo_sparse": (4, "|TensorInfo.CooSparse"),
    },
    "TensorInfo.CooSparse": {
        "values_tensor_name": (1, "string"),
        "indices_tensor_name": (2, "string"),
        "dense_shape_tensor_name": (3, "string"),
    },
    "SignatureDef": {
        "inputs": (1, "map string TensorInfo"),
        "outputs": (2, "map string TensorInfo"),
        "method_name": (3, "string"),
    },
    "AssetFileDef": {"tensor_info": (1, "TensorInfo"), "filename": (2, "string")},
    "MetaGraphDef": {
        "meta_info_def": (1, "MetaGraphDef.MetaInfoDef"),
        "graph_def": (2, "GraphDef"),
        "saver_def": (3, "SaverDef"),
        "collection_def": (4, "map string CollectionDef"),
        "signature_def": (5, "map string SignatureDef"),
        "asset_file_def": (6, "*AssetFileDef"),
    },
    "MetaGraphDef.MetaInfoDef": {
        "meta_graph_version": (1, "string"),
        "stripped_op_list": (2, "OpList"),
        "tags": (4, "*string"),
        "tensorflow_version": (5, "string"),
        "tensorflow_git_version": (6, "string"),
        "stripped_default_attrs": (7, "bool"),
    },
    "TensorSliceProto": {"extent": (1, "*TensorSliceProto.Extent")},
    "TensorSliceProto.Extent": {"start": (1, "int64"), "length": (2, "|int64")},
    "BundleHeaderProto": {"num_shards": (1, "int32"), "endianness": (2, "int32"), "version": (3, "VersionDef")},
    "BundleEntryProto": {
        "dtype": (1, "DataType"),
        "shape": (2, "TensorShapeProto"),
        "shard_id": (3, "int32"),
        "offset": (4, "int64"),
        "size": (5, "int64"),
        "crc32c": (6, "fixed32"),
        "slices": (7, "*TensorSliceProto"),
    },
    "SavedSliceMeta": {
        "name": (1, "string"),
        "shape": (2, "TensorShapeProto"),
        "type": (3, "DataType"),
        "slice": (4, "*TensorSliceProto"),
    },
    "SavedTensorSliceMeta": {"tensor": (1, "*SavedSliceMeta"), "versions": (2, "VersionDef")},
    "SavedSlice": {"name": (1, "string"), "slice": (2, "TensorSliceProto"), "data": (3, "TensorProto")},
    "SavedTensorSlices": {"meta": (1, "SavedTensorSliceMeta"), "data": (2, "SavedSlice")},
    "SavedModel": {"saved_model_schema_version": (1, "int64"), "meta_graphs": (2, "*MetaGraphDef")},
}
#: Message -> what its union is called, where that is not "kind".
_UNIONS = {"AttrValue": "value", "TensorInfo": "encoding", "Extent": "has_length"}
#: Messages whose class is an attribute of this module.
NAMES = tuple(name for name in _MESSAGES if "." not in name)

if TYPE_CHECKING:
    AttrValue: Any
    CollectionDef: Any
    FunctionDef: Any
    GraphDef: Any
    MetaGraphDef: Any
    NameAttrList: Any
    NodeDef: Any
    SavedModel: Any
    SignatureDef: Any
    TensorInfo: Any
    TensorProto: Any
    TensorShapeProto: Any
    VariableDef: Any
    VersionDef: Any


@functools.cache
def _classes() -> dict[str, Any]:
    """Message -> its class.

    Raises:
      UnavailableError: the library is not installed.
    """
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ImportError as error:
        raise UnavailableError(
            "TensorFlow's files are read and written with the library protobuf, which is not installed",
            hint="pip install 'graphdock[tensorflow-files]'; Graph.to_json() writes graphdock's own form without it",
        ) from error
    file = descriptor_pb2.FileDescriptorProto(name="graphdock/tensorflow.proto", package="tensorflow", syntax="proto3")
    for name, values in _ENUMS.items():
        enum = file.enum_type.add(name=name)
        for label, number in values.items():
            enum.value.add(name=label, number=number)
    made: dict[str, Any] = {}
    for name, fields in _MESSAGES.items():  # a message stands behind the one it is nested in
        outer, _, last = name.rpartition(".")
        made[name] = made[outer].nested_type.add(name=last) if outer else file.message_type.add(name=last)
        for field, (number, spelled) in fields.items():
            _add_field(made[name], f".tensorflow.{name}", field, number, spelled)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {n: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"tensorflow.{n}")) for n in _MESSAGES}


def _add_field(message: Any, full: str, field: str, number: int, spelled: str) -> None:
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Kinds

    made = message.field.add(name=field, number=number)
    made.label = Kinds.LABEL_REPEATED if spelled[0] == "*" or spelled.startswith("map ") else Kinds.LABEL_OPTIONAL
    kind = spelled.strip("*|")
    if kind.startswith("map "):
        _, key, value = kind.split(" ")
        entry = message.nested_type.add(name="".join(part.capitalize() for part in field.split("_")) + "Entry")
        entry.options.map_entry = True
        _add_field(entry, "", "key", 1, key)
        _add_field(entry, "", "value", 2, value)
        made.type, made.type_name = Kinds.TYPE_MESSAGE, f"{full}.{entry.name}"
    elif kind in _MESSAGES:
        made.type, made.type_name = Kinds.TYPE_MESSAGE, f".tensorflow.{kind}"
    elif kind in _ENUMS:
        made.type, made.type_name = Kinds.TYPE_ENUM, f".tensorflow.{kind}"
    else:
        made.type = Kinds.Type.Value(f"TYPE_{kind.upper()}")
    if spelled[0] == "|":
        made.oneof_index = 0
        if not message.oneof_decl:
            message.oneof_decl.add(name=_UNIONS.get(message.name, "kind"))


def __getattr__(name: str) -> Any:
    if name not in NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _classes()[name]


def make(message: str, **fields: Any) -> Any:
    """A new message. Raises UnavailableError: the library protobuf is not installed."""
    return _classes()[message](**fields)


def from_bytes(message: str, data: bytes, what: str) -> Any:
    """A message of its bytes; ``what`` names the file in errors.

    Raises:
      DataLossError: the bytes are none. UnavailableError: the library protobuf is not installed.
    """
    made = make(message)
    from google.protobuf.message import DecodeError

    try:
        made.ParseFromString(data)
    except (DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataLossError(f"{what} is no {message}, or it is damaged: {error}") from error
    return made


def from_text(message: str, text: str, what: str) -> Any:
    """A message of its text. Fields that are not known are left out.

    Raises:
      DataLossError: it is no such text. UnavailableError: the library protobuf is not installed.
    """
    made = make(message)
    from google.protobuf import text_format

    try:
        text_format.Parse(text, made, allow_unknown_field=True)
    except (text_format.ParseError, ValueError, RecursionError, UnicodeError) as error:
        raise DataLossError(f"{what} is no text of a {message}: {error}") from error
    return made


def to_text(message: Any) -> str:
    """The text of a message, as TensorFlow's ``.pbtxt`` files have it."""
    from google.protobuf import text_format

    text: str = text_format.MessageToString(message)
    return text
