"""Oracles of specs/normalization.yaml: one pixel or one channel at a time, in float64."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np


def _near(channel: int, count: int, radius: int) -> range:
    return range(max(0, channel - radius), min(count, channel + radius + 1))


def lrn(input: Any, depth_radius: int, bias: float, alpha: float, beta: float, **_: Any) -> np.ndarray:
    out = np.empty(input.shape)
    for at in itertools.product(*map(range, input.shape[:3])):
        pixel = [float(v) for v in input[at]]
        for c in range(len(pixel)):
            s = bias + alpha * math.fsum(pixel[j] ** 2 for j in _near(c, len(pixel), depth_radius))
            out[(*at, c)] = pixel[c] / s**beta
    return out.astype(input.dtype)


def lrn_grad(
    input_grads: Any,
    input_image: Any,
    output_image: Any,
    depth_radius: int,
    bias: float,
    alpha: float,
    beta: float,
    **_: Any,
) -> np.ndarray:
    out = np.zeros(input_image.shape)
    for at in itertools.product(*map(range, input_image.shape[:3])):
        g, x, y = ([float(v) for v in a[at]] for a in (input_grads, input_image, output_image))
        for c in range(len(x)):
            near = _near(c, len(x), depth_radius)
            s = bias + alpha * math.fsum(x[j] ** 2 for j in near)
            out[(*at, c)] += g[c] / s**beta
            for j in near:
                out[(*at, j)] -= 2 * alpha * beta * x[j] * g[c] * y[c] / s
    return out.astype(input_image.dtype)


def _columns(x: Any, data_format: str) -> np.ndarray:
    """x as [channels, elements] in float64."""
    axis = 1 if data_format.startswith("NC") else x.ndim - 1
    others = math.prod(d for i, d in enumerate(x.shape) if i != axis)
    return np.moveaxis(np.asarray(x).astype(np.float64), axis, 0).reshape(x.shape[axis], others)


def _back(columns: Any, x: Any, data_format: str) -> np.ndarray:
    axis = 1 if data_format.startswith("NC") else x.ndim - 1
    moved = np.moveaxis(x, axis, 0).shape
    return np.moveaxis(np.asarray(columns).reshape(moved), 0, axis).astype(x.dtype)


def fused_batch_norm(
    x: Any,
    scale: Any,
    offset: Any,
    mean: Any,
    variance: Any,
    epsilon: float,
    data_format: str,
    is_training: bool,
    **_: Any,
) -> tuple[np.ndarray, ...]:
    columns = _columns(x, data_format)
    rows, used, divisors, unbiased = [], [], [], []
    for c, values in enumerate(columns):
        count = len(values) or math.nan  # of nothing there is no mean
        m = math.fsum(values) / count if is_training else float(mean[c])
        squares = math.fsum((v - m) ** 2 for v in values)
        divisor = squares / count if is_training else float(variance[c])
        rows.append((values - m) * float(scale[c]) / math.sqrt(divisor + epsilon) + float(offset[c]))
        used.append(m)
        divisors.append(divisor)
        unbiased.append(squares / max(count - 1, 1) if is_training else divisor)
    vectors = (np.array(v).astype(scale.dtype) for v in (used, unbiased, used, divisors))
    return (_back(rows, x, data_format), *vectors)


def fused_batch_norm_grad(
    y_backprop: Any,
    x: Any,
    scale: Any,
    reserve_space_1: Any,
    reserve_space_2: Any,
    epsilon: float,
    data_format: str,
    is_training: bool,
    **_: Any,
) -> tuple[np.ndarray, ...]:
    rows, to_scale, to_offset = [], [], []
    for c, (dy, values) in enumerate(zip(_columns(y_backprop, data_format), _columns(x, data_format), strict=True)):
        root = math.sqrt(float(reserve_space_2[c]) + epsilon)
        normal = (values - float(reserve_space_1[c])) / root
        to_scale.append(math.fsum(dy * normal))
        to_offset.append(math.fsum(dy))
        if is_training:
            count = len(dy) or math.nan
            dy = dy - to_offset[-1] / count - normal * to_scale[-1] / count
        rows.append(dy * float(scale[c]) / root)
    return (
        _back(rows, x, data_format),
        np.array(to_scale).astype(scale.dtype),
        np.array(to_offset).astype(scale.dtype),
    )
