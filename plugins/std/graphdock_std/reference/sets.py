"""Oracles of the ops over sets: every place of the dense shape is looked at."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np


def _set(indices: Any, values: Any, place: tuple[int, ...]) -> list[Any]:
    found = [v for at, v in zip(indices.tolist(), values.tolist(), strict=True) if tuple(at[:-1]) == place]
    return [v for v, _ in itertools.groupby(sorted(found))]


def operation(
    set1_indices: Any,
    set1_values: Any,
    set1_shape: Any,
    set2_indices: Any,
    set2_values: Any,
    set2_shape: Any,
    set_operation: str,
    **_: Any,
) -> list[np.ndarray]:
    """Membership, an element at a time."""
    places, values, widest = [], [], 0
    for place in itertools.product(*(range(n) for n in set1_shape[:-1])):
        a, b = _set(set1_indices, set1_values, place), _set(set2_indices, set2_values, place)
        kept = {
            "a-b": [v for v in a if v not in b],
            "b-a": [v for v in b if v not in a],
            "intersection": [v for v in a if v in b],
            "union": sorted(a + [v for v in b if v not in a]),
        }[set_operation]
        places += [[*place, i] for i, _ in enumerate(kept)]
        values += kept
        widest = max(widest, len(kept))
    out = np.empty(len(values), set1_values.dtype)
    out[:] = values
    return [
        np.array(places, np.int64).reshape(-1, len(set1_shape)),
        out,
        np.array([*set1_shape[:-1], widest], np.int64),
    ]


def size(set_indices: Any, set_values: Any, set_shape: Any, **_: Any) -> np.ndarray:
    """Lengths of the sets."""
    shape = tuple(int(n) for n in set_shape[:-1])
    counts = [len(_set(set_indices, set_values, place)) for place in itertools.product(*map(range, shape))]
    return np.array(counts, np.int32).reshape(shape)
