"""TensorFlow's checkpoints of format V2: a table ``.index`` and data files ``.data-00000-of-00001`` (``tensor_bundle.cc``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from graphdock.dtypes import string
from graphdock.errors import DataLossError, GraphdockError, UnimplementedError
from graphdock.messages import from_bytes
from graphdock_storage.checkpoint.crc32c import crc32c, masked
from graphdock_storage.checkpoint.encoding import as_strings, bytes_of
from graphdock_storage.checkpoint.layout import Stored, check_apart
from graphdock_storage.checkpoint.reading import Checkpoint, OpenFiles, checked, damaged
from graphdock_storage.checkpoint.slices import Slice
from graphdock_storage.checkpoint.varint import read_varint

from graphdock_tensorflow.checkpoints.names import dims_of, dtype_of, key_of_slice, slices_of
from graphdock_tensorflow.checkpoints.table import Table

__all__ = ["BundleCheckpoint"]

_BIG_ENDIAN = 1


@dataclass(frozen=True, slots=True)
class _Part:
    """A slice and where its bytes are; ``checksum`` is masked."""

    slice: Slice
    file: int
    offset: int
    nbytes: int
    checksum: int


class BundleCheckpoint(Checkpoint):
    """A checkpoint that TensorFlow's Saver wrote.

    Raises:
      DataLossError: it is damaged. NotFoundError: a data file is missing. UnimplementedError: it is of a machine whose bytes stand
        in the other order. UnavailableError: the library protobuf is not installed.
    """

    format = "tensorflow v2"

    def __init__(self, prefix: str, table: Table) -> None:
        super().__init__(prefix, {})
        header = from_bytes("BundleHeaderProto", table.get(b"") or b"", f"the index of {prefix!r}")
        if header.endianness == _BIG_ENDIAN:
            raise UnimplementedError(f"the checkpoint {prefix!r} was written on a big-endian machine")
        entries: dict[bytes, Any] = {
            k: from_bytes("BundleEntryProto", v, f"the index of {prefix!r}") for k, v in table if k
        }
        shards = sorted({e.shard_id for e in entries.values() if not e.slices})
        self._number = {shard: i for i, shard in enumerate(shards)}
        self.tensors = {}
        for key, entry in entries.items():
            if not key.startswith(b"\0"):
                self._add(key, entry, entries)
        try:
            check_apart([part for stored in self.tensors.values() for part in stored.parts])
        except GraphdockError as error:
            raise DataLossError(f"the index of {prefix!r} is damaged: {error.message}") from error
        self._files = OpenFiles([f"{prefix}.data-{shard:05d}-of-{header.num_shards:05d}" for shard in shards])

    def _add(self, key: bytes, entry: Any, entries: dict[bytes, Any]) -> None:
        name = key.decode("utf-8", "surrogateescape")
        what = f"the tensor {name!r} of the checkpoint {self.prefix!r}"
        shape, dtype = dims_of(entry.shape, what), dtype_of(entry.dtype)
        if dtype is None:
            self.unread[name] = f"TensorFlow's DataType {entry.dtype}"
            return
        if not entry.slices:
            found = [self._part(Slice.whole(shape), entry)]
        else:
            found = []
            for message, where in zip(entry.slices, slices_of(entry.slices, shape, what), strict=True):
                part = entries.get(key_of_slice(name, message))
                if part is None or part.slices or part.dtype != entry.dtype:
                    raise DataLossError(f"{what} lacks a slice")
                found.append(self._part(where, part))
        for part in found:
            if part.offset < 0 or part.nbytes < 0 or (dtype.size and part.nbytes != part.slice.size * dtype.size):
                raise DataLossError(f"{what} has another length than its elements")
        self.tensors[name] = Stored(dtype, shape, tuple(found))

    def _part(self, part: Slice, entry: Any) -> _Part:
        return _Part(part, self._number[entry.shard_id], entry.offset, entry.size, entry.crc32c)

    def part(self, name: str, stored: Stored, part: _Part) -> Any:
        if part.offset + part.nbytes > self._files.size(part.file):
            raise damaged(self, name, "its file is cut off")
        if stored.dtype is string:
            return self._strings(name, part)
        out = np.empty(part.slice.size, stored.dtype.np)
        data = bytes_of(out)
        self._files.read_into(part.file, part.offset, data)
        if masked(crc32c(data)) != part.checksum:
            raise damaged(self, name, "its checksum does not fit")
        return checked(self, name, out)

    def _strings(self, name: str, part: _Part) -> Any:
        """Lengths as varints, their CRC, and all bytes. The CRC of the whole takes the lengths as they are in memory."""
        data = bytearray(part.nbytes)
        self._files.read_into(part.file, part.offset, data)
        lengths, at = [], 0
        if part.slice.size > len(data):
            raise damaged(self, name, "it has fewer bytes than strings")
        for _ in range(part.slice.size):
            length, at = read_varint(data, at)
            lengths.append(length)
        head, body = (
            b"".join(n.to_bytes(4 if n < 1 << 32 else 8, "little") for n in lengths),
            memoryview(data)[at + 4 :],
        )
        checksum = crc32c(head)
        if (
            len(data) < at + 4
            or masked(checksum) != int.from_bytes(data[at : at + 4], "little")
            or sum(lengths) != len(body)
        ):
            raise damaged(self, name, "the lengths of its strings are not those that were saved")
        if masked(crc32c(body, crc32c(data[at : at + 4], checksum))) != part.checksum:
            raise damaged(self, name, "its checksum does not fit")
        return as_strings(body, lengths)

    def close(self) -> None:
        self._files.close()
