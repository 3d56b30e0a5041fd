"""Oracles of convolutions: float64, one tap of one output position at a time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np


def taps(
    size: int, window: int, stride: int, dilation: int, padding: str, pads: Sequence[int] = (0, 0)
) -> tuple[int, list[tuple[int, int, int]]]:
    """Return how many windows fit on a dim, and each ``(window, tap, element)`` whose element exists."""
    span = (window - 1) * dilation + 1
    if padding == "SAME":
        count = (size + stride - 1) // stride
        before = max(0, (count - 1) * stride + span - size) // 2
    else:
        before = pads[0]
        count = len(range(0, size + sum(pads) - span + 1, stride))
    found = []
    for o in range(count):
        for k in range(window):
            i = o * stride + k * dilation - before
            if 0 <= i < size:
                found.append((o, k, i))
    return count, found


class _Sliding:
    """The taps of a convolution, with channels last whatever ``data_format`` says."""

    def __init__(self, x: Sequence[int], w: Sequence[int], attrs: dict[str, Any]) -> None:
        rank = len(x)
        self.channel = rank - 1 if attrs["data_format"].endswith("C") else 1
        spatial = [i for i in range(1, rank) if i != self.channel]
        pads = attrs.get("explicit_paddings") or [0] * (2 * rank)
        self.dims = []
        for at, window in zip(spatial, w, strict=False):
            stride, dilation = attrs["strides"][at], attrs["dilations"][at]
            around = pads[2 * at : 2 * at + 2]
            self.dims.append(taps(x[at], window, stride, dilation, attrs["padding"], around))
        self.out = tuple(count for count, _ in self.dims)

    def last(self, x: Any) -> np.ndarray:
        return np.moveaxis(np.asarray(x).astype(np.float64), self.channel, -1)

    def back(self, x: np.ndarray, dtype: Any) -> np.ndarray:
        return np.ascontiguousarray(np.moveaxis(x, -1, self.channel)).astype(dtype)

    def __iter__(self) -> Iterator[tuple[Any, Any, Any]]:
        for chosen in itertools.product(*(found for _, found in self.dims)):
            o, k, i = zip(*chosen, strict=True)
            yield (slice(None), *o), k, (slice(None), *i)


def conv(input: Any, filter: Any, **attrs: Any) -> np.ndarray:
    slide = _Sliding(input.shape, filter.shape, attrs)
    x, w = slide.last(input), filter.astype(np.float64)
    y = np.zeros((x.shape[0], *slide.out, w.shape[-1]))
    for o, k, i in slide:
        y[o] += x[i] @ w[k]
    return slide.back(y, input.dtype)


def conv_backprop_input(input_sizes: Any, filter: Any, out_backprop: Any, **attrs: Any) -> np.ndarray:
    slide = _Sliding(input_sizes, filter.shape, attrs)
    w, dy = filter.astype(np.float64), slide.last(out_backprop)
    dx = np.moveaxis(np.zeros(tuple(input_sizes)), slide.channel, -1)
    for o, k, i in slide:
        dx[i] += dy[o] @ w[k].T
    return slide.back(dx, filter.dtype)


def conv_backprop_filter(input: Any, filter_sizes: Any, out_backprop: Any, **attrs: Any) -> np.ndarray:
    slide = _Sliding(input.shape, filter_sizes, attrs)
    x, dy = slide.last(input), slide.last(out_backprop)
    dw = np.zeros(tuple(filter_sizes))
    for o, k, i in slide:
        dw[k] += x[i].T @ dy[o]
    return dw.astype(input.dtype)


def depthwise(input: Any, filter: Any, **attrs: Any) -> np.ndarray:
    slide = _Sliding(input.shape, filter.shape, attrs)
    x, w = slide.last(input), filter.astype(np.float64)
    y = np.zeros((x.shape[0], *slide.out, *w.shape[-2:]))
    for o, k, i in slide:
        y[o] += x[i][..., None] * w[k]
    return slide.back(y.reshape(*y.shape[:-2], w.shape[-2] * w.shape[-1]), input.dtype)


def depthwise_backprop_input(input_sizes: Any, filter: Any, out_backprop: Any, **attrs: Any) -> np.ndarray:
    slide = _Sliding(input_sizes, filter.shape, attrs)
    w, dy = filter.astype(np.float64), slide.last(out_backprop)
    dx = np.moveaxis(np.zeros(tuple(input_sizes)), slide.channel, -1)
    for o, k, i in slide:
        dx[i] += (dy[o].reshape(len(dy[o]), *w.shape[-2:]) * w[k]).sum(-1)
    return slide.back(dx, filter.dtype)


def depthwise_backprop_filter(input: Any, filter_sizes: Any, out_backprop: Any, **attrs: Any) -> np.ndarray:
    slide = _Sliding(input.shape, filter_sizes, attrs)
    x, dy = slide.last(input), slide.last(out_backprop)
    dw = np.zeros(tuple(filter_sizes))
    for o, k, i in slide:
        dw[k] += (x[i][..., None] * dy[o].reshape(len(dy[o]), *dw.shape[-2:])).sum(0)
    return dw.astype(input.dtype)
