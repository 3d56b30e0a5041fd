"""Oracles of specs/recurrent.yaml: one unit at a time, in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > 0 else math.exp(x) / (1 + math.exp(x))


def _units(gates: Any, c: Any, forget_bias: float) -> list[tuple[float, ...]]:
    """Of each row and unit: its four gates, activated, and its state."""
    found = []
    width = c.shape[1]
    for row, states in zip(gates.astype(float).tolist(), c.astype(float).tolist(), strict=True):
        for u, state in enumerate(states):
            i, j, f, o = (row[part * width + u] for part in range(4))
            found.append((_sigmoid(i), math.tanh(j), _sigmoid(f + forget_bias), _sigmoid(o), state))
    return found


def lstm_gates(gates: Any, c: Any, forget_bias: float = 1.0) -> tuple[np.ndarray, ...]:
    states = [state * f + i * j for i, j, f, _, state in _units(gates, c, forget_bias)]
    outputs = [math.tanh(s) * unit[3] for s, unit in zip(states, _units(gates, c, forget_bias), strict=True)]
    return tuple(np.array(v, float).reshape(c.shape).astype(c.dtype) for v in (outputs, states))


def lstm_gates_grad(
    h_backprop: Any, new_c_backprop: Any, gates: Any, c: Any, new_c: Any, forget_bias: float = 1.0
) -> tuple[np.ndarray, ...]:
    """By the derivative of each unit's output and state by each of its gates."""
    slopes: list[list[float]] = []
    back = []
    arriving = (v.astype(float).ravel().tolist() for v in (h_backprop, new_c_backprop, new_c))
    for (i, j, f, o, state), dh, ds, after in zip(_units(gates, c, forget_bias), *arriving, strict=True):
        out = math.tanh(after)
        through = ds + dh * o * (1 - out**2)
        slopes.append([through * j * i * (1 - i), through * i * (1 - j**2), through * state * f * (1 - f)])
        slopes[-1].append(dh * out * o * (1 - o))
        back.append(through * f)
    parts = np.array(slopes, float).reshape(*c.shape, 4).transpose(0, 2, 1)
    return parts.reshape(gates.shape).astype(c.dtype), np.array(back, float).reshape(c.shape).astype(c.dtype)
