"""Sound of summaries as WAV files of 16 bits."""

from __future__ import annotations

import io
import wave
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
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setparams((channels, 2, sample_rate, frames, "NONE", ""))
        out.writeframesraw(data)
    return file.getvalue()
