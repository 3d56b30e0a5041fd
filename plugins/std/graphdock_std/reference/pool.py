"""Oracles of pools: the elements of one window at a time, as Python numbers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from graphdock_std.reference.conv import taps

__all__ = ["avg_pool", "avg_pool_grad", "max_pool", "max_pool_grad", "max_pool_grad_grad"]


def _windows(shape: Sequence[int], attrs: dict[str, Any]) -> tuple[tuple[int, ...], Iterator[tuple[Any, list[Any]]]]:
    """The shape of the pool, and each of its positions with the positions that its window covers, in order."""
    pads = attrs.get("explicit_paddings") or [0] * (2 * len(shape))
    found = []
    for at, size in enumerate(shape):
        around = pads[2 * at : 2 * at + 2]
        found.append(taps(size, attrs["ksize"][at], attrs["strides"][at], 1, attrs["padding"], around))
    out = tuple(count for count, _ in found)

    def each() -> Iterator[tuple[Any, list[Any]]]:
        for o in itertools.product(*map(range, out)):
            covered = [[i for at, _, i in taken if at == o[d]] for d, (_, taken) in enumerate(found)]
            yield o, list(itertools.product(*covered))

    return out, each()


def max_pool(input: Any, **attrs: Any) -> np.ndarray:
    out, windows = _windows(input.shape, attrs)
    y = np.zeros(out, input.dtype)
    for o, covered in windows:
        y[o] = max(input[i] for i in covered)
    return y


def _first(x: Any, y: Any, covered: Sequence[Any]) -> Any:
    """Where a window first has the element y; None where it has not."""
    return next((i for i in covered if x[i] == y), None)


def max_pool_grad(orig_input: Any, orig_output: Any, grad: Any, **attrs: Any) -> np.ndarray:
    dx = np.zeros(orig_input.shape)
    for o, covered in _windows(orig_input.shape, attrs)[1]:
        i = _first(orig_input, orig_output[o], covered)
        if i is not None:
            dx[i] += float(grad[o])
    return dx.astype(grad.dtype)


def max_pool_grad_grad(orig_input: Any, orig_output: Any, grad: Any, **attrs: Any) -> np.ndarray:
    out = np.zeros(orig_output.shape, grad.dtype)
    for o, covered in _windows(orig_input.shape, attrs)[1]:
        i = _first(orig_input, orig_output[o], covered)
        if i is not None:
            out[o] = grad[i]
    return out


def avg_pool(**given: Any) -> np.ndarray:
    x = given["value"] if "value" in given else given["input"]
    out, windows = _windows(x.shape, given)
    y = np.zeros(out)
    for o, covered in windows:
        y[o] = sum(float(x[i]) for i in covered) / len(covered)
    return y.astype(x.dtype)


def avg_pool_grad(orig_input_shape: Any, grad: Any, **attrs: Any) -> np.ndarray:
    dx = np.zeros(tuple(orig_input_shape))
    for o, covered in _windows(tuple(orig_input_shape), attrs)[1]:
        for i in covered:
            dx[i] += float(grad[o]) / len(covered)
    return dx.astype(grad.dtype)
