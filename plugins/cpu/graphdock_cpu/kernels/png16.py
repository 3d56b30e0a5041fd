"""PNG files of 16 bits with several channels, which Pillow reads as 8 bits and does not write.

The format: W3C, "Portable Network Graphics (PNG) Specification (Third Edition)".
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

__all__ = ["read", "write"]

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
#: Channels of a pixel -> the colour type that says so.
_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}
#: First row, first column and their steps of the seven images of an interlaced one.
_PASSES = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))


def write(pixels: Any, level: int) -> bytes:
    """The file of ``[H,W,C]`` pixels of uint16; ``level`` is zlib's, or -1.

    Of the five filters each row takes the one whose differences have the least sum, which the standard advises (12.7).
    """
    height, width, count = pixels.shape
    rows = pixels.astype(">u2").view(np.uint8).reshape(height, width, 2 * count).astype(np.int16)
    left, above, corner = np.zeros_like(rows), np.zeros_like(rows), np.zeros_like(rows)
    left[:, 1:], above[1:], corner[1:, 1:] = rows[:, :-1], rows[:-1], rows[:-1, :-1]
    bases = (0, left, above, (left + above) // 2, _nearest(left, above, corner))
    filtered = np.stack([(rows - base).astype(np.uint8).reshape(height, -1) for base in bases])
    kinds = np.abs(filtered.view(np.int8).astype(np.int32)).sum(2).argmin(0)
    chosen = filtered[kinds, np.arange(height)]
    data = np.concatenate([kinds[:, None].astype(np.uint8), chosen], 1).tobytes()
    header = struct.pack(">IIBBBBB", width, height, 16, _TYPES[count], 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(data, level)), (b"IEND", b"")]
    return _SIGNATURE + b"".join(
        struct.pack(">I", len(part)) + kind + part + struct.pack(">I", zlib.crc32(kind + part)) for kind, part in parts
    )


def read(data: bytes) -> Any:
    """The ``[H,W,C]`` pixels of uint16 of a file of 16 bits.

    Raises:
      ValueError: the file is damaged, or ends too early.
    """
    packed = b""
    width = height = kind = laced = 0
    for name, part in _chunks(data):
        if name == b"IHDR" and not width:
            width, height, _, kind, _, _, laced = struct.unpack(">IIBBBBB", part)
        elif name == b"IDAT":
            packed += part
    count = next(n for n, t in _TYPES.items() if t == kind)
    whole = np.empty((height, width, count), np.uint16)
    places = [whole[a::c, b::d] for a, b, c, d in _PASSES] if laced else [whole]
    sizes = [p.shape[0] * (1 + 2 * p.shape[1] * count) if p.size else 0 for p in places]
    try:
        plain = zlib.decompressobj().decompress(packed, sum(sizes) + 1)  # no more than the pixels need
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if len(plain) < sum(sizes):
        raise ValueError(f"{len(plain)} of {sum(sizes)} bytes of pixels")
    at = 0
    for place, size in zip(places, sizes, strict=True):
        if size:
            lines = np.frombuffer(plain, np.uint8, size, at).reshape(place.shape[0], -1)
            found = _unfiltered(lines[:, 0], lines[:, 1:].reshape(*place.shape[:2], 2 * count))
            place[...] = found.view(">u2")
            at += size
    return whole


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_SIGNATURE)
    while at + 12 <= len(data):
        size, name = struct.unpack_from(">I4s", data, at)
        part = data[at + 8 : at + 8 + size]
        check = data[at + 8 + size : at + 12 + size]
        if len(check) < 4 or struct.unpack(">I", check)[0] != zlib.crc32(name + part):
            raise ValueError(f"the part {name!r} is damaged")
        yield name, part
        if name == b"IEND":
            return
        at += 12 + size


def _nearest(left: Any, above: Any, corner: Any) -> Any:
    """The neighbour that is nearest to ``left + above - corner``. Source: the standard's 9.4, after Paeth."""
    guess = left + above - corner
    far = np.abs(np.stack([left, above, corner]) - guess)
    return np.where((far[0] <= far[1]) & (far[0] <= far[2]), left, np.where(far[1] <= far[2], above, corner))


def _unfiltered(kinds: Any, rows: Any) -> Any:
    """The bytes ``[H,W,B]`` of rows that say by their kind of what each byte is the difference.

    A byte follows from those to its left, above and between: all pixels of one antidiagonal at a time.
    """
    if kinds.max(initial=0) > 4:
        raise ValueError(f"there is no filter {kinds.max()}")
    height, width, _ = rows.shape
    made = np.zeros((height + 1, width + 1, rows.shape[2]), np.int16)
    for d in range(height + width - 1):
        r = np.arange(max(0, d - width + 1), min(height, d + 1))
        c = d - r
        left, above, corner = made[r + 1, c], made[r, c + 1], made[r, c]
        nearest = _nearest(left, above, corner)
        base = np.choose(kinds[r][:, None], [np.zeros_like(left), left, above, (left + above) // 2, nearest])
        made[r + 1, c + 1] = (rows[r, c] + base) & 255
    return made[1:, 1:].astype(np.uint8)
