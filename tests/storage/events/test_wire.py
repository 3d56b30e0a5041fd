"""Scalars on the wire, by the numbers of protobuf's own documentation; all kinds against the library stand in test_message.py."""

from __future__ import annotations

import pytest
from graphdock.errors import ArgumentTypeError, DataLossError, OutOfRangeError
from graphdock_storage.events.wire import BYTES, FIXED32, FIXED64, KINDS, VARINT, skip, varint


def test_numbers_of_the_documentation():
    assert varint(150) == b"\x96\x01" and varint(1) == b"\x01" and varint(-2) == b"\xfe" + b"\xff" * 8 + b"\x01"
    assert KINDS["string"].write("testing") == b"\x07testing"
    assert KINDS["int32"].read(b"\x96\x01", 0, 2) == (150, 2)
    assert KINDS["int64"].read(varint(-2), 0, 10) == (-2, 10)


def test_values_are_skipped_by_their_wire_types():
    assert skip(b"\x96\x01x", 0, 3, VARINT) == 2
    assert skip(b"\x02abx", 0, 4, BYTES) == 3
    assert skip(bytes(9), 0, 9, FIXED64) == 8 and skip(bytes(9), 0, 9, FIXED32) == 4
    for data, wire in ((b"\x05ab", BYTES), (b"abc", FIXED32), (b"\xff", VARINT), (b"a", 3), (b"a", 7)):
        with pytest.raises(DataLossError):
            skip(data, 0, len(data), wire)


@pytest.mark.parametrize(
    ("kind", "value", "error"),
    [
        ("int32", 2**31, OutOfRangeError),
        ("uint64", -1, OutOfRangeError),
        ("int64", 1.5, ArgumentTypeError),
        ("double", "1", ArgumentTypeError),
        ("float", None, ArgumentTypeError),
        ("string", b"\xff", ArgumentTypeError),
        ("bytes", "text", ArgumentTypeError),
        ("bool", "yes", ArgumentTypeError),
    ],
)
def test_what_a_kind_refuses(kind, value, error):
    with pytest.raises(error):
        KINDS[kind].check(value)


def test_floats_are_rounded_as_they_are_stored():
    check = KINDS["float"].check
    assert check(0.1) == 0.10000000149011612 and check(1e300) == float("inf") and check(-1e300) == float("-inf")
    assert KINDS["string"].check(b"caf\xc3\xa9") == "café"
