"""Snappy: by hand from the format's description, and damaged."""

from __future__ import annotations

import random

import pytest
from graphdock.errors import DataLossError
from graphdock_tensorflow.checkpoints.snappy import decompress
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("packed", "plain"),
    [
        (b"\0", b""),
        (b"\5\x10hello", b"hello"),
        (b"\x0a\x08abc\x09\x03", b"abcabcabca"),  # a copy of 6, one byte of offset, hmm: 4 + 2
        (b"\x09\x08abc\x16\x03\0", b"abcabcabc"),  # two bytes of offset
        (b"\x09\x08abc\x17\x03\0\0\0", b"abcabcabc"),  # four
        (b"\x41\xf0\x40" + b"x" * 65, b"x" * 65),  # a literal whose length has a byte of its own
        (b"\x41\xf4\x40\0" + b"x" * 65, b"x" * 65),
        (b"\x05\0a\x01\x01", b"aaaaa"),
    ],
)
def test_by_hand(packed, plain):
    if plain == b"abcabcabca":
        packed = b"\x0a\x08abc" + bytes([(7 - 4) << 2 | 1, 3])
    assert decompress(packed) == plain


@given(st.binary(max_size=400), st.integers(1, 20))
def test_what_is_packed_is_unpacked(tensorflow_files, data, times):
    assert decompress(tensorflow_files.snappy(data * times)) == data * times


def test_damage(tensorflow_files):
    packed = tensorflow_files.snappy(bytes(range(50)) * 4)
    for bad in (
        b"",
        b"\x80",
        b"\xff" * 11,
        b"\5\x10hell",
        b"\4\x10hello",
        b"\x09\x08abc\x16\x04\0",
        b"\x09\x08abc\x16\0\0",
        b"\xff\xff\xff\xff\x7fa",
    ):
        with pytest.raises(DataLossError):
            decompress(bad)
    rng = random.Random(1)
    for _ in range(300):
        changed = bytearray(packed)
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
        try:
            assert len(decompress(bytes(changed))) <= 64 * len(changed)
        except DataLossError:
            pass
