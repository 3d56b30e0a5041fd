"""Oracles of specs/spectral.yaml: sums of products with powers of e, one axis after the other."""

from __future__ import annotations

import cmath
from typing import Any

import numpy as np


def _along(x: np.ndarray, axis: int, sign: int) -> np.ndarray:
    size = x.shape[axis]
    moved = np.moveaxis(x, axis, -1)
    out = np.zeros(moved.shape, np.complex128)
    for index in np.ndindex(out.shape):
        line = moved[index[:-1]].tolist()
        total = sum(v * cmath.exp(sign * 2j * cmath.pi * ((index[-1] * n) % size) / size) for n, v in enumerate(line))
        out[index] = total / size if sign > 0 else total
    return np.moveaxis(out, -1, axis)


def _transformed(x: Any, rank: int, sign: int) -> np.ndarray:
    out = np.asarray(x).astype(np.complex128)
    for axis in range(-rank, 0):
        out = _along(out, axis, sign)
    return out


def _fitted(x: np.ndarray, sizes: list[int]) -> np.ndarray:
    shape = (*x.shape[: x.ndim - len(sizes)], *sizes)
    out = np.zeros(shape, x.dtype)
    for index in np.ndindex(shape):
        if all(i < d for i, d in zip(index, x.shape, strict=True)):
            out[index] = x[index]
    return out


def _rfft(x: Any, fft_length: Any, dtype: Any) -> np.ndarray:
    sizes = [int(n) for n in fft_length]
    whole = _transformed(_fitted(x, sizes), len(sizes), -1)
    return whole[..., : sizes[-1] // 2 + 1].astype(np.dtype(str(dtype)))


def _irfft(x: Any, fft_length: Any, dtype: Any) -> np.ndarray:
    """The other half of each line is made of conjugates, after the other axes are done."""
    sizes = [int(n) for n in fft_length]
    last = sizes[-1]
    half = _fitted(x, [*sizes[:-1], last // 2 + 1]).astype(np.complex128)
    for axis in range(-len(sizes), -1):
        half = _along(half, axis, 1)
    lines = np.zeros((*half.shape[:-1], last), np.complex128)
    for k in range(last):
        lines[..., k] = half[..., k] if k <= last // 2 else half[..., last - k].conj()
    lines[..., 0] = half[..., 0].real
    if last % 2 == 0:
        lines[..., last // 2] = half[..., last // 2].real
    return _along(lines, -1, 1).real.astype(np.dtype(str(dtype)))


def fft(input: Any) -> np.ndarray:
    return _transformed(input, 1, -1).astype(input.dtype)


def fft2d(input: Any) -> np.ndarray:
    return _transformed(input, 2, -1).astype(input.dtype)


def fft3d(input: Any) -> np.ndarray:
    return _transformed(input, 3, -1).astype(input.dtype)


def ifft(input: Any) -> np.ndarray:
    return _transformed(input, 1, 1).astype(input.dtype)


def ifft2d(input: Any) -> np.ndarray:
    return _transformed(input, 2, 1).astype(input.dtype)


def ifft3d(input: Any) -> np.ndarray:
    return _transformed(input, 3, 1).astype(input.dtype)


def rfft(input: Any, fft_length: Any, Tout: Any = "complex64") -> np.ndarray:
    return _rfft(input, fft_length, Tout)


def irfft(input: Any, fft_length: Any, Tout: Any = "float32") -> np.ndarray:
    return _irfft(input, fft_length, Tout)


rfft2d = rfft3d = rfft
irfft2d = irfft3d = irfft
