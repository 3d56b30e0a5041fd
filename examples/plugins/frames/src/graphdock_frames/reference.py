"""Oracles of frames' ops, by other means than the kernels: element by element."""

import math

import numpy as np

__all__ = ["energy", "frame", "frame_grad", "mix", "taper"]


def frame(x, length, step):
    starts = range(0, x.shape[-1] - length + 1, step)
    return np.stack([x[..., s : s + length] for s in starts], -2)


def frame_grad(x, grad_y, length, step):
    dx = np.zeros(x.shape, np.float64)
    for index in np.ndindex(grad_y.shape):
        *batch, window, i = index
        dx[(*batch, window * step + i)] += float(grad_y[index])
    return dx.astype(x.dtype)


def taper(x, window):
    size, low = x.shape[-1], {"hann": 0.5, "hamming": 0.54, "none": 1.0}[window]
    turns = [math.cos(2 * math.pi * i / (size - 1)) if size > 1 else -1.0 for i in range(size)]
    return (x * np.array([low - (1 - low) * turn for turn in turns])).astype(x.dtype)


def energy(x, keep_dims):
    made = np.zeros(x.shape[:-1])
    for index in np.ndindex(made.shape):
        made[index] = math.fsum(float(v) ** 2 for v in x[index])
    return (made[..., None] if keep_dims else made).astype(x.dtype)


def mix(tracks, weights, **attrs):
    total = sum(float(w) * t.astype(np.float64) for w, t in zip(weights, tracks, strict=True))
    return np.asarray(total).astype(weights.dtype)
