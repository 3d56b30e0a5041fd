"""Oracles of the resizing ops: one pixel of the result at a time, from closed forms of the weights, in float64.

The gradients put one at each pixel of the image in turn.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

#: Weights of the pixels of one axis that make pixel ``i``: ``(i, n_in, n_out, align, half) -> {pixel: weight}``.
Axis = Callable[[int, int, int, bool, bool], dict[int, float]]


def _scale(size: int, wanted: int, align: bool) -> Any:
    return (
        np.float32(size - 1) / np.float32(wanted - 1) if align and wanted > 1 else np.float32(size) / np.float32(wanted)
    )


def _position(i: int, size: int, wanted: int, align: bool, half: bool) -> float:
    shift = np.float32(0.5 if half else 0)
    return float((np.float32(i) + shift) * _scale(size, wanted, align) - shift)


def _spread(size: int, where: float, weight: Callable[[float], float], reach: int, *, within: bool) -> dict[int, float]:
    """Weights by distance of the pixels nearer than ``reach``; those outside count as the edge, or not at all."""
    out: dict[int, float] = {}
    for j in range(math.floor(where) - reach, math.floor(where) + reach + 2):
        w, at = weight(abs(where - j)), min(max(j, 0), size - 1)
        if w and (at == j or not within):
            out[at] = out.get(at, 0.0) + w
    return out


def _bilinear(i: int, size: int, wanted: int, align: bool, half: bool) -> dict[int, float]:
    return _spread(size, _position(i, size, wanted, align, half), lambda d: max(0.0, 1.0 - d), 1, within=False)


def _nearest(i: int, size: int, wanted: int, align: bool, half: bool) -> dict[int, float]:
    at = float((np.float32(i) + np.float32(0.5 if half else 0)) * _scale(size, wanted, align))
    return {min(math.floor(at + 0.5) if align else math.floor(at), size - 1): 1.0}


def _cubic(a: float) -> Callable[[float], float]:
    """Keys' kernel by distance."""

    def weight(d: float) -> float:
        if d < 1:
            return (a + 2) * d**3 - (a + 3) * d**2 + 1
        return a * (d**3 - 5 * d**2 + 8 * d - 4) if d < 2 else 0.0

    return weight


def _bicubic(i: int, size: int, wanted: int, align: bool, half: bool) -> dict[int, float]:
    where = _position(i, size, wanted, align, half)
    where = math.floor(where) + round((where - math.floor(where)) * 1024) / 1024
    out = _spread(size, where, _cubic(-0.5 if half else -0.75), 2, within=half)
    total = sum(out.values()) if half else 1.0
    return {j: w / total for j, w in out.items()}


def _area(i: int, size: int, wanted: int, align: bool, half: bool) -> dict[int, float]:
    scale = _scale(size, wanted, align)
    if size == 1:
        return {0: 1.0}
    start, end = float(np.float32(i) * scale), float(np.float32(i + 1) * scale)
    out: dict[int, float] = {}
    for j in range(size + wanted + 2):
        overlap = min(end, j + 1) - max(start, j)
        if overlap > 0:
            at = min(j, size - 1)
            out[at] = out.get(at, 0.0) + overlap / float(scale)
    return out


def _resize(axis: Axis, images: Any, size: Any, align: bool, half: bool) -> np.ndarray:
    x = np.asarray(images).astype(np.float64)
    height, width = (int(d) for d in size)
    out = np.zeros((x.shape[0], height, width, x.shape[3]))
    for y in range(height):
        for z in range(width):
            for i, v in axis(y, x.shape[1], height, align, half).items():
                for j, w in axis(z, x.shape[2], width, align, half).items():
                    out[:, y, z] += v * w * x[:, i, j]
    return out


def _resized(axis: Axis, dtype: Any = None) -> Callable[..., np.ndarray]:
    def oracle(
        images: Any, size: Any, align_corners: bool = False, half_pixel_centers: bool = False, **_: Any
    ) -> np.ndarray:
        return _resize(axis, images, size, align_corners, half_pixel_centers).astype(dtype or images.dtype)

    return oracle


def _gradient(axis: Axis) -> Callable[..., np.ndarray]:
    """The derivative of the sum of resized pixels times grads, pixel by pixel of the image."""

    def oracle(
        grads: Any,
        original_image: Any = None,
        size: Any = None,
        align_corners: bool = False,
        half_pixel_centers: bool = False,
        **_: Any,
    ) -> np.ndarray:
        g = np.asarray(grads).astype(np.float64)
        height, width = original_image.shape[1:3] if size is None else map(int, size)
        out = np.zeros((g.shape[0], height, width, g.shape[3]))
        for i, j in np.ndindex(height, width):
            unit = np.zeros((1, height, width, 1))
            unit[0, i, j] = 1.0
            shares = _resize(axis, unit, g.shape[1:3], align_corners, half_pixel_centers)[0, :, :, 0]
            out[:, i, j] = np.einsum("bhwc,hw->bc", g, shares)
        return out.astype(grads.dtype if original_image is None else original_image.dtype)

    return oracle


bilinear = _resized(_bilinear, np.float32)
bilinear_grad = _gradient(_bilinear)
nearest = _resized(_nearest)
nearest_grad = _gradient(_nearest)
bicubic = _resized(_bicubic, np.float32)
bicubic_grad = _gradient(_bicubic)
area = _resized(_area, np.float32)
area_grad = _gradient(_area)
