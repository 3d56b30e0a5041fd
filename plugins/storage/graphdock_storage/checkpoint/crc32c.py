"""CRC-32C, the checksum of TensorFlow's files (RFC 3720, appendix B.4), and the form in which they store it."""

from __future__ import annotations

from typing import Any

import google_crc32c
import numpy as np

__all__ = ["crc32c", "masked", "unmasked"]

_MASK = 0xA282EAD8


def crc32c(data: Any, start: int = 0) -> int:
    """The CRC-32C of bytes; with ``start``, of bytes that follow those whose CRC that is."""
    if not isinstance(data, bytes):
        data = np.frombuffer(memoryview(data).cast("B"), np.uint8)
        data.flags.writeable = False  # the library takes no memory that might be freed meanwhile
    found: int = google_crc32c.extend(start, data)
    return found


def masked(checksum: int) -> int:
    """As TensorFlow stores a CRC: turned and moved, so that a CRC of what holds CRCs is no trivial one."""
    return ((checksum >> 15 | checksum << 17) + _MASK) & 0xFFFFFFFF


def unmasked(stored: int) -> int:
    """The CRC that is stored as this."""
    turned = (stored - _MASK) & 0xFFFFFFFF
    return (turned >> 17 | turned << 15) & 0xFFFFFFFF
