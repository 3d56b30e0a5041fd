"""Tensors of every dtype that TensorFlow's checkpoints have."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

NUMBERS = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 bfloat16 complex64 complex128".split()


@pytest.fixture
def tensors():
    """Arrays of every dtype of TensorFlow's checkpoints, and two in slices."""
    rng = np.random.default_rng(3)
    found = {}
    for i, kind in enumerate(NUMBERS):
        dtype = np.dtype(getattr(ml_dtypes, kind, kind))
        found[f"layer/{kind}"] = (rng.standard_normal((i % 3 + 1, 5)) * 40).astype(np.int8).astype(dtype)
    found["text"] = np.array([[b"ab", b""], [b"\0\xff", b"c" * 300]], object)
    found["nothing"] = np.zeros((0, 3), np.float32)
    found["scalar"] = np.array(3.5, np.float64)
    found["ü"] = np.arange(5000, dtype=np.float32)
    whole = np.arange(1000, dtype=np.int64).reshape(500, 2)
    found["rows"] = ((500, 2), [([(0, 70), (0, 2)], whole[:70]), ([(70, 430), (0, 2)], whole[70:])])
    found["columns"] = ((500, 2), [([None, (0, 1)], whole[:, :1].copy()), ([None, (1, 1)], whole[:, 1:].copy())])
    return found
