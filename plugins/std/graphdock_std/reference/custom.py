"""Oracle of what passes several tensors on."""

from __future__ import annotations

from typing import Any

import numpy as np


def identity_n(input: Any, **_: Any) -> list[np.ndarray]:
    return [np.array(x.tolist(), x.dtype).reshape(x.shape) for x in input]
