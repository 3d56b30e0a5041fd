"""Images of summaries: numbers of any range as pixels, by TensorFlow's rules, and pixels as a PNG file."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np

__all__ = ["pixels", "png"]

#: Channels -> PNG's colour type.
_COLOURS = {1: 0, 2: 4, 3: 2, 4: 6}
#: The largest value of an image below which all of it counts as zero.
_ZERO = np.float32(1e-6)


def pixels(image: Any, bad_color: Any) -> Any:
    """An image ``[H, W, C]`` as uint8.

    uint8 stays as it is. Floats without negative ones are scaled so that the largest becomes 255; with negative ones so that the
    largest in size becomes 127, around 128. Only pixels whose channels are all finite count; the others become ``bad_color``, of
    which there is one number per channel at least. The arithmetic is that of the image's own dtype.
    """
    if image.dtype == np.uint8:
        return image
    kind = image.dtype.type
    with np.errstate(all="ignore"):
        finite = np.isfinite(image).all(-1, keepdims=True)
        seen = image[np.broadcast_to(finite, image.shape)].astype(np.float32)
        low, high = (seen.min(), seen.max()) if seen.size else (np.float32(np.inf), np.float32(-np.inf))
        if low < 0:
            largest = max(abs(low), abs(high))
            scale, offset = kind(0 if largest < _ZERO else np.float32(127) / largest), kind(128)
        else:
            scale, offset = kind(0 if high < _ZERO else np.float32(255) / high), kind(0)
        scaled = np.where(finite, image, kind(0)) * scale + offset
        # what overflows in a narrow dtype stays a pixel
        made = np.clip(np.nan_to_num(scaled, nan=0.0, posinf=255.0, neginf=0.0), 0, 255).astype(np.uint8)
    return np.where(finite, made, np.asarray(bad_color, np.uint8)[: image.shape[-1]])


def png(image: Any) -> bytes:
    """Pixels ``[H, W, C]`` of uint8 as a PNG file (ISO/IEC 15948): C is 1 to 4."""
    height, width, channels = image.shape
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # each row begins with its filter, here none
    rows[:, 1:] = image.reshape(height, width * channels)
    head = struct.pack(">IIBBBBB", width, height, 8, _COLOURS[channels], 0, 0, 0)
    parts = (b"IHDR", head), (b"IDAT", zlib.compress(rows.tobytes())), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
