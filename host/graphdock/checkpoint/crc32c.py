"""CRC-32C, the checksum of TensorFlow's files (RFC 3720, appendix B.4), with NumPy: many lanes at once.

The register is linear in the bytes: the CRC of a joined text is that of its first part, sent through as many zero bytes as the
second has, combined with that of the second. So equal pieces are summed side by side, and then joined in pairs.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

__all__ = ["crc32c", "masked", "unmasked"]

_POLYNOMIAL = 0x82F63B78
#: Bytes below which a text is one lane.
_SHORT = 2048
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
    return _one_lane(bytes(view[at:]), register) ^ 0xFFFFFFFF


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
