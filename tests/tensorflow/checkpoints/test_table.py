"""Tables: what a writer made from the format's description writes is read; what is damaged is refused."""

from __future__ import annotations

import os
import random

import pytest
from graphdock.errors import DataLossError
from graphdock_tensorflow.checkpoints.table import MAGIC, Table

ENTRIES = {f"key/{i // 7}/{i}".encode() * (i % 3 + 1): bytes([i]) * (i * 5) for i in range(60)}


def opened(path):
    fd = os.open(path, os.O_RDONLY)
    return fd, Table(fd, str(path))


@pytest.mark.parametrize("packed", [False, True])
def test_entries_in_order_and_by_key(tmp_path, tensorflow_files, packed):
    path = tmp_path / "t"
    path.write_bytes(tensorflow_files.table(ENTRIES, packed))
    fd, table = opened(path)
    try:
        assert list(table) == sorted(ENTRIES.items())
        for key, value in ENTRIES.items():
            assert table.get(key) == value and table.get(key + b"!") is None
        assert table.get(b"") is None and table.get(b"zzz") is None
    finally:
        os.close(fd)


def test_any_byte_that_is_read_is_noticed(tmp_path, tensorflow_files):
    path = tmp_path / "t"
    data = tensorflow_files.table({k: ENTRIES[k] for k in sorted(ENTRIES)[:8]}, True)
    rng, passed, unread = (
        random.Random(0),
        [],
        len(tensorflow_files.blocks({k: ENTRIES[k] for k in sorted(ENTRIES)[:8]}, True)),
    )
    for at in range(len(data)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :])
        fd = os.open(path, os.O_RDONLY)
        try:
            found = list(Table(fd, str(path)))
        except DataLossError:
            pass
        else:
            # the block of other facts, which nothing reads, or the footer's padding and what it says of that block
            assert found == sorted(ENTRIES.items())[:8] and unread <= at < len(data), at
            passed.append(at)
        finally:
            os.close(fd)


def test_lies(tmp_path, tensorflow_files):
    path, files = tmp_path / "t", tensorflow_files
    bad = [
        b"",
        bytes(40) + MAGIC,
        files.varint(0) * 2 + files.varint(1 << 40) + files.varint(5) + bytes(31) + MAGIC,
        b"\xff" * 40 + MAGIC,
    ]
    for content in (
        b"",
        b"\0\0",
        b"\1\0\0\0",
        b"\5\0\0\0" + b"\0\0\0\0",
        b"\0\3\1ab" + bytes(4),
        b"\1\1\1ab" + bytes(4),
    ):
        for kind in (0, 1, 2):
            stored = content + bytes([kind])
            stored += files.masked(files.crc32c(stored)).to_bytes(4, "little")
            handle = files.varint(0) + files.varint(len(content))
            bad.append(stored + (handle * 2).ljust(40, b"\0") + MAGIC)
    for content in (b"\1\1\1ab" + bytes(4), b"\0\3\1ab" + bytes(4)):
        path.write_bytes(
            files.stored(content, False) + ((files.varint(0) + files.varint(len(content))) * 2).ljust(40, b"\0") + MAGIC
        )
        with open(path, "rb") as file, pytest.raises(DataLossError, match="an entry ends behind its block"):
            Table(file.fileno(), str(path))
    for data in bad:
        path.write_bytes(data)
        fd = os.open(path, os.O_RDONLY)
        try:
            with pytest.raises(DataLossError):
                list(Table(fd, str(path)))
        finally:
            os.close(fd)
