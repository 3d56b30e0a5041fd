"""Oracles of the ops that move elements, one element at a time."""

from __future__ import annotations

from typing import Any

import numpy as np


def reverse_sequence(
    input: np.ndarray, seq_lengths: np.ndarray, seq_dim: int, batch_dim: int = 0, **_: Any
) -> np.ndarray:
    out = np.empty(input.shape, input.dtype)
    for index in np.ndindex(input.shape):
        source = list(index)
        length = int(seq_lengths[index[batch_dim]])
        if index[seq_dim] < length:
            source[seq_dim] = length - 1 - index[seq_dim]
        out[index] = input[tuple(source)]
    return out


def roll(input: np.ndarray, shift: np.ndarray, axis: np.ndarray, **_: Any) -> np.ndarray:
    moves = list(zip(np.ravel(shift).tolist(), np.ravel(axis).tolist(), strict=True))
    out = np.empty(input.shape, input.dtype)
    for index in np.ndindex(input.shape):
        target = list(index)
        for by, along in moves:
            target[along] = (target[along] + by) % input.shape[along]
        out[tuple(target)] = input[index]
    return out


def unravel_index(indices: np.ndarray, dims: np.ndarray, **_: Any) -> np.ndarray:
    out = np.empty((len(dims), *indices.shape), indices.dtype)
    for index in np.ndindex(indices.shape):
        left = int(indices[index])
        for axis in reversed(range(len(dims))):
            left, out[(axis, *index)] = divmod(left, int(dims[axis]))
    return out


def broadcast_args(s0: np.ndarray, s1: np.ndarray, **_: Any) -> np.ndarray:
    a, b = s0.tolist()[::-1], s1.tolist()[::-1]
    out = []
    for i in range(max(len(a), len(b))):
        pair = [s[i] for s in (a, b) if i < len(s)]
        out.append(next((d for d in pair if d != 1), 1))
    return np.array(out[::-1], s0.dtype)


def ensure_shape(input: np.ndarray, **_: Any) -> np.ndarray:
    return input
