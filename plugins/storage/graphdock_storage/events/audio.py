"""Sound of summaries as WAV files of 16 bits."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

__all__ = ["wav"]


def wav(samples: Any, sample_rate: int) -> bytes:
    """Samples ``[frames, channels]`` from -1 to 1 as a file; what lies beyond is cut off, and NaN is silence.

    Args:
      sample_rate: frames per second.
    """
    frames, channels = samples.shape
    scaled = np.asarray(samples, np.float32) * np.float32(1 << 15)
    # halves go away from zero, as those of C's roundf
    rounded = np.trunc(scaled + np.copysign(np.float32(0.5), scaled))
    data: bytes = np.clip(np.nan_to_num(rounded), -(1 << 15), (1 << 15) - 1).astype("<i2").tobytes()
    per_frame = 2 * channels
    form = struct.pack("<HHIIHH", 1, channels, sample_rate, sample_rate * per_frame, per_frame, 16)
    body = b"WAVEfmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body
