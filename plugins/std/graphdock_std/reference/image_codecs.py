"""Oracles of the codecs: a BMP file of 24 bits read by hand, the one format that the specs can hold as text."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np


def _pixels(contents: bytes) -> np.ndarray:
    (start,) = struct.unpack_from("<I", contents, 10)
    width, height, _, bits = struct.unpack_from("<iiHH", contents, 18)
    assert contents[:2] == b"BM" and bits == 24 and height > 0
    row = (3 * width + 3) // 4 * 4
    out = np.zeros((height, width, 3), np.uint8)
    for i in range(height):
        for j in range(width):
            at = start + (height - 1 - i) * row + 3 * j
            out[i, j] = contents[at + 2], contents[at + 1], contents[at]
    return out


def decode(contents: Any, channels: int = 0, dtype: Any = "uint8", crop_window: Any = None, **_: Any) -> np.ndarray:
    made = _pixels(np.asarray(contents).item())
    if channels == 4:
        made = np.concatenate([made, np.full((*made.shape[:2], 1), 255, np.uint8)], -1)
    if getattr(dtype, "name", dtype) == "uint16":
        made = made.astype(np.uint16) * 257
    if crop_window is not None:
        row, column, height, width = (int(v) for v in crop_window)
        made = made[row : row + height, column : column + width]
    return made


def decode_frames(contents: Any, **_: Any) -> np.ndarray:
    return _pixels(np.asarray(contents).item())[None]


def is_jpeg(contents: Any, **_: Any) -> np.ndarray:
    values = [list(v[:3]) == [255, 216, 255] for v in np.ravel(contents)]
    return np.array(values, np.bool_).reshape(np.shape(contents))
