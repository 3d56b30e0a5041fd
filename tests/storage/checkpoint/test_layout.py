"""The index: what is written is parsed, and an index that says what can't be is refused."""

from __future__ import annotations

import json
import zlib

import pytest
from graphdock.dtypes import float32, string
from graphdock.errors import DataLossError, UnimplementedError
from graphdock_storage.checkpoint.layout import DataFile, Index, Part, Stored, parse_index
from graphdock_storage.checkpoint.slices import Slice

SUFFIX = ".data-00000-of-00001.0123abcd.safetensors"
INDEX = Index(
    (DataFile(SUFFIX, 100),),
    {
        "ü/w": Stored(
            float32, (5, 2), (Part(Slice((0, 0), (3, 2)), 0, 8, 24, 7), Part(Slice((3, 0), (2, 2)), 0, 32, 16, 8))
        ),
        "s": Stored(string, (), (Part(Slice((), ()), 0, 50, 9, 3),)),
    },
)


def with_head(body, **head):
    text = json.dumps(body).encode() + b"\n"
    head = {"format": "graphdock checkpoint", "schema": 1, "bytes": len(text), "crc32": zlib.crc32(text)} | head
    return json.dumps(head).encode() + b"\n" + text


def test_what_is_written_is_parsed():
    assert parse_index(INDEX.text(), "m.index") == INDEX


def test_any_change_is_noticed():
    text = INDEX.text()
    start = text.index(b"\n") + 1
    for at in range(start, len(text)):
        changed = text[:at] + bytes([text[at] ^ 4]) + text[at + 1 :]
        with pytest.raises(DataLossError, match=r"m\.index"):
            parse_index(changed, "m.index")


def test_a_newer_schema_is_said():
    with pytest.raises(UnimplementedError, match="schema"):
        parse_index(with_head({}, schema=2), "m.index")


GOOD = {"dtype": "float32", "shape": [2], "parts": [{"slice": "", "file": 0, "offset": 0, "bytes": 8, "crc32": 1}]}


def part(**changes):
    return GOOD | {"parts": [GOOD["parts"][0] | changes]}


@pytest.mark.parametrize(
    "entry",
    [
        None,
        [],
        {},
        GOOD | {"dtype": "float33"},
        GOOD | {"dtype": "resource"},
        GOOD | {"shape": [-2]},
        GOOD | {"shape": [True]},
        GOOD | {"shape": [3]},
        GOOD | {"parts": GOOD["parts"] * 2},
        part(slice="0,3"),
        part(file=1),
        part(file=-1),
        part(offset=96),
        part(bytes=7),
        part(bytes=8.0),
        part(crc32="1"),
    ],
)
def test_what_cant_be_is_refused(entry):
    files = [{"suffix": SUFFIX, "bytes": 100}]
    assert parse_index(with_head({"files": files, "tensors": {"w": GOOD}}), "m.index") is not None
    with pytest.raises(DataLossError, match=r"m\.index' says what can't be"):
        parse_index(with_head({"files": files, "tensors": {"w": entry}}), "m.index")


@pytest.mark.parametrize("suffix", ["/etc/passwd", "../x", SUFFIX + "x", ".data-1-of-1.safetensors", 3])
def test_a_data_file_is_the_checkpoints_own(suffix):
    with pytest.raises(DataLossError, match="says what can't be"):
        parse_index(with_head({"files": [{"suffix": suffix, "bytes": 1}], "tensors": {}}), "m.index")
