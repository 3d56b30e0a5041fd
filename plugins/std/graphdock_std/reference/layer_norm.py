"""Oracles of specs/layer_norm.yaml: one row at a time, element by element, in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def _rows(x: Any, gamma: Any) -> np.ndarray:
    """x as [rows, elements] in float64: a row ends in the dims of gamma."""
    count = math.prod(x.shape[: x.ndim - gamma.ndim])
    return np.asarray(x).astype(np.float64).reshape(count, gamma.size)


def layer_norm(x: Any, gamma: Any, beta: Any, epsilon: float, **_: Any) -> tuple[np.ndarray, ...]:
    rows, means, inverses = _rows(x, gamma), [], []
    factors, summands = (np.ravel(v).astype(float).tolist() for v in (gamma, beta))
    out = np.empty(rows.shape)
    for at, row in enumerate(rows.tolist()):
        mean = math.fsum(row) / len(row) if row else math.nan
        variance = math.fsum((v - mean) ** 2 for v in row) / len(row) if row else math.nan
        inverse = 1 / math.sqrt(variance + epsilon)
        for j, v in enumerate(row):
            out[at, j] = (v - mean) * inverse * factors[j] + summands[j]
        means.append(mean)
        inverses.append(inverse)
    shape = x.shape[: x.ndim - gamma.ndim]
    vectors = (np.array(v, gamma.dtype).reshape(shape) for v in (means, inverses))
    return (out.reshape(x.shape).astype(x.dtype), *vectors)


def layer_norm_grad(y_backprop: Any, x: Any, gamma: Any, mean: Any, inverse: Any, **_: Any) -> tuple[np.ndarray, ...]:
    """By the derivative of each element of y by each element of its row."""
    grads, rows = _rows(y_backprop, gamma), _rows(x, gamma)
    factors, means, inverses = (np.ravel(v).astype(float).tolist() for v in (gamma, mean, inverse))
    out, to_gamma, to_beta = np.zeros(rows.shape), np.zeros(gamma.size), np.zeros(gamma.size)
    for at, (row, grad) in enumerate(zip(rows.tolist(), grads.tolist(), strict=True)):
        r, count = inverses[at], len(row)
        normal = [(v - means[at]) * r for v in row]
        for i, g in enumerate(grad):
            to_gamma[i] += g * normal[i]
            to_beta[i] += g
            for j in range(count):
                slope = (i == j) - (1 + normal[i] * normal[j]) / count
                out[at, j] += g * factors[i] * r * slope
    vectors = (v.reshape(gamma.shape).astype(gamma.dtype) for v in (to_gamma, to_beta))
    return (out.reshape(x.shape).astype(x.dtype), *vectors)
