"""The oracle of specs/rotary.yaml: complex numbers, one at a time."""

from __future__ import annotations

from typing import Any

import numpy as np


def rotary(x: Any, cos: Any, sin: Any, pairs: bool = False, back: bool = False) -> np.ndarray:
    y = x.astype(np.float64)
    positions, count = cos.shape
    for s in range(positions):
        for i in range(count):
            turn = complex(cos[s, i], -sin[s, i] if back else sin[s, i])
            a, b = (2 * i, 2 * i + 1) if pairs else (i, i + count)
            turned = (x[..., s, :, a].astype(np.float64) + 1j * x[..., s, :, b].astype(np.float64)) * turn
            y[..., s, :, a], y[..., s, :, b] = turned.real, turned.imag
    return y.astype(x.dtype)
