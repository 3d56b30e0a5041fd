"""CRC-32C against the RFC's numbers, and against the bits one by one."""

from __future__ import annotations

import random

import pytest
from graphdock_storage.checkpoint import crc32c as module
from graphdock_storage.checkpoint.crc32c import crc32c, crc32c_each, masked, unmasked


def test_numbers_of_the_rfc():
    """RFC 3720, B.4."""
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 600, 1023, 1025, 2047, 2048, 2049, 5000, 40_001])
@pytest.mark.parametrize("short", [2048, 1 << 19])
def test_lanes_are_the_bits_one_by_one(tensorflow_files, monkeypatch, size, short):
    monkeypatch.setattr(module, "_SHORT", short)
    data = random.Random(size).randbytes(size)
    expected = tensorflow_files.crc32c(data)
    assert crc32c(data) == crc32c(bytearray(data)) == expected
    cut = size // 3
    assert crc32c(data[cut:], crc32c(data[:cut])) == expected


def test_many_texts_are_summed_as_each_by_itself():
    rng = random.Random(8)
    texts = [rng.randbytes(rng.choice([0, 1, 3, 4, 5, 40, 1023, 1024, 1025, 3000])) for _ in range(60)]
    assert crc32c_each(texts) == [crc32c(text) for text in texts]
    assert crc32c_each([]) == [] and crc32c_each([b"123456789"]) == [0xE3069283]


def test_masks(tensorflow_files):
    for value in (0, 1, 0xFFFFFFFF, 0xE3069283):
        assert masked(value) == tensorflow_files.masked(value) and unmasked(masked(value)) == value
