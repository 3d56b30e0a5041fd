"""Oracles of specs/space.yaml: an element at a time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np


def depth_to_space(input: Any, block_size: int, data_format: str, **_: Any) -> np.ndarray:
    s = block_size
    x = input if data_format == "NHWC" else np.moveaxis(input, 1, -1)
    b, h, w, c = x.shape
    c //= s * s
    out = np.empty((b, h * s, w * s, c), x.dtype)
    for n, i, j, k in np.ndindex(out.shape):
        out[n, i, j, k] = x[n, i // s, j // s, (i % s * s + j % s) * c + k]
    return np.ascontiguousarray(out if data_format == "NHWC" else np.moveaxis(out, -1, 1))


def space_to_depth(input: Any, block_size: int, data_format: str, **_: Any) -> np.ndarray:
    s = block_size
    x = input if data_format == "NHWC" else np.moveaxis(input, 1, -1)
    b, h, w, c = x.shape
    out = np.empty((b, h // s, w // s, c * s * s), x.dtype)
    for n, i, j, k in np.ndindex(x.shape):
        out[n, i // s, j // s, (i % s * s + j % s) * c + k] = x[n, i, j, k]
    return np.ascontiguousarray(out if data_format == "NHWC" else np.moveaxis(out, -1, 1))


def _zeros(shape: Any, dtype: Any) -> np.ndarray:
    return np.full(shape, b"" if np.dtype(dtype).kind == "O" else 0, dtype)


def space_to_batch_nd(input: Any, block_shape: Any, paddings: Any, **_: Any) -> np.ndarray:
    blocks, margins = block_shape.tolist(), paddings.tolist()
    m = len(blocks)
    spatial = [(n + a + b) // s for n, (a, b), s in zip(input.shape[1 : m + 1], margins, blocks, strict=True)]
    batch = input.shape[0]
    out = _zeros((batch * int(np.prod(blocks)), *spatial, *input.shape[m + 1 :]), input.dtype)
    for at in itertools.product(*map(range, input.shape[: m + 1])):
        moved = [i + a for i, (a, _b) in zip(at[1:], margins, strict=True)]
        place = 0
        for i, s in zip(moved, blocks, strict=True):
            place = place * s + i % s
        out[(place * batch + at[0], *(i // s for i, s in zip(moved, blocks, strict=True)))] = input[at]
    return out


def batch_to_space_nd(input: Any, block_shape: Any, crops: Any, **_: Any) -> np.ndarray:
    blocks, margins = block_shape.tolist(), crops.tolist()
    m = len(blocks)
    batch = input.shape[0] // int(np.prod(blocks))
    spatial = [n * s - a - b for n, (a, b), s in zip(input.shape[1 : m + 1], margins, blocks, strict=True)]
    out = np.empty((batch, *spatial, *input.shape[m + 1 :]), input.dtype)
    for at in itertools.product(*map(range, out.shape[: m + 1])):
        moved = [i + a for i, (a, _b) in zip(at[1:], margins, strict=True)]
        place = 0
        for i, s in zip(moved, blocks, strict=True):
            place = place * s + i % s
        out[at] = input[(place * batch + at[0], *(i // s for i, s in zip(moved, blocks, strict=True)))]
    return out


def _windows(
    shape: Any, ksizes: Any, strides: Any, rates: Any, padding: str
) -> tuple[list[int], Iterator[tuple[Any, ...]]]:
    """Return how many windows there are, and (window row, window column, channel offset, image row, image column) of each
    pixel in one.
    """
    counts, firsts = [], []
    for n, k, s, r in zip(shape[1:3], ksizes[1:3], strides[1:3], rates[1:3], strict=True):
        reach = (k - 1) * r + 1
        count = -(-n // s) if padding == "SAME" else max(0, -(-(n - reach + 1) // s))
        counts.append(count)
        firsts.append(-(max((count - 1) * s + reach - n, 0) // 2) if padding == "SAME" else 0)

    def pixels() -> Iterator[tuple[Any, ...]]:
        for i, j in itertools.product(*map(range, counts)):
            for p, q in itertools.product(range(ksizes[1]), range(ksizes[2])):
                y = firsts[0] + i * strides[1] + p * rates[1]
                x = firsts[1] + j * strides[2] + q * rates[2]
                if 0 <= y < shape[1] and 0 <= x < shape[2]:
                    yield i, j, (p * ksizes[2] + q) * shape[3], y, x

    return counts, pixels()


def extract_image_patches(images: Any, ksizes: Any, strides: Any, rates: Any, padding: str, **_: Any) -> np.ndarray:
    b, _h, _w, c = images.shape
    counts, pixels = _windows(images.shape, ksizes, strides, rates, padding)
    out = np.zeros((b, *counts, ksizes[1] * ksizes[2] * c), images.dtype)
    for i, j, k, y, x in pixels:
        out[:, i, j, k : k + c] = images[:, y, x]
    return out


def extract_image_patches_grad(
    images_shape: Any, patches_grad: Any, ksizes: Any, strides: Any, rates: Any, padding: str, **_: Any
) -> np.ndarray:
    shape = tuple(images_shape.tolist())
    _counts, pixels = _windows(shape, ksizes, strides, rates, padding)
    out = np.zeros(shape)
    for i, j, k, y, x in pixels:
        out[:, y, x] += patches_grad[:, i, j, k : k + shape[3]].astype(np.float64)
    return out.astype(patches_grad.dtype)
