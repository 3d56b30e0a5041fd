"""Random arrays and comparisons that the interpreter tests share."""

from __future__ import annotations

from typing import Any

import numpy as np
from graphdock_triton.testing.launching import DTYPES

__all__ = ["assert_close", "draw", "empty", "wide"]

#: Of results near 1, by element type. The interpreter cuts bfloat16 where a GPU rounds it.
TOLERANCE = {"fp32": 3e-6, "fp16": 2e-3, "bf16": 1.2e-2}


def draw(rng: np.random.Generator, shape: Any, kind: str = "fp32", scale: float = 1.0) -> np.ndarray:
    return (rng.standard_normal(shape) * scale).astype(DTYPES[kind])


def empty(shape: Any, kind: str = "fp32") -> np.ndarray:
    """An array of NaN: what a kernel doesn't write is seen."""
    return np.full(shape, np.nan, DTYPES[kind])


def wide(*arrays: np.ndarray) -> Any:
    """In float64."""
    out = [np.asarray(a).astype(np.float64) for a in arrays]
    return out[0] if len(out) == 1 else out


def assert_close(got: np.ndarray, expected: Any, kind: str, loose: float = 1.0) -> None:
    """``got`` equals a float64 result but for the rounding of ``kind``; ``loose``: how much more than one result near 1."""
    limit = TOLERANCE[kind] * loose
    np.testing.assert_allclose(wide(got), expected, rtol=limit, atol=limit)
