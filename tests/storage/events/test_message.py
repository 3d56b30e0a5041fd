"""Messages against the library protobuf: the same bytes, the same messages, the same rules of presence."""

from __future__ import annotations

import copy
import pickle
import random

import numpy as np
import pytest
from graphdock.errors import ArgumentTypeError, DataLossError, InvalidArgumentError, OutOfRangeError
from graphdock_storage.events import graph_messages, messages
from graphdock_storage.events.message import Field, Message

KINDS = [getattr(messages, name) for name in messages.__all__]
KINDS += [getattr(graph_messages, name) for name in graph_messages.__all__]

VALUES = {
    "double": [0.0, -0.0, 1.5, 1e300, float("inf"), -2.25],
    "float": [0.0, -0.0, 0.5, float("-inf"), 3.0e38],
    "int32": [0, 1, -1, 127, 128, 2**31 - 1, -(2**31)],
    "enum": [0, 1, 40],
    "int64": [0, -1, 300, 2**63 - 1, -(2**63)],
    "uint32": [0, 2**32 - 1],
    "uint64": [0, 2**64 - 1],
    "bool": [False, True],
    "string": ["", "a", "größe", "x" * 200],
    "bytes": [b"", b"\0\xff", b"y" * 300],
}


def fill(one, other, rng, depth=0):
    """Set the same random fields of two messages that have the same fields."""
    for field in one._fields.values():
        if rng.random() < 0.4 or depth > 3:
            continue
        for _ in range(rng.randrange(3) if field.repeated else 1):
            if field.scalar is None:
                if field.repeated:
                    fill(getattr(one, field.name).add(), getattr(other, field.name).add(), rng, depth + 1)
                else:
                    getattr(one, field.name).SetInParent()
                    getattr(other, field.name).SetInParent()
                    fill(getattr(one, field.name), getattr(other, field.name), rng, depth + 1)
            elif field.repeated:
                value = rng.choice(VALUES[field.kind])
                getattr(one, field.name).append(value)
                getattr(other, field.name).append(value)
            else:
                value = rng.choice(VALUES[field.kind])
                setattr(one, field.name, value)
                setattr(other, field.name, value)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__qualname__)
def test_bytes_are_those_of_protobuf(protobuf_of, kind):
    rng = random.Random(kind.__qualname__)
    for _ in range(8):
        ours, theirs = kind(), protobuf_of(kind)()
        fill(ours, theirs, rng)
        data = theirs.SerializeToString(deterministic=True)
        assert ours.SerializeToString() == data and ours.ByteSize() == len(data)
        assert kind.FromString(data) == ours and kind.FromString(data).SerializeToString() == data
        assert [f.name for f, _ in ours.ListFields()] == [f.name for f, _ in theirs.ListFields()]
        again = copy.deepcopy(ours)
        assert again == ours == pickle.loads(pickle.dumps(ours)) == copy.copy(ours) and again is not ours


def test_presence_is_that_of_protobuf(protobuf_of):
    for kind in (messages.Summary.Value, protobuf_of(messages.Summary.Value)):
        value = kind()
        assert value.WhichOneof("value") is None and not value.HasField("image") and value.image.height == 0
        assert not value.HasField("image"), "reading sets nothing"
        value.simple_value = 0
        assert value.HasField("simple_value") and value.SerializeToString() == b"\x15\0\0\0\0"
        value.image.height = 3
        assert value.WhichOneof("value") == "image" and not value.HasField("simple_value")
        kept = value.image
        value.simple_value = 1
        kept.height = 9
        assert value.WhichOneof("value") == "simple_value" and value.image.height == 0
        value.histo.bucket.append(2.0)
        assert value.WhichOneof("value") == "histo"
        value.ClearField("histo")
        assert value.WhichOneof("value") is None and value.SerializeToString() == b""
        value.metadata.plugin_data.plugin_name = "text"
        assert value.HasField("metadata") and value.SerializeToString() == b"J\x08\n\x06\n\x04text"
        with pytest.raises(ValueError):
            value.HasField("tag")
        with pytest.raises(ValueError):
            value.HasField("nonsense")
        with pytest.raises(ValueError):
            value.WhichOneof("nonsense")


def test_lists():
    summary = messages.Summary()
    value = messages.Summary.Value(tag="a", simple_value=1)
    summary.value.append(value)
    value.tag = "changed"
    assert summary.value[0].tag == "a", "what is appended is copied"
    summary.value[0].tag = "b"
    summary.value.extend([value, messages.Summary.Value(tag="c")])
    del summary.value[1]
    assert [v.tag for v in summary.value] == ["b", "c"] and len(summary.value) == 2 and summary.value[-1].tag == "c"
    outer = messages.Event()
    outer.summary.value.add(tag="x")
    assert outer.WhichOneof("what") == "summary"
    histogram = messages.HistogramProto(bucket=np.arange(3))
    histogram.bucket[1] = 7
    assert histogram.bucket == [0.0, 7.0, 2.0] and "bucket: 7" in str(histogram)


def test_building_and_copying():
    whole = messages.Event(step=3, summary={"value": [{"tag": "a", "image": {"height": 2}}]}, wall_time=None)
    other = messages.Event()
    other.CopyFrom(whole)
    assert other == whole and other.summary.value[0].image.height == 2
    other.MergeFrom(messages.Event(summary={"value": [{"tag": "b"}]}))
    assert [v.tag for v in other.summary.value] == ["a", "b"] and other.step == 3
    other.Clear()
    assert other == messages.Event() and other != whole


def test_unknown_fields_are_kept():
    class Newer(Message):
        step = Field(2, "int64")
        later = Field(77, "string")

    data = Newer(step=4, later="kept").SerializeToString()
    event = messages.Event.FromString(data)
    assert event.step == 4 and Newer.FromString(event.SerializeToString()).later == "kept"


def test_wrong_values_are_refused_by_name():
    value = messages.Summary.Value()
    with pytest.raises(ArgumentTypeError, match=r"Summary.Value.tag"):
        value.tag = 3
    with pytest.raises(ArgumentTypeError, match="simple_value"):
        value.simple_value = "three"
    with pytest.raises(ArgumentTypeError, match="CopyFrom"):
        value.image = messages.Image()
    with pytest.raises(OutOfRangeError, match="height"):
        value.image.height = 2**31
    with pytest.raises(InvalidArgumentError, match="simple_value") as caught:
        value.simple_valu = 3
    assert "Summary.Value" in str(caught.value)
    with pytest.raises(InvalidArgumentError, match="tga"):
        messages.Summary.Value(tga="x")
    with pytest.raises(ArgumentTypeError, match="another class"):
        value.histo.CopyFrom(messages.Summary())
    with pytest.raises(ArgumentTypeError, match="bytes"):
        messages.Summary.FromString("text")
    value.simple_value = np.float32(2.5)
    value.image.height = np.int64(7)
    assert value.image.height == 7


def test_damaged_bytes_are_refused():
    for data in (
        b"\x0a",
        b"\x0a\x05ab",
        b"\x02\x01",
        b"\x08\x01\x0b",
        b"\x0a\x03\x0a\xff\xff",
        b"\x0a\x03\x0a\x01\xff",
    ):
        with pytest.raises(DataLossError, match="no Summary"):
            messages.Summary.FromString(data)
    for data in (b"\x31\0", b"\x32\x03abc", b"\x3a\x07abcdefg"):
        with pytest.raises(DataLossError, match="no HistogramProto"):
            messages.HistogramProto.FromString(data)

    class Nested(Message):
        pass

    Nested._fields = {"inner": Field(1, Nested)}
    Nested._fields["inner"].name = "inner"
    Nested._numbers = {1: Nested._fields["inner"]}
    data = b""
    for _ in range(40):
        data = b"\x0a" + bytes([len(data)]) + data
    Nested.FromString(data)
    for _ in range(80):
        length = bytes([len(data)]) if len(data) < 128 else bytes([len(data) % 128 + 128, len(data) // 128])
        data = b"\x0a" + length + data
    with pytest.raises(DataLossError, match="deeper"):
        Nested.FromString(data)


def test_text_is_that_of_protobuf(protobuf_of):
    ours, theirs = (
        kind(value=[kind.Value(tag='a"b', simple_value=1.5)]) if kind is messages.Summary else kind()
        for kind in (messages.Summary, protobuf_of(messages.Summary))
    )
    theirs.value.add(tag='a"b', simple_value=1.5)
    assert str(ours) == str(theirs)
