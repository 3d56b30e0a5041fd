"""WAV files, as the standard library reads them, and their samples by hand."""

from __future__ import annotations

import io
import wave

import numpy as np
from graphdock_storage.events.audio import wav


def test_the_file_is_read_by_the_standard_library():
    samples = np.array([[0.0, 0.5], [-1.0, 1.0], [2.0, -2.0]], np.float32)
    with wave.open(io.BytesIO(wav(samples, 8000))) as file:
        assert file.getparams()[:4] == (2, 2, 8000, 3)
        found = np.frombuffer(file.readframes(9), "<i2").reshape(3, 2)
    assert found.tolist() == [[0, 16384], [-32768, 32767], [32767, -32768]]


def test_halves_go_away_from_zero_and_nan_is_silence():
    samples = np.array([[0.5, 1.5, -0.5, 2.5, -2.5, 0.49]], np.float32).T / 32768
    data = wav(samples, 1)
    assert np.frombuffer(data[44:], "<i2").tolist() == [1, 2, -1, 3, -3, 0]
    odd = wav(np.array([[np.nan], [np.inf], [-np.inf]], np.float32), 1)
    assert np.frombuffer(odd[44:], "<i2").tolist() == [0, 32767, -32768]
