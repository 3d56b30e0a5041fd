"""The messages are TensorFlow's: bytes that its own description gives, text that its tools write."""

from __future__ import annotations

import copy
import functools
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from graphdock import messages
from graphdock.errors import DataLossError, UnavailableError
from graphdock_storage.checkpoint.varint import varint


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
    monkeypatch.setattr(messages, "_made", messages._made.__wrapped__)  # the classes of others stay
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    with pytest.raises(UnavailableError, match="not installed") as error:
        messages.make("GraphDef")
    assert "pip install protobuf" in error.value.hint


def test_the_library_is_imported_with_the_first_message():
    program = """if True:
        import sys, graphdock as tf
        from graphdock import messages
        with tf.Session() as sess:
            sess.run(tf.nn.relu(tf.placeholder(tf.float32, name="x")), {"x:0": [1.0]})
        assert "google.protobuf" not in sys.modules
        messages.make("Event")
        assert "google.protobuf" in sys.modules
    """
    subprocess.run([sys.executable, "-c", program], check=True)


def test_classes_are_made_once_whatever_threads_ask():
    fresh = functools.cache(messages._made.__wrapped__)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(messages, "_made", fresh)
        with ThreadPoolExecutor(8) as pool:
            found = {id(kind) for kind in pool.map(lambda _: messages.GraphDef, range(64))}
    assert len(found) == 1 and fresh.cache_info().misses == 1


def test_every_class_is_copied_and_pickled():
    for name, kind in messages._classes().items():
        if kind.DESCRIPTOR.GetOptions().map_entry:
            continue
        made = kind()
        field = next(
            (
                f
                for f in kind.DESCRIPTOR.fields
                if f.message_type is None and not isinstance(getattr(made, f.name), list)
            ),
            None,
        )
        if field is not None and not hasattr(getattr(made, field.name), "append"):
            setattr(made, field.name, {"str": "x", "bytes": b"x"}.get(type(getattr(made, field.name)).__name__, 1))
        again = pickle.loads(pickle.dumps(made))
        assert again == made == copy.copy(made) == copy.deepcopy(made) and again is not made and type(again) is kind, (
            name
        )
        assert repr(kind) == f"<class 'graphdock.messages.{name}'>"


def test_fields_have_the_numbers_of_the_schema():
    """What the reader makes of each sort of line: scalars, lists, maps, enums of a scope around, unions."""
    value = messages.Summary.Value(tag="a", simple_value=0)
    assert value.SerializeToString() == b"\x0a\x01a\x15\0\0\0\0" and value.WhichOneof("value") == "simple_value"
    value.image.height = 3
    assert not value.HasField("simple_value") and value.WhichOneof("value") == "image"
    assert messages.Example(features={"feature": {"x": {"int64_list": {"value": [1, 2]}}}}).SerializeToString() == (
        b"\x0a\x0d\x0a\x0b\x0a\x01x\x12\x06\x1a\x04\x0a\x02\x01\x02"
    )
    assert messages.SaverDef(version=messages.SaverDef.V2).SerializeToString() == b"\x38\x02"
    assert messages.OptimizerOptions.L0 == -1 and messages.RewriterConfig.OFF == 2 and messages.LogMessage.FATAL == 50
    histogram = messages.HistogramProto(bucket=np.arange(3))
    assert histogram.bucket == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("line", ["message M [", "repeated string s = x;", "string s 3;", "}}"])
def test_a_line_of_a_schema_that_says_nothing_is_refused(line):
    from google.protobuf import descriptor_pb2

    with pytest.raises(AssertionError):
        messages._describe(descriptor_pb2.FileDescriptorProto(), "message A {\n" + line + "\n}")


def test_wrong_values_are_refused_as_the_library_does():
    value = messages.Summary.Value()
    with pytest.raises(TypeError):
        value.tag = 3
    with pytest.raises(TypeError):
        value.simple_value = "three"
    with pytest.raises(AttributeError, match="Assignment not allowed"):
        value.image = messages.Summary.Image()
    with pytest.raises(ValueError, match="out of range"):
        value.image.height = 2**31
    with pytest.raises(AttributeError, match="simple_valu"):
        value.simple_valu = 3
    with pytest.raises(ValueError, match="tga"):
        messages.Summary.Value(tga="x")
    with pytest.raises(TypeError):
        value.histo.CopyFrom(messages.Summary())
    value.simple_value = 1e300
    assert value.simple_value == float("inf")


def test_damaged_bytes_are_refused():
    cut = (b"\x0a", b"\x0a\x05ab", b"\x02\x01", b"\x08\x01\x0b", b"\x0a\x03\x0a\xff\xff", b"\x0a\x03\x0a\x01\xff")
    for name, texts in (("Summary", cut), ("HistogramProto", (b"\x31\0", b"\x32\x03abc", b"\x3a\x07abcdefg"))):
        for data in texts:
            with pytest.raises(DataLossError, match=f"it is no {name}"):
                messages.from_bytes(name, data, "it")
    data = b""
    for _ in range(40):  # a NameAttrList in an AttrValue in an entry of a map
        for key in (b"\x52", b"\x12", b"\x12"):
            data = key + varint(len(data)) + data
    with pytest.raises(DataLossError, match="no NameAttrList"):
        messages.from_bytes("NameAttrList", data, "it")
