"""Oracles of specs/spectral.yaml: sums of products with powers of e, one axis after the other."""

from __future__ import annotations

import cmath
from collections.abc import Callable
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


def _complex(rank: int, sign: int) -> Callable[..., np.ndarray]:
    return lambda input: _transformed(input, rank, sign).astype(input.dtype)


def _fitted(x: np.ndarray, sizes: list[int]) -> np.ndarray:
    shape = (*x.shape[: x.ndim - len(sizes)], *sizes)
    out = np.zeros(shape, x.dtype)
    for index in np.ndindex(shape):
        if all(i < d for i, d in zip(index, x.shape, strict=True)):
            out[index] = x[index]
    return out


def rfft(input: Any, fft_length: Any, Tout: Any = "complex64") -> np.ndarray:
    sizes = [int(n) for n in fft_length]
    whole = _transformed(_fitted(input, sizes), len(sizes), -1)
    return whole[..., : sizes[-1] // 2 + 1].astype(np.dtype(str(Tout)))


def irfft(input: Any, fft_length: Any, Tout: Any = "float32") -> np.ndarray:
    """The other half of each line is made of conjugates, after the other axes are done."""
    sizes = [int(n) for n in fft_length]
    last = sizes[-1]
    half = _fitted(input, [*sizes[:-1], last // 2 + 1]).astype(np.complex128)
    for axis in range(-len(sizes), -1):
        half = _along(half, axis, 1)
    lines = np.zeros((*half.shape[:-1], last), np.complex128)
    for k in range(last):
        lines[..., k] = half[..., k] if k <= last // 2 else half[..., last - k].conj()
    lines[..., 0] = half[..., 0].real
    if last % 2 == 0:
        lines[..., last // 2] = half[..., last // 2].real
    return _along(lines, -1, 1).real.astype(np.dtype(str(Tout)))


fft = _complex(1, -1)
fft2d = _complex(2, -1)
fft3d = _complex(3, -1)
ifft = _complex(1, 1)
ifft2d = _complex(2, 1)
ifft3d = _complex(3, 1)
rfft2d = rfft3d = rfft
irfft2d = irfft3d = irfft
