"""Records in a file, as TensorFlow frames them: eight bytes of length, their checksum, the data, its checksum.

Checksums are CRC-32C, masked. A file is a list of records and nothing else, so that it can be read while it grows; it may be
compressed as a whole (:mod:`graphdock_storage.compressed`). Event files and TFRecord files are such files.
"""

from __future__ import annotations

import functools
import os
import struct
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import BinaryIO, Self

from google_crc32c import value as _crc32c
from graphdock.errors import DataLossError, FailedPreconditionError, GraphdockError

from graphdock_storage.checkpoint.crc32c import masked
from graphdock_storage.checkpoint.files import explained
from graphdock_storage.compressed import Damaged, deflated, inflated
from graphdock_storage.stores import opened

__all__ = ["FRAME", "RecordWriter", "framed", "read_records"]

_LENGTH, _CHECKSUM, _HEAD = struct.Struct("<Q"), struct.Struct("<I"), struct.Struct("<QI")
#: Bytes of a record besides its data.
FRAME = _HEAD.size + _CHECKSUM.size
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
    return masked(_crc32c(data))


def read_records(path: str, compression: str = "") -> Iterator[bytes]:
    """Yield what the records of a file hold, one after another.

    Args:
      compression: of the whole file: ``""``, ``"ZLIB"`` or ``"GZIP"``.

    Raises:
      DataLossError: a record is damaged or cut off; it says at which byte of the file it begins (of a compressed one: of what the
        file holds).
      InvalidArgumentError: there is no such compression.
      NotFoundError, PermissionDeniedError: the file can't be opened.
    """
    at = 0
    try:
        with inflated(opened(path), compression) as file:
            read, unpack, checksum_of = file.read, _HEAD.unpack, _CHECKSUM.unpack_from
            while head := read(_HEAD.size):
                if len(head) < _HEAD.size:
                    raise _lost(path, at, "is cut off")
                length, stored = unpack(head)
                if head != _head(length):
                    raise _lost(path, at, "has a length that does not agree with its checksum")
                whole = read(length + 4) if length < _CHUNK else _long(file, length + 4)
                if len(whole) < length + 4:
                    missing = length + 4 - len(whole)
                    raise _lost(path, at, f"is cut off: of {length + 4} bytes {missing} are missing")
                data = whole[:-4]
                if _masked_of(data) != checksum_of(whole, length)[0]:
                    raise _lost(path, at, "does not agree with its checksum")
                yield data
                at += length + FRAME
    except Damaged as error:
        raise _lost(path, at, f"can't be decompressed: {error}") from error
    except GraphdockError:
        raise
    except (OSError, ValueError) as error:
        raise explained(error, "reading", os.fsdecode(path)) from error


def _long(file: BinaryIO, size: int) -> bytes:
    parts = []
    while size and (part := file.read(min(size, _CHUNK))):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _lost(path: str, at: int, what: str) -> DataLossError:
    return DataLossError(f"the record at byte {at} of {os.fsdecode(path)!r} {what}", hint="was its writer closed?")


class RecordWriter:
    """A new file of records; one that is there is replaced. One thread at a time may use it.

    Args:
      compression, options: as of :func:`graphdock_storage.compressed.deflated`.

    Raises:
      GraphdockError: of the class that fits, NotFoundError for example: the file can't be made.
    """

    def __init__(self, path: str, compression: str = "", **options: int | None) -> None:
        self._path = os.fsdecode(path)
        try:
            self._file: BinaryIO | None = deflated(opened(path, "wb"), compression, **options)  # noqa: SIM115 - close() does
        except OSError as error:
            raise explained(error, "cannot make the file of records", self._path) from error

    def write(self, record: bytes) -> None:
        """Add a record.

        Raises:
          FailedPreconditionError: it is closed. ResourceExhaustedError: the disk is full.
        """
        self._do(lambda file: file.write(framed(record)))

    def flush(self) -> None:
        """Hand to the system what was written; of a compressed file, what is whole by now."""
        self._do(lambda file: file.flush())

    def close(self) -> None:
        """End the file. Nothing happens where it is closed already."""
        if self._file is not None:
            self._do(lambda file: file.close())
            self._file = None

    def _do(self, what: Callable[[BinaryIO], object]) -> None:
        if self._file is None:
            raise FailedPreconditionError(f"the file of records {self._path!r} is closed")
        try:
            what(self._file)
        except OSError as error:
            raise explained(error, "cannot write the file of records", self._path) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
