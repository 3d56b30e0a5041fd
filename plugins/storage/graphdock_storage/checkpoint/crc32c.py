"""CRC-32C, the checksum of TensorFlow's files (RFC 3720, appendix B.4), with NumPy: many lanes at once.

The register is linear in the bytes: the CRC of a joined text is that of its first part, sent through as many zero bytes as the
second has, combined with that of the second. So equal pieces are summed side by side, and then joined in pairs.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["crc32c", "crc32c_each", "masked", "unmasked"]

_POLYNOMIAL = 0x82F63B78
#: Bytes from which a text is summed by lanes; those of at least ``_TINY`` bytes by what each byte does to the sum.
_SHORT, _TINY = 1 << 19, 64
#: Bytes that are summed by what each does.
_SPAN = 1024
#: Bytes of a lane, and how many lanes run side by side.
_LANE, _LANES = 1024, 4096


@functools.cache
def _table() -> Any:
    """What a register of 16 bits becomes after two zero bytes."""
    registers: Any = np.arange(1 << 16, dtype=np.uint32)
    for _ in range(16):
        registers = (registers >> 1) ^ np.where(registers & 1, np.uint32(_POLYNOMIAL), np.uint32(0))
    return registers


@functools.cache
def _bytes_table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return table


def _one_lane(data: bytes, register: int) -> int:
    table = _bytes_table()
    for byte in data:
        register = table[(register ^ byte) & 255] ^ (register >> 8)
    return register


def _apply(matrix: list[int], vector: int) -> int:
    total, row = 0, 0
    while vector:
        if vector & 1:
            total ^= matrix[row]
        vector >>= 1
        row += 1
    return total


@functools.cache
def _zeros(count: int) -> tuple[int, ...]:
    """The map of a register through ``count`` zero bytes, as what becomes of each of its bits."""
    if count == 1:
        return tuple(_one_lane(b"\0", 1 << bit) for bit in range(32))
    half = list(_zeros(count // 2))
    doubled = tuple(_apply(half, column) for column in half)
    if count % 2 == 0:
        return doubled
    return tuple(_apply(list(_zeros(1)), column) for column in doubled)


def _through(matrix: tuple[int, ...], registers: Any) -> Any:
    """Many registers through one map."""
    out = np.zeros_like(registers)
    for bit, column in enumerate(matrix):
        out ^= np.where((registers >> np.uint32(bit)) & np.uint32(1), np.uint32(column), np.uint32(0))
    return out


def crc32c(data: Any, start: int = 0) -> int:
    """The CRC-32C of bytes; with ``start``, of bytes that follow those whose CRC that is."""
    view = memoryview(data).cast("B")
    register = start ^ 0xFFFFFFFF
    at = 0
    while len(view) - at >= _SHORT:
        lanes = min(_LANES, 1 << ((len(view) - at) // _LANE).bit_length() - 1)
        register = _side_by_side(view[at : at + lanes * _LANE], lanes, register)
        at += lanes * _LANE
    while len(view) - at >= _TINY:
        register = _byte_by_byte(bytes(view[at : at + _SPAN]), register)
        at += _SPAN
    return _one_lane(bytes(view[at:]), register) ^ 0xFFFFFFFF


@functools.cache
def _effects() -> tuple[Any, Any]:
    """What a byte does to the sum, by its value and by how many bytes come behind it; and where each place's values begin."""
    table: Any = np.array(_bytes_table(), np.uint32)
    effects: Any = np.empty((_SPAN, 256), np.uint32)
    effects[0] = table
    for place in range(1, _SPAN):
        before = effects[place - 1]
        effects[place] = table.take(before & 255) ^ (before >> 8)
    return effects.ravel(), np.arange(_SPAN - 1, -1, -1, dtype=np.intp) * 256


def _byte_by_byte(data: bytes, register: int) -> int:
    """The register after 4 to ``_SPAN`` bytes: the register is a part of the first four, and effects add up."""
    effects, places = _effects()
    first = int.from_bytes(data[:4], "little") ^ register
    values = np.frombuffer(first.to_bytes(4, "little") + data[4:], np.uint8)
    return int(np.bitwise_xor.reduce(effects.take(places[_SPAN - len(data) :] + values)))


def crc32c_each(texts: Sequence[bytes]) -> list[int]:
    """The CRC-32C of each of some texts: of many short ones quicker than one by one."""
    short = [text for text in texts if 4 <= len(text) <= _SPAN]
    found = iter(_all_at_once(short) if len(short) > 1 else map(crc32c, short))
    return [next(found) if 4 <= len(text) <= _SPAN else crc32c(text) for text in texts]


def _all_at_once(texts: list[bytes]) -> list[int]:
    effects, _ = _effects()
    lengths = np.fromiter(map(len, texts), np.intp, len(texts))
    ends = np.cumsum(lengths)
    begins = ends - lengths
    values = np.frombuffer(b"".join(texts), np.uint8).astype(np.intp)
    values[begins[:, None] + np.arange(4)] ^= 255  # what the register begins with
    values += (np.repeat(ends, lengths) - np.arange(1, len(values) + 1)) * 256
    sums = np.bitwise_xor.reduceat(effects.take(values), begins)
    return [int(register) for register in (sums ^ np.uint32(0xFFFFFFFF)).tolist()]


def _side_by_side(view: memoryview, lanes: int, register: int) -> int:
    """The register after ``lanes`` pieces of ``_LANE`` bytes; ``lanes`` is a power of two."""
    words = np.frombuffer(view, "<u2").reshape(lanes, _LANE // 2).T.astype(np.uint32)
    registers, places = np.zeros(lanes, np.uint32), np.empty(lanes, np.uint32)
    registers[0] = register
    table = _table()
    for column in words:
        np.bitwise_xor(registers, column, out=places)
        np.bitwise_and(places, 0xFFFF, out=places)
        np.right_shift(registers, 16, out=registers)
        np.bitwise_xor(registers, table.take(places), out=registers)
    length = _LANE
    while len(registers) > 1:
        registers = _through(_zeros(length), registers[0::2]) ^ registers[1::2]
        length *= 2
    return int(registers[0])


_MASK = 0xA282EAD8


def masked(checksum: int) -> int:
    """As TensorFlow stores a CRC: turned and moved, so that a CRC of what holds CRCs is no trivial one."""
    return ((checksum >> 15 | checksum << 17) + _MASK) & 0xFFFFFFFF


def unmasked(stored: int) -> int:
    """The CRC that is stored as this."""
    turned = (stored - _MASK) & 0xFFFFFFFF
    return (turned >> 17 | turned << 15) & 0xFFFFFFFF
