"""Oracles of the ops over sparse tensors: dicts from places to elements, and plain loops."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import numpy as np

from graphdock_std.reference.math import wrap
from graphdock_std.reference.selection import vector


def dense_matmul(
    a_indices: Any, a_values: Any, a_shape: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False, **_: Any
) -> np.ndarray:
    whole = b.dtype.kind in "iu"
    number: Any = int if whole else complex if b.dtype.kind == "c" else float
    rows = int(a_shape[1] if adjoint_a else a_shape[0])
    columns = b.shape[0] if adjoint_b else b.shape[1]
    out = np.empty((rows, columns), b.dtype)
    for i in range(rows):
        for j in range(columns):
            terms = []
            for (row, column), value in zip(a_indices.tolist(), a_values, strict=True):
                at, k = (column, row) if adjoint_a else (row, column)
                if at == i:
                    left, right = number(value), number(b[j, k] if adjoint_b else b[k, j])
                    terms.append(
                        (left.conjugate() if adjoint_a else left) * (right.conjugate() if adjoint_b else right)
                    )
            out[i, j] = wrap(sum(terms), b.dtype) if number is not float else math.fsum(terms)
    return out


def reorder(input_indices: Any, input_values: Any, input_shape: Any, **_: Any) -> tuple[np.ndarray, ...]:
    order = sorted(range(len(input_values)), key=lambda i: input_indices[i].tolist())
    indices = np.empty(input_indices.shape, np.int64)
    for row, i in enumerate(order):
        indices[row] = input_indices[i]
    return indices, vector([input_values[i] for i in order], input_values.dtype)


def _complete(shape: list[int], new: list[int]) -> list[int]:
    if -1 in new:
        rest = math.prod(d for d in new if d != -1)
        new = [math.prod(shape) // rest if d == -1 else d for d in new]
    return new


def reshape(input_indices: Any, input_shape: Any, new_shape: Any, **_: Any) -> tuple[np.ndarray, ...]:
    shape = input_shape.tolist()
    new = _complete(shape, new_shape.tolist())
    out = np.empty((len(input_indices), len(new)), np.int64)
    for row, index in enumerate(input_indices.tolist()):
        place = 0
        for i, d in zip(index, shape, strict=True):
            place = place * d + i
        for axis in reversed(range(len(new))):
            place, out[row, axis] = divmod(place, new[axis])
    return out, np.array(new, np.int64)


def fill_empty_rows(
    indices: Any, values: Any, dense_shape: Any, default_value: Any, **_: Any
) -> tuple[np.ndarray, ...]:
    rows = int(dense_shape[0])
    out_indices, out_values, empty = [], [], []
    places = [0] * len(values)
    for row in range(rows):
        members = [i for i, index in enumerate(indices.tolist()) if index[0] == row]
        empty.append(not members)
        for i in members:
            places[i] = len(out_values)
            out_indices.append(indices[i].tolist())
            out_values.append(values[i])
        if not members:
            out_indices.append([row] + [0] * (len(dense_shape) - 1))
            out_values.append(default_value[()])
    return (
        np.array(out_indices, np.int64).reshape(-1, len(dense_shape)),
        vector(out_values, values.dtype),
        np.array(empty, bool),
        np.array(places, np.int64),
    )


def _distance(a: list[Any], b: list[Any]) -> int:
    """By recursion over the ends of both sequences."""
    if not a or not b:
        return len(a) + len(b)
    if a[-1] == b[-1]:
        return _distance(a[:-1], b[:-1])
    return 1 + min(_distance(a[:-1], b), _distance(a, b[:-1]), _distance(a[:-1], b[:-1]))


def edit_distance(
    hypothesis_indices: Any,
    hypothesis_values: Any,
    hypothesis_shape: Any,
    truth_indices: Any,
    truth_values: Any,
    truth_shape: Any,
    normalize: bool = True,
    **_: Any,
) -> np.ndarray:
    found: list[dict[tuple[int, ...], list[Any]]] = []
    for indices, values in ((hypothesis_indices, hypothesis_values), (truth_indices, truth_values)):
        sequences: dict[tuple[int, ...], list[Any]] = defaultdict(list)
        for index, value in zip(indices.tolist(), values, strict=True):
            sequences[tuple(index[:-1])].append(value)
        found.append(sequences)
    shape = [max(int(a), int(b)) for a, b in zip(hypothesis_shape[:-1], truth_shape[:-1], strict=True)]
    out = np.empty(shape, np.float32)
    for place in np.ndindex(*shape):
        hypothesis, truth = (s.get(place, []) for s in found)
        distance = float(_distance(hypothesis, truth))
        if normalize:
            distance = distance / len(truth) if truth else math.inf if hypothesis else 0.0
        out[place] = distance
    return out
