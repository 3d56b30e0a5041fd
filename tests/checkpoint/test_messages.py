"""The declared messages are those of the library's own encoding."""

from __future__ import annotations

import pytest
from graphdock.checkpoint.messages import _MESSAGES, parse
from graphdock.errors import DataLossError

pytest.importorskip("google.protobuf")


def test_fields(tensorflow_files):
    files = tensorflow_files
    entry = parse("Entry", files.number(1, 3) + files.text(2, files.shape_message((2, 5))) + files.number(99, 1), "it")
    assert (entry.dtype, [d.size for d in entry.shape.dim], entry.size) == (3, [2, 5], 0)
    found = parse("SliceMessage", files.slice_message([(1, 0), None]), "it").extent
    assert [(e.start, e.HasField("length")) for e in found] == [(1, True), (0, False)]
    assert list(parse("Tensor", files.text(10, b"\1\xac\2"), "it").int64_val) == [1, 300]


def test_damage_is_named():
    for message in _MESSAGES:
        with pytest.raises(DataLossError, match="the index"):
            parse(message, b"\x0a\xff", "the index")
