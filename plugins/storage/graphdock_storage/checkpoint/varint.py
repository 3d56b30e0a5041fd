"""Numbers of one to ten bytes, seven bits each, the lowest first: as protocol buffers, tables and Snappy write them."""

from __future__ import annotations

from graphdock.errors import DataLossError

__all__ = ["read_varint", "varint"]


def read_varint(data: bytes | bytearray | memoryview, at: int) -> tuple[int, int]:
    """A number below 2**64, and where the bytes behind it begin.

    Raises:
      DataLossError: the bytes end before, or the number is larger.
    """
    number = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise DataLossError("a number is cut off")
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            if number >> 64:
                break
            return number, at
    raise DataLossError("a number has more than 64 bits")


def varint(number: int) -> bytes:
    """The bytes of a number; of a negative one, those of its 64 bits."""
    if 0 <= number < 128:
        return bytes((number,))
    number &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)
