"""Source of a resized image's pixels along one axis: indices and weights of the taps, or the matrix of them.

Positions are computed in float32, as they are part of what the ops mean: a floor of a position must not depend on a backend.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Taps", "area", "bicubic", "bilinear", "dense", "nearest"]

#: Steps between two pixels that the cubic weights are tabulated for.
CUBIC_STEPS = 1024


@dataclass(frozen=True)
class Taps:
    """Pixel i of the result is the sum over k of ``weights[k, i]`` times pixel ``indices[k, i]``."""

    indices: np.ndarray[Any, Any]
    weights: np.ndarray[Any, Any]

    @property
    def plain(self) -> bool:
        """Return whether every pixel of the result is a pixel of the image."""
        return len(self.indices) == 1 and bool(np.all(self.weights == 1))


def _scale(size: int, wanted: int, align: bool) -> np.float32:
    if align and wanted > 1:
        return np.float32(size - 1) / np.float32(wanted - 1)
    return np.float32(size) / np.float32(max(wanted, 1))


def _positions(size: int, wanted: int, align: bool, half: bool) -> np.ndarray[Any, Any]:
    at, scale = np.arange(wanted, dtype=np.float32), _scale(size, wanted, align)
    return (at + np.float32(0.5)) * scale - np.float32(0.5) if half else at * scale


def _taps(indices: list[Any], weights: list[Any]) -> Taps:
    used = [k for k, w in enumerate(weights) if np.any(w)] or [0]
    return Taps(np.stack([indices[k] for k in used]).astype(np.intp), np.stack([weights[k] for k in used]))


def nearest(size: int, wanted: int, align: bool, half: bool) -> Taps:
    """One tap: the position rounded down, or half away from zero where corners are aligned."""
    at, scale = np.arange(wanted, dtype=np.float32), _scale(size, wanted, align)
    where = (at + np.float32(0.5)) * scale if half else at * scale
    low = np.floor(where)
    index = low + (where - low >= 0.5) if align else low
    return _taps([np.clip(index, 0, size - 1)], [np.ones(wanted, np.float32)])


def bilinear(size: int, wanted: int, align: bool, half: bool) -> Taps:
    """Two taps, weighted by how near they are."""
    where = _positions(size, wanted, align, half)
    low = np.floor(where)
    part = where - low
    ends = np.clip(low, 0, size - 1), np.clip(np.ceil(where), 0, size - 1)
    return _taps(list(ends), [np.float32(1) - part, part])


def _cubic(sharpness: float) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Weights of a pixel nearer than 1, and of one farther, by the distance to the nearer in steps."""
    x = np.arange(CUBIC_STEPS + 1) / CUBIC_STEPS
    a, y = sharpness, x + 1
    return ((a + 2) * x - (a + 3)) * x * x + 1, ((a * y - 5 * a) * y + 8 * a) * y - 4 * a


def bicubic(size: int, wanted: int, align: bool, half: bool) -> Taps:
    """Four taps of the cubic convolution (Keys, 1981) with A = -0.75, its distances in steps of 1/1024.

    With half-pixel centres A is -0.5, taps outside of the image have no weight, and the others are scaled to sum to 1.
    """
    where = _positions(size, wanted, align, half)
    low = np.floor(where)
    step = np.rint((where - low) * np.float32(CUBIC_STEPS)).astype(np.intp)
    near, far = _cubic(-0.5 if half else -0.75)
    back = CUBIC_STEPS - step
    weights = [far[step], near[step], near[back], far[back]]
    asked = [low + k for k in (-1, 0, 1, 2)]
    indices = [np.clip(i, 0, size - 1) for i in asked]
    if half:
        weights = [np.where(i == j, w, 0) for i, j, w in zip(indices, asked, weights, strict=True)]
        total = np.sum(weights, 0)
        weights = [w / total for w in weights]
    return _taps(indices, [w.astype(np.float32) for w in weights])


def dense(taps: Taps, size: int) -> np.ndarray[Any, Any]:
    """The matrix ``[wanted, size]`` of the taps."""
    matrix = np.zeros((taps.indices.shape[1], size), np.float32)
    rows = np.arange(taps.indices.shape[1])
    for index, weight in zip(taps.indices, taps.weights, strict=True):
        np.add.at(matrix, (rows, index), weight)
    return matrix


def area(size: int, wanted: int, align: bool) -> np.ndarray[Any, Any]:
    """The matrix that averages over the interval a pixel of the result stands for; beyond the edge the edge goes on."""
    scale = _scale(size, wanted, align)
    if size == 1:  # also where corners are aligned, between which is nothing then
        return np.ones((wanted, 1), np.float32)
    starts = np.arange(wanted, dtype=np.float32) * scale
    ends = np.arange(1, wanted + 1, dtype=np.float32) * scale
    matrix = np.zeros((wanted, size), np.float32)
    for row, start, end in zip(matrix, starts, ends, strict=True):
        for i in range(int(np.floor(start)), int(np.ceil(end))):
            inside = start >= i and end <= i + 1
            part = scale if inside else min(np.float32(i + 1), end) - max(np.float32(i), start)
            row[min(i, size - 1)] += part / scale
    return matrix
