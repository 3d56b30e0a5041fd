"""Records in a file, as TensorFlow frames them: eight bytes of length, their checksum, the data, its checksum.

Checksums are CRC-32C, masked. A file is a list of records and nothing else, so that it can be read while it grows.
"""

from __future__ import annotations

import functools
import os
import struct
from collections.abc import Iterator
from typing import BinaryIO

from graphdock.errors import DataLossError

from graphdock_storage.checkpoint.crc32c import crc32c, masked
from graphdock_storage.checkpoint.files import explained

__all__ = ["framed", "read_records"]

_LENGTH, _CHECKSUM = struct.Struct("<Q"), struct.Struct("<I")
#: Bytes that are asked of the system at once: a length that lies takes no memory.
_CHUNK = 1 << 20


def framed(*texts: bytes) -> bytes:
    """Records that hold these bytes, one behind the other."""
    parts: list[bytes] = []
    for data in texts:
        parts += (_head(len(data)), data, _CHECKSUM.pack(_masked_of(data)))
    return b"".join(parts)


@functools.lru_cache(1024)
def _head(size: int) -> bytes:
    length = _LENGTH.pack(size)
    return length + _CHECKSUM.pack(_masked_of(length))


def _masked_of(data: bytes) -> int:
    return masked(crc32c(data))


def read_records(path: str) -> Iterator[bytes]:
    """What the records of a file hold, one after another.

    Raises:
      DataLossError: a record is damaged or cut off; it says at which byte of the file it begins.
      NotFoundError, PermissionDeniedError: the file can't be opened.
    """
    try:
        with open(path, "rb") as file:
            at = 0
            while head := file.read(_LENGTH.size + _CHECKSUM.size):
                data = _record(file, head, at, path)
                yield data
                at += len(head) + len(data) + _CHECKSUM.size
    except (OSError, ValueError) as error:
        if isinstance(error, DataLossError):
            raise
        raise explained(error, "reading", os.fsdecode(path)) from error


def _record(file: BinaryIO, head: bytes, at: int, path: str) -> bytes:
    if len(head) < _LENGTH.size + _CHECKSUM.size:
        raise _lost(path, at, "is cut off")
    if _masked_of(head[: _LENGTH.size]) != _CHECKSUM.unpack_from(head, _LENGTH.size)[0]:
        raise _lost(path, at, "has a length that does not agree with its checksum")
    (length,) = _LENGTH.unpack_from(head)
    parts, left = [], length + _CHECKSUM.size
    while left and (part := file.read(min(left, _CHUNK))):
        parts.append(part)
        left -= len(part)
    whole = b"".join(parts)
    if left:
        raise _lost(path, at, f"is cut off: of {length + _CHECKSUM.size} bytes {left} are missing")
    data = whole[: -_CHECKSUM.size]
    if _masked_of(data) != _CHECKSUM.unpack_from(whole, length)[0]:
        raise _lost(path, at, "does not agree with its checksum")
    return data


def _lost(path: str, at: int, what: str) -> DataLossError:
    return DataLossError(f"the record at byte {at} of {os.fsdecode(path)!r} {what}", hint="was its writer closed?")
