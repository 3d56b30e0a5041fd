"""Snappy, decompressed: how blocks of TensorFlow's tables may be packed.

The format is described in ``format_description.txt`` of google/snappy: the length as a varint, then literals, and copies of what
came before.
"""

from __future__ import annotations

from graphdock.errors import DataLossError
from graphdock_storage.checkpoint.varint import read_varint

__all__ = ["decompress"]

#: A copy of 64 bytes takes 2 bytes at least, so that a text is at most so many times as long as what it was packed into.
_RATIO = 64


def decompress(data: bytes) -> bytes:
    """The bytes that were packed.

    Raises:
      DataLossError: this is not Snappy's format, or the length that it says is another.
    """
    length, at = read_varint(data, 0)
    if length > _RATIO * len(data):
        raise DataLossError("a block says that it is longer than it can be", got=f"{length} bytes in {len(data)}")
    out = bytearray()
    while at < len(data):
        tag = data[at]
        at += 1
        if tag & 3 == 0:
            count = (tag >> 2) + 1
            if count > 60:
                extra = count - 60
                count = int.from_bytes(data[at : at + extra], "little") + 1
                at += extra
            out += data[at : at + count]
            at += count
        else:
            if tag & 3 == 1:
                count, extra, high = (tag >> 2 & 7) + 4, 1, tag >> 5 << 8
            else:
                count, extra, high = (tag >> 2) + 1, 2 if tag & 3 == 2 else 4, 0
            offset = int.from_bytes(data[at : at + extra], "little") + high
            at += extra
            if not 0 < offset <= len(out):
                raise DataLossError("a block copies from before its beginning")
            piece = out[len(out) - offset : len(out) - offset + count]
            out += (piece * (count // len(piece) + 1))[:count]
        if len(out) > length:
            break
    if len(out) != length or at != len(data):
        raise DataLossError("a block has another length than it says", expected=str(length), got=str(len(out)))
    return bytes(out)
