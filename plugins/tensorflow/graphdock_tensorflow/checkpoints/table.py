"""Sorted tables: TensorFlow's files of keys and values, of LevelDB's format (``doc/table_format.md`` of google/leveldb).

A table is blocks of entries, an index block that says at which key each of them ends, and a footer that says where the index is.
Behind each block stand its kind of packing and its CRC. Keys share the beginnings of those before them.
"""

from __future__ import annotations

import bisect
import os
from collections.abc import Iterator

from graphdock.errors import DataLossError
from graphdock_storage.checkpoint.crc32c import crc32c, masked
from graphdock_storage.checkpoint.files import read_into
from graphdock_storage.checkpoint.varint import read_varint

from graphdock_tensorflow.checkpoints.snappy import decompress

__all__ = ["MAGIC", "Table"]

#: The last eight bytes of a table.
MAGIC = (0xDB4775248B80FB57).to_bytes(8, "little")
_FOOTER = 48
_TRAILER = 5
_PLAIN, _SNAPPY = 0, 1
#: Of so many entries one has its key whole, so that all keys are at most so many times as long as their block.
_SHARING = 16


class Table:
    """A table in an open file.

    One thread at a time may read from it.

    Args:
      fd: the file; it stays open, and is the caller's to close. ``path``: its name, for messages.

    Raises:
      DataLossError: it is no table, or damaged.
    """

    def __init__(self, fd: int, path: str) -> None:
        self._fd = fd
        self._path = path
        self._size = os.fstat(fd).st_size
        if self._size < _FOOTER:
            raise self._damaged("it is too short")
        footer = self._bytes(self._size - _FOOTER, _FOOTER)
        if footer[-8:] != MAGIC:
            raise self._damaged("it does not end as one")
        _, at = self._handle(footer, 0)
        index, _ = self._handle(footer, at)
        entries = list(self._entries(index))
        self._ends = [key for key, _ in entries]
        self._blocks = [self._handle(value, 0)[0] for _, value in entries]
        end = 0
        for offset, size in self._blocks:
            if offset < end:
                raise self._damaged("blocks overlap")
            end = offset + size + _TRAILER
        self._last: tuple[int, dict[bytes, bytes]] = (-1, {})

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        """All entries, in order of their keys."""
        for block in self._blocks:
            yield from self._entries(block)

    def get(self, key: bytes) -> bytes | None:
        """The value of a key; None where there is none."""
        number = bisect.bisect_left(self._ends, key)
        if number == len(self._ends):
            return None
        if self._last[0] != number:
            self._last = (number, dict(self._entries(self._blocks[number])))
        return self._last[1].get(key)

    def _damaged(self, why: str) -> DataLossError:
        return DataLossError(f"the table {self._path!r} is damaged, or none: {why}")

    def _bytes(self, offset: int, size: int) -> bytes:
        out = bytearray(size)
        read_into(self._fd, offset, out, self._path)
        return bytes(out)

    def _handle(self, data: bytes, at: int) -> tuple[tuple[int, int], int]:
        """Return where a block lies and how long it is, and where the bytes behind that begin."""
        offset, at = read_varint(data, at)
        size, at = read_varint(data, at)
        if offset + size + _TRAILER > self._size:
            raise self._damaged("a block ends behind the file")
        return (offset, size), at

    def _entries(self, handle: tuple[int, int]) -> Iterator[tuple[bytes, bytes]]:
        block = self._block(handle)
        if len(block) < 4:
            raise self._damaged("a block is too short")
        restarts = int.from_bytes(block[-4:], "little")
        end = len(block) - 4 - 4 * restarts
        if end < 0:
            raise self._damaged("a block is too short")
        at, key, left = 0, b"", _SHARING * end
        while at < end:
            shared, at = read_varint(block, at)
            fresh, at = read_varint(block, at)
            size, at = read_varint(block, at)
            if shared > len(key) or at + fresh + size > end:
                raise self._damaged("an entry ends behind its block")
            key = key[:shared] + block[at : at + fresh]
            at += fresh
            left -= len(key)
            if left < 0:
                raise self._damaged("its keys are longer than its block can say")
            yield key, block[at : at + size]
            at += size

    def _block(self, handle: tuple[int, int]) -> bytes:
        offset, size = handle
        found = self._bytes(offset, size + _TRAILER)
        if int.from_bytes(found[-4:], "little") != masked(crc32c(found[:-4])):
            raise self._damaged("the checksum of a block does not fit")
        if found[size] == _PLAIN:
            return found[:size]
        if found[size] == _SNAPPY:
            return decompress(found[:size])
        raise self._damaged(f"a block is packed in a way that is not known, {found[size]}")
