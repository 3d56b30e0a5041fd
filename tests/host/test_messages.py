"""The messages are TensorFlow's: bytes that its own description gives, text that its tools write."""

from __future__ import annotations

import sys

import pytest
from graphdock import messages
from graphdock.errors import DataLossError, UnavailableError


def test_bytes_are_those_of_the_description():
    graph = messages.make("GraphDef")
    node = graph.node.add(name="a", op="Const", input=["b:1"])
    node.attr["T"].type = 1
    graph.versions.producer = 21
    attr = b"\x2a\x09" + b"\x0a\x01T" + b"\x12\x04"[:1] + b"\x02\x30\x01"
    body = b"\x0a\x01a" + b"\x12\x05Const" + b"\x1a\x03b:1" + b"\x2a\x07\x0a\x01T\x12\x02\x30\x01"
    assert graph.SerializeToString() == b"\x0a" + bytes([len(body)]) + body + b"\x22\x02\x08\x15"
    assert len(attr) == 9
    assert messages.from_bytes("GraphDef", graph.SerializeToString(), "it") == graph


def test_text_and_what_is_not_known_of_it():
    text = 'node { name: "a" attr { key: "T" value { type: DT_HALF } } newer_field: 3 } versions { producer: 21 }'
    graph = messages.from_text("GraphDef", text, "it")
    assert graph.node[0].attr["T"].type == 19 and graph.node[0].attr["T"].WhichOneof("value") == "type"
    assert "type: DT_HALF" in messages.to_text(graph)


def test_fields_of_later_versions_are_kept():
    data = b"\x0a\x03\x0a\x01a" + b"\xfa\x07\x02hi"  # field 127
    assert messages.from_bytes("GraphDef", data, "it").SerializeToString() == data


def test_what_checkpoints_say():
    entry = messages.from_bytes(
        "BundleEntryProto", b"\x08\x03\x12\x08\x12\x02\x08\x02\x12\x02\x08\x05\x98\x06\x01", "it"
    )
    assert (entry.dtype, [d.size for d in entry.shape.dim], entry.size) == (3, [2, 5], 0)
    extents = messages.from_bytes("TensorSliceProto", b"\x0a\x04\x08\x01\x10\x00\x0a\x00", "it").extent
    assert [(e.start, e.HasField("length")) for e in extents] == [(1, True), (0, False)]


def test_what_is_no_message_says_so():
    with pytest.raises(DataLossError, match="the file 'x' is no GraphDef, or it is damaged"):
        messages.from_bytes("GraphDef", b"\x0a\xff", "the file 'x'")
    with pytest.raises(DataLossError, match="no text of a GraphDef"):
        messages.from_text("GraphDef", "node [", "it")
    with pytest.raises(AttributeError, match="Nothing"):
        messages.Nothing  # noqa: B018 - looked up


def test_without_the_library_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(messages, "_classes", messages._classes.__wrapped__)  # the classes of others stay
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    with pytest.raises(UnavailableError, match="not installed") as error:
        messages.make("GraphDef")
    assert "graphdock[tensorflow-files]" in error.value.hint
