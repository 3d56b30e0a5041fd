"""The messages of graphs and of what steps report, as TensorBoard reads them (``graph.proto``, ``step_stats.proto``)."""

from __future__ import annotations

from graphdock_storage.events.message import Field, Message
from graphdock_storage.events.messages import TensorProto, TensorShapeProto

__all__ = ["AttrValue", "DeviceStepStats", "GraphDef", "NodeDef", "NodeExecStats", "RunMetadata", "StepStats"]


class AttrValue(Message):
    """The value of an attribute."""

    class ListValue(Message):
        """A list of values of one kind."""

        s = Field(2, "bytes", repeated=True)
        i = Field(3, "int64", repeated=True)
        f = Field(4, "float", repeated=True)
        b = Field(5, "bool", repeated=True)
        type = Field(6, "enum", repeated=True)
        shape = Field(7, TensorShapeProto, repeated=True)
        tensor = Field(8, TensorProto, repeated=True)

    list = Field(1, ListValue, oneof="value")
    s = Field(2, "bytes", oneof="value")
    i = Field(3, "int64", oneof="value")
    f = Field(4, "float", oneof="value")
    b = Field(5, "bool", oneof="value")
    type = Field(6, "enum", oneof="value")
    shape = Field(7, TensorShapeProto, oneof="value")
    tensor = Field(8, TensorProto, oneof="value")


class Attr(Message):
    """An entry of the map of a node's attributes."""

    key = Field(1, "string")
    value = Field(2, AttrValue)


class NodeDef(Message):
    """One node of a graph."""

    name = Field(1, "string")
    op = Field(2, "string")
    input = Field(3, "string", repeated=True)
    device = Field(4, "string")
    attr = Field(5, Attr, repeated=True)


class VersionDef(Message):
    """Of the format."""

    producer = Field(1, "int32")
    min_consumer = Field(2, "int32")


class GraphDef(Message):
    """A graph."""

    node = Field(1, NodeDef, repeated=True)
    versions = Field(4, VersionDef)


class AllocatorMemoryUsed(Message):
    """Bytes that a node took of a memory."""

    allocator_name = Field(1, "string")
    total_bytes = Field(2, "int64")
    peak_bytes = Field(3, "int64")
    live_bytes = Field(4, "int64")


class TensorDescription(Message):
    """Dtype and shape of an output."""

    dtype = Field(1, "enum")
    shape = Field(2, TensorShapeProto)


class NodeOutput(Message):
    """An output of a node that ran."""

    slot = Field(1, "int32")
    tensor_description = Field(3, TensorDescription)


class NodeExecStats(Message):
    """One run of a node: when it began, in microseconds since 1970, and when its parts ended, since then."""

    node_name = Field(1, "string")
    all_start_micros = Field(2, "int64")
    op_start_rel_micros = Field(3, "int64")
    op_end_rel_micros = Field(4, "int64")
    all_end_rel_micros = Field(5, "int64")
    memory = Field(6, AllocatorMemoryUsed, repeated=True)
    output = Field(7, NodeOutput, repeated=True)
    timeline_label = Field(8, "string")


class DeviceStepStats(Message):
    """What ran on one device."""

    device = Field(1, "string")
    node_stats = Field(2, NodeExecStats, repeated=True)


class StepStats(Message):
    """What ran in a step."""

    dev_stats = Field(1, DeviceStepStats, repeated=True)


class RunMetadata(Message):
    """What a traced step reported."""

    step_stats = Field(1, StepStats)
