"""Oracles of specs/rms_norm.yaml: one row at a time, element by element, in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def _rows(x: Any) -> np.ndarray:
    """x as [rows, elements] in float64."""
    return np.asarray(x).astype(np.float64).reshape(math.prod(x.shape[:-1]), x.shape[-1])


def rms_norm(x: Any, gamma: Any, epsilon: float, **_: Any) -> tuple[np.ndarray, ...]:
    rows, inverses = _rows(x), []
    factors = gamma.astype(float).tolist()
    out = np.empty(rows.shape)
    for at, row in enumerate(rows.tolist()):
        square = math.fsum(v * v for v in row) / len(row) if row else math.nan
        inverses.append(1 / math.sqrt(square + epsilon))
        for j, v in enumerate(row):
            out[at, j] = v * inverses[at] * factors[j]
    return out.reshape(x.shape).astype(x.dtype), np.array(inverses, gamma.dtype).reshape(x.shape[:-1])


def rms_norm_grad(y_backprop: Any, x: Any, gamma: Any, inverse: Any, **_: Any) -> tuple[np.ndarray, ...]:
    """By the derivative of each element of y by each element of its row."""
    grads, rows = _rows(y_backprop), _rows(x)
    factors, inverses = (np.ravel(v).astype(float).tolist() for v in (gamma, inverse))
    out, to_gamma = np.zeros(rows.shape), np.zeros(gamma.size)
    for at, (row, grad) in enumerate(zip(rows.tolist(), grads.tolist(), strict=True)):
        r, count = inverses[at], len(row)
        for i, g in enumerate(grad):
            to_gamma[i] += g * row[i] * r
            for j in range(count):
                out[at, j] += g * factors[i] * ((i == j) * r - row[i] * row[j] * r**3 / count)
    return out.reshape(x.shape).astype(x.dtype), to_gamma.astype(gamma.dtype)
