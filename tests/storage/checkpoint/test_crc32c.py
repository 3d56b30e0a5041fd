"""CRC-32C against the RFC's numbers, and against the bits one by one."""

from __future__ import annotations

import random

import numpy as np
import pytest
from graphdock_storage.checkpoint.crc32c import crc32c, masked, unmasked


def test_numbers_of_the_rfc():
    """RFC 3720, B.4."""
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E


@pytest.mark.parametrize("size", [0, 1, 64, 600, 5000, 40_001])
def test_sums_are_those_of_the_bits_one_by_one(tensorflow_files, size):
    data = random.Random(size).randbytes(size)
    expected = tensorflow_files.crc32c(data)
    whole = np.frombuffer(bytearray(data), np.uint8)
    assert [crc32c(form) for form in (data, bytearray(data), memoryview(data), whole)] == [expected] * 4
    assert whole.flags.writeable
    cut = size // 3
    assert crc32c(memoryview(data)[cut:], crc32c(data[:cut])) == expected


def test_masks(tensorflow_files):
    for value in (0, 1, 0xFFFFFFFF, 0xE3069283):
        assert masked(value) == tensorflow_files.masked(value) and unmasked(masked(value)) == value
