"""Writing TensorFlow's checkpoints of format V2, as SavedModels hold them: one data file, and a table of where things lie."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from graphdock.dtypes import as_dtype
from graphdock.messages import make
from graphdock_storage.checkpoint.crc32c import crc32c, masked
from graphdock_storage.checkpoint.encoding import bytes_of
from graphdock_storage.checkpoint.files import Sink, make_folder, replaced, sync_folder
from graphdock_storage.checkpoint.slices import Slice
from graphdock_storage.checkpoint.varint import varint
from graphdock_storage.tensor_messages import number_of

from graphdock_tensorflow.checkpoints.names import key_of_slice
from graphdock_tensorflow.checkpoints.table import MAGIC

__all__ = ["write_bundle"]

#: Entries of one block of the table.
_BLOCK = 64
_FOOTER = 40


def write_bundle(prefix: str, tensors: Mapping[str, Any]) -> None:
    """Write arrays as the checkpoint ``prefix``, the index last.

    Args:
      tensors: name -> array, or -> the whole's shape and pairs of slice and array.

    Raises:
      GraphdockError: of the class that fits what the system says. UnavailableError: the library protobuf is not installed.
    """
    make_folder(os.path.dirname(prefix))
    entries: dict[bytes, bytes] = {b"": make("BundleHeaderProto", num_shards=1).SerializeToString()}
    with replaced(f"{prefix}.data-00000-of-00001") as sink:
        data = _Data(sink)
        for name in sorted(tensors):
            value = tensors[name]
            if not isinstance(value, tuple):
                entries[name.encode()] = _entry(np.asarray(value), data).SerializeToString()
                continue
            shape, parts = value
            whole = make("BundleEntryProto", dtype=number_of(as_dtype(parts[0][1].dtype)))
            _fill_shape(whole.shape, shape)
            for part, array in parts:
                message = whole.slices.add()
                _fill_slice(message, part, shape)
                entries[key_of_slice(name, message)] = _entry(np.asarray(array), data).SerializeToString()
            entries[name.encode()] = whole.SerializeToString()
    with replaced(f"{prefix}.index") as sink:
        sink.write(_table(sorted(entries.items())), 0)
    sync_folder(os.path.dirname(prefix))


class _Data:
    """The data file, of which one array stands behind the other. ``size``: what it has by now."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.size = 0

    def add(self, data: Any) -> None:
        view = memoryview(data)
        self._sink.write(view, self.size)
        self.size += view.nbytes


def _entry(array: Any, out: _Data) -> Any:
    """Write an array; returns its entry."""
    dtype = as_dtype(array.dtype)
    start = out.size
    if dtype.kind == "S":
        items = [v if isinstance(v, bytes) else str(v).encode() for v in array.ravel()]
        lengths = b"".join(len(v).to_bytes(4, "little") for v in items)
        head = masked(crc32c(lengths)).to_bytes(4, "little")
        body = b"".join(items)
        checksum = crc32c(body, crc32c(head, crc32c(lengths)))
        out.add(b"".join(varint(len(v)) for v in items) + head + body)
    else:
        data = bytes_of(np.ascontiguousarray(array))
        checksum = crc32c(data)
        out.add(data)
    made = make(
        "BundleEntryProto", dtype=number_of(dtype), offset=start, size=out.size - start, crc32c=masked(checksum)
    )
    _fill_shape(made.shape, array.shape)
    return made


def _fill_shape(message: Any, shape: Sequence[int]) -> None:
    message.SetInParent()
    for dim in shape:
        message.dim.add(size=dim)


def _fill_slice(message: Any, part: Slice, shape: Sequence[int]) -> None:
    for start, length, size in zip(part.starts, part.lengths, shape, strict=True):
        extent = message.extent.add()
        if (start, length) != (0, size):
            extent.start, extent.length = start, length


def _table(entries: Sequence[tuple[bytes, bytes]]) -> bytes:
    """A table of sorted entries: blocks, an index of their last keys, and where that is."""
    out = bytearray()
    index = []
    for i in range(0, len(entries), _BLOCK):
        some = entries[i : i + _BLOCK]
        index.append((some[-1][0], _put(out, some)))
    meta = _put(out, [])
    footer = meta + _put(out, index)
    return bytes(out) + footer.ljust(_FOOTER, b"\0") + MAGIC


def _put(out: bytearray, entries: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Append a block, whose keys share nothing; returns where it is."""
    block = bytearray()
    starts = []
    for key, value in entries:
        starts.append(len(block))
        block += varint(0) + varint(len(key)) + varint(len(value)) + key + value
    for start in starts or [0]:
        block += start.to_bytes(4, "little")
    block += (len(starts) or 1).to_bytes(4, "little")
    at = len(out)
    block += b"\0"
    out += block + masked(crc32c(bytes(block))).to_bytes(4, "little")
    return varint(at) + varint(len(block) - 1)
