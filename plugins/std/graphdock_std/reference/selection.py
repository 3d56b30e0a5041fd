"""Oracles of the ops that choose or count elements: plain loops over Python values."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from graphdock_std.reference.math import wrap


def _distinct(x: np.ndarray) -> tuple[list[Any], list[int]]:
    found: list[Any] = []
    places = []
    for value in x:
        at = next((i for i, seen in enumerate(found) if seen == value), None)
        if at is None:
            at = len(found)
            found.append(value)
        places.append(at)
    return found, places


def vector(values: list[Any], dtype: Any) -> np.ndarray:
    out = np.empty(len(values), dtype)
    for i, value in enumerate(values):
        out[i] = value
    return out


def unique(x: np.ndarray, out_idx: Any = "int32", **_: Any) -> tuple[np.ndarray, ...]:
    found, places = _distinct(x)
    return vector(found, x.dtype), vector(places, str(out_idx))


def unique_with_counts(x: np.ndarray, out_idx: Any = "int32", **_: Any) -> tuple[np.ndarray, ...]:
    found, places = _distinct(x)
    counts = [places.count(i) for i in range(len(found))]
    return vector(found, x.dtype), vector(places, str(out_idx)), vector(counts, str(out_idx))


def list_diff(x: np.ndarray, y: np.ndarray, out_idx: Any = "int32", **_: Any) -> tuple[np.ndarray, ...]:
    left = [i for i, value in enumerate(x) if not any(value == other for other in y)]
    return vector([x[i] for i in left], x.dtype), vector(left, str(out_idx))


def _key(value: Any) -> Any:
    number = int(value) if isinstance(value, np.integer) else float(value)
    return (1, 0) if isinstance(number, float) and math.isnan(number) else (0, number)


def top_k(input: np.ndarray, k: Any, index_type: Any = "int32", **_: Any) -> tuple[np.ndarray, ...]:
    count = int(k)
    values = np.empty((*input.shape[:-1], count), input.dtype)
    indices = np.empty(values.shape, str(index_type))
    for row in np.ndindex(input.shape[:-1]):
        left = list(range(input.shape[-1]))
        for place in range(count):
            best = left[0]
            for i in left[1:]:
                if _key(input[(*row, i)]) > _key(input[(*row, best)]):
                    best = i
            left.remove(best)
            values[(*row, place)], indices[(*row, place)] = input[(*row, best)], best
    return values, indices


def in_top_k(predictions: np.ndarray, targets: np.ndarray, k: Any, **_: Any) -> np.ndarray:
    out = np.empty(targets.shape, bool)
    for i, target in enumerate(targets.tolist()):
        row = [float(v) for v in predictions[i]]
        sure = 0 <= target < len(row) and all(math.isfinite(v) for v in row)
        out[i] = sure and sum(v > row[target] for v in row) < int(k)
    return out


def nth_element(input: np.ndarray, n: Any, reverse: bool = False, **_: Any) -> np.ndarray:
    out = np.empty(input.shape[:-1], input.dtype)
    for row in np.ndindex(out.shape):
        out[row] = sorted(input[row], key=_key, reverse=reverse)[int(n)]
    return out


def _bound(rows: np.ndarray, values: np.ndarray, out_type: Any, counts: Any) -> np.ndarray:
    out = np.empty(values.shape, str(out_type))
    for row, column in np.ndindex(values.shape):
        out[row, column] = sum(bool(counts(v, values[row, column])) for v in rows[row])
    return out


def lower_bound(sorted_inputs: np.ndarray, values: np.ndarray, out_type: Any = "int32", **_: Any) -> np.ndarray:
    return _bound(sorted_inputs, values, out_type, lambda v, x: v < x)


def upper_bound(sorted_inputs: np.ndarray, values: np.ndarray, out_type: Any = "int32", **_: Any) -> np.ndarray:
    return _bound(sorted_inputs, values, out_type, lambda v, x: v <= x)


def histogram_fixed_width(
    values: np.ndarray, value_range: np.ndarray, nbins: Any, dtype: Any = "int32", **_: Any
) -> np.ndarray:
    low, high = (Fraction(v.item()) for v in value_range)
    count = int(nbins)
    out = np.zeros(count, str(dtype))
    for value in values.ravel():
        if not math.isfinite(value):
            out[0 if value < 0 else count - 1] += not math.isnan(value)
            continue
        part = math.floor((Fraction(value.item()) - low) * count / (high - low))
        out[min(max(part, 0), count - 1)] += 1
    return out


def bincount(arr: np.ndarray, size: Any, weights: np.ndarray, **_: Any) -> np.ndarray:
    out = np.zeros(int(size), weights.dtype)
    given = [w.item() for w in weights.ravel()] if weights.size else [1] * arr.size
    for v in range(int(size)):
        parts = [w for a, w in zip(arr.ravel().tolist(), given, strict=True) if a == v]
        total = math.fsum(parts) if weights.dtype.kind == "f" else wrap(sum(parts), weights.dtype)
        out[v] = total
    return out
