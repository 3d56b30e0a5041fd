"""The scalar kinds of protocol buffers, as bytes and back (https://protobuf.dev/programming-guides/encoding)."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from graphdock.errors import ArgumentTypeError, DataLossError, OutOfRangeError

from graphdock_storage.checkpoint.varint import read_varint

__all__ = ["BYTES", "FIXED32", "FIXED64", "KINDS", "VARINT", "Kind", "skip", "varint"]

#: How the bytes of a value end: by themselves, after eight or four of them, or after a length.
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_LARGEST_FLOAT = 3.4028235677973366e38


class Kind(NamedTuple):
    """A kind of scalar.

    Attributes:
      wire: how its bytes end.
      default: what a field has that nobody set.
      check: the value as it is kept. Raises ArgumentTypeError or OutOfRangeError.
      write: its bytes, with their length where they have one.
      read: bytes, and where they begin and end -> the value, and where the next one begins.
      code: of ``struct``, for kinds of fixed length.
    """

    wire: int
    default: Any
    check: Callable[[Any], Any]
    write: Callable[[Any], bytes]
    read: Callable[[bytes, int, int], tuple[Any, int]]
    code: str = ""


def varint(number: int) -> bytes:
    """A number of 64 bits in as few bytes as it needs, seven bits each."""
    if 0 <= number < 128:
        return bytes((number,))
    number &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def skip(data: bytes, at: int, end: int, wire: int) -> int:
    """Where the value that begins at ``at`` ends. Raises DataLossError: behind ``end``, or it is of no known wire type."""
    if wire == VARINT:
        _, after = read_varint(data, at)
    elif wire == BYTES:
        length, begin = read_varint(data, at)
        after = begin + length
    elif wire in (FIXED64, FIXED32):
        after = at + (8 if wire == FIXED64 else 4)
    else:
        raise DataLossError(f"a value is of the wire type {wire}")
    if after > end:
        raise DataLossError("a value is cut off")
    return after


def _wrong(expected: str, value: Any) -> ArgumentTypeError:
    return ArgumentTypeError("the value of a field is of the wrong type", expected=expected, got=repr(value)[:80])


def _integer(bits: int, signed: bool) -> Kind:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)

    def check(value: Any) -> int:
        try:
            number = int(value.__index__())
        except AttributeError:
            raise _wrong("an integer", value) from None
        if not low <= number <= high:
            raise OutOfRangeError(
                "the value of a field is out of range", expected=f"{low} to {high}", got=str(value)[:80]
            )
        return number

    def read(data: bytes, at: int, end: int) -> tuple[int, int]:
        number, after = read_varint(data, at)
        number &= (1 << bits) - 1
        return (number - (1 << bits) if signed and number >> bits - 1 else number), after

    return Kind(VARINT, 0, check, varint, read)


def _check_bool(value: Any) -> bool:
    if isinstance(value, (str, bytes)) or not hasattr(value, "__bool__") and not hasattr(value, "__index__"):
        raise _wrong("a bool", value)
    return bool(value)


def _read_bool(data: bytes, at: int, end: int) -> tuple[bool, int]:
    number, after = read_varint(data, at)
    return bool(number), after


def _check_double(value: Any) -> float:
    if isinstance(value, (str, bytes)) or not hasattr(value, "__float__") and not hasattr(value, "__index__"):
        raise _wrong("a number", value)
    try:
        return float(value)
    except TypeError:
        raise _wrong("a number", value) from None


def _check_float(value: Any) -> float:
    number = _check_double(value)
    if abs(number) > _LARGEST_FLOAT:  # larger than what rounds to the largest float
        return float("inf") if number > 0 else float("-inf")
    rounded: float = struct.unpack("<f", struct.pack("<f", number))[0]
    return rounded


def _fixed(code: str, wire: int, check: Callable[[Any], float]) -> Kind:
    form = struct.Struct("<" + code)

    def read(data: bytes, at: int, end: int) -> tuple[float, int]:
        if at + form.size > end:
            raise DataLossError("a number is cut off")
        return form.unpack_from(data, at)[0], at + form.size

    return Kind(wire, 0.0, check, form.pack, read, code)


def _part(data: bytes, at: int, end: int) -> tuple[bytes, int]:
    length, begin = read_varint(data, at)
    if begin + length > end:
        raise DataLossError("a text is cut off")
    return data[begin : begin + length], begin + length


def _check_string(value: Any) -> str:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise _wrong("text, or its bytes in UTF-8", value) from None
    if not isinstance(value, str):
        raise _wrong("text", value)
    return value


def _read_string(data: bytes, at: int, end: int) -> tuple[str, int]:
    part, after = _part(data, at, end)
    try:
        return part.decode(), after
    except UnicodeDecodeError:
        raise DataLossError("a text is no UTF-8") from None


def _check_bytes(value: Any) -> bytes:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise _wrong("bytes", value)
    return bytes(value)


def _write_bytes(value: bytes) -> bytes:
    return varint(len(value)) + value


_INT32 = _integer(32, True)

#: Name of a kind, as a ``.proto`` file spells it -> the kind.
KINDS: dict[str, Kind] = {
    "double": _fixed("d", FIXED64, _check_double),
    "float": _fixed("f", FIXED32, _check_float),
    "int32": _INT32,
    "enum": _INT32,
    "int64": _integer(64, True),
    "uint32": _integer(32, False),
    "uint64": _integer(64, False),
    "bool": Kind(VARINT, False, _check_bool, lambda value: b"\1" if value else b"\0", _read_bool),
    "string": Kind(BYTES, "", _check_string, lambda value: _write_bytes(value.encode()), _read_string),
    "bytes": Kind(BYTES, b"", _check_bytes, _write_bytes, _part),
}
