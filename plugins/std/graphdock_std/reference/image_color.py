"""Oracles of the colour ops: ``colorsys`` of Python's own library, pixel by pixel."""

from __future__ import annotations

import colorsys
import math
from collections.abc import Callable
from typing import Any

import numpy as np


def _each(images: Any, function: Callable[..., tuple[float, float, float]]) -> np.ndarray:
    rows = np.asarray(images).astype(np.float64).reshape(-1, 3).tolist()
    return np.array([function(*row) for row in rows]).reshape(images.shape).astype(images.dtype)


def rgb_to_hsv(images: Any, **_: Any) -> np.ndarray:
    return _each(images, colorsys.rgb_to_hsv)


def hsv_to_rgb(images: Any, **_: Any) -> np.ndarray:
    return _each(images, colorsys.hsv_to_rgb)


def adjust_hue(images: Any, delta: Any, **_: Any) -> np.ndarray:
    def turned(r: float, g: float, b: float) -> tuple[float, float, float]:
        h, s, v = colorsys.rgb_to_hsv(r, g, b)
        return colorsys.hsv_to_rgb(math.fmod(h + float(delta) + 2, 1), s, v)

    return _each(images, turned)


def adjust_saturation(images: Any, scale: Any, **_: Any) -> np.ndarray:
    def scaled(r: float, g: float, b: float) -> tuple[float, float, float]:
        h, s, v = colorsys.rgb_to_hsv(r, g, b)
        return colorsys.hsv_to_rgb(h, min(1.0, s * float(scale)), v)

    return _each(images, scaled)


def adjust_contrast(images: Any, contrast_factor: Any, **_: Any) -> np.ndarray:
    x = np.asarray(images).astype(np.float64)
    out = x.copy()
    for at in np.ndindex(x.shape[:-3]):
        for channel in range(x.shape[-1]):
            plane = x[at][..., channel]
            mean = math.fsum(plane.ravel().tolist()) / max(plane.size, 1)
            out[at][..., channel] = mean + float(contrast_factor) * (plane - mean)
    return out.astype(images.dtype)
