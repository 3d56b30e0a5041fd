"""The oracle of the SO(3) tensor product: its couplings by ladder operators, not by the kernels' formula."""

from __future__ import annotations

import numpy as np


def lowering(l: int) -> np.ndarray:
    """J- over the states -l..l: it takes m to m - 1."""
    m = np.arange(-l + 1, l + 1)
    return np.diag(np.sqrt(l * (l + 1) - m * (m - 1.0)), 1)


def coupling(l1: int, l2: int, l: int) -> np.ndarray:
    """C[m1, m2, m] = <l1 m1 l2 m2 | l m>, from the state of highest weight downwards (Condon and Shortley's signs)."""
    d1, d2 = 2 * l1 + 1, 2 * l2 + 1
    lower = np.kron(lowering(l1), np.eye(d2)) + np.kron(np.eye(d1), lowering(l2))
    total = np.add.outer(np.arange(-l1, l1 + 1), np.arange(-l2, l2 + 1)).reshape(-1)
    place = np.flatnonzero(total == l)  # raised, the highest state is gone
    highest = np.linalg.svd(lower.T[:, place])[2][-1]
    state = np.zeros(d1 * d2)
    state[place] = highest * np.sign(highest[-1])
    out = np.zeros((d1, d2, 2 * l + 1))
    for m in range(l, -l - 1, -1):
        out[:, :, m + l] = state.reshape(d1, d2)
        if m > -l:
            state = lower @ state / np.sqrt(l * (l + 1) - m * (m - 1.0))
    return out


def tensor_product(v1: list[np.ndarray], v2: list[np.ndarray], L: int) -> list[np.ndarray]:
    outs = [np.zeros_like(v) for v in v1]
    for l1 in range(L + 1):
        for l2 in range(L + 1):
            for l in range(abs(l1 - l2), min(l1 + l2, L) + 1):
                outs[l] += np.einsum("xyz,bxc,byc->bzc", coupling(l1, l2, l), v1[l1], v2[l2]).astype(outs[l].dtype)
    return outs
