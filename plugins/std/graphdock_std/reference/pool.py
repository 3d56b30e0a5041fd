"""Oracles of pools and morphology: the elements of one window at a time, as Python numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from graphdock_std.reference.conv import taps


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
        y[o] = max((input[i] for i in covered), default=-math.inf)
    return y


def _first(x: Any, y: Any, covered: Sequence[Any]) -> Any:
    """Return where a window first has the element y; None where it has not."""
    return next((i for i in covered if x[i] == y), None)


def _maxima(x: Any, y: Any, attrs: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Each position of a pool of x, and where the window has the element that y has there."""
    for o, covered in _windows(x.shape, attrs)[1]:
        i = _first(x, y[o], covered)
        if i is not None:
            yield o, i


def _scattered(shape: Sequence[int], pairs: Iterator[tuple[Any, Any]], grad: Any, dtype: Any = None) -> np.ndarray:
    """The sum of what stands in ``grad`` at the first of each pair, at the second."""
    out = np.zeros(shape)
    for o, i in pairs:
        out[i] += float(grad[o])
    return out.astype(dtype or grad.dtype)


def _gathered(shape: Sequence[int], pairs: Iterator[tuple[Any, Any]], grad: Any) -> np.ndarray:
    """Return what stands in ``grad`` at the second of each pair, at the first."""
    out = np.zeros(shape, grad.dtype)
    for o, i in pairs:
        out[o] = grad[i]
    return out


def max_pool_grad(orig_input: Any, orig_output: Any, grad: Any, **attrs: Any) -> np.ndarray:
    return _scattered(orig_input.shape, _maxima(orig_input, orig_output, attrs), grad)


def max_pool_grad_grad(orig_input: Any, orig_output: Any, grad: Any, **attrs: Any) -> np.ndarray:
    return _gathered(orig_output.shape, _maxima(orig_input, orig_output, attrs), grad)


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


def _flat(shape: Sequence[int], i: Sequence[int], include_batch_in_index: bool) -> int:
    index = i[0] if include_batch_in_index else 0
    for size, at in zip(shape[1:], i[1:], strict=True):
        index = index * size + at
    return index


def max_pool_with_argmax(
    input: Any, Targmax: Any = "int64", include_batch_in_index: bool = False, **attrs: Any
) -> tuple[np.ndarray, np.ndarray]:
    y = max_pool(input, **attrs)
    argmax = np.zeros(y.shape, np.dtype(str(Targmax)))
    for o, i in _maxima(input, y, attrs):
        argmax[o] = _flat(input.shape, i, include_batch_in_index)
    return y, argmax


def _places(shape: Sequence[int], argmax: Any, include_batch_in_index: bool) -> Iterator[tuple[Any, Any]]:
    """Each window, and the position in the input that its index means."""
    for o in np.ndindex(*argmax.shape):
        within = tuple(shape) if include_batch_in_index else (1, *shape[1:])
        i = tuple(int(n) for n in np.unravel_index(int(argmax[o]), within))
        yield o, i if include_batch_in_index else (o[0], *i[1:])


def max_pool_grad_with_argmax(
    input: Any, grad: Any, argmax: Any, include_batch_in_index: bool = False, **_: Any
) -> np.ndarray:
    return _scattered(input.shape, _places(input.shape, argmax, include_batch_in_index), grad)


def max_pool_grad_grad_with_argmax(
    input: Any, grad: Any, argmax: Any, include_batch_in_index: bool = False, **_: Any
) -> np.ndarray:
    return _gathered(argmax.shape, _places(input.shape, argmax, include_batch_in_index), grad)


def _sums(x: Any, w: Any, attrs: dict[str, Any]) -> Iterator[tuple[Any, list[tuple[Any, Any, Any]]]]:
    """Each position of a dilation with ``(sum, element, tap)`` of all its window, sums as the dtype rounds them."""
    found = [
        taps(x.shape[i + 1], w.shape[i], attrs["strides"][i + 1], attrs["rates"][i + 1], attrs["padding"])
        for i in (0, 1)
    ]
    for b, r, q, c in itertools.product(range(x.shape[0]), range(found[0][0]), range(found[1][0]), range(x.shape[3])):
        rows = [(k, i) for o, k, i in found[0][1] if o == r]
        columns = [(k, i) for o, k, i in found[1][1] if o == q]
        cells = [((b, i, j, c), (k, m, c)) for (k, i), (m, j) in itertools.product(rows, columns)]
        yield (b, r, q, c), [(x[i] + w[k], i, k) for i, k in cells]


def dilation(input: Any, filter: Any, **attrs: Any) -> np.ndarray:
    found = {o: max((value for value, _, _ in cells), default=-math.inf) for o, cells in _sums(input, filter, attrs)}
    sizes = [taps(n, 1, attrs["strides"][d], 1, "SAME")[0] for d, n in enumerate(input.shape)]
    if attrs["padding"] == "VALID":
        for d in (1, 2):
            args = (input.shape[d], filter.shape[d - 1], attrs["strides"][d], attrs["rates"][d], "VALID")
            sizes[d] = taps(*args)[0]
    y = np.zeros(sizes, input.dtype)
    for o, value in found.items():
        y[o] = value
    return y


def _winners(input: Any, filter: Any, attrs: dict[str, Any], which: int) -> Iterator[tuple[Any, Any]]:
    """Each position of a dilation, and the element (0) or the tap (1) of the first largest sum of its window, where it has one."""
    for o, cells in _sums(input, filter, attrs):
        if cells:
            largest = max(value for value, _, _ in cells)
            yield o, next(found for value, *found in cells if value == largest)[which]


def dilation_backprop_input(input: Any, filter: Any, out_backprop: Any, **attrs: Any) -> np.ndarray:
    return _scattered(input.shape, _winners(input, filter, attrs, 0), out_backprop, input.dtype)


def dilation_backprop_filter(input: Any, filter: Any, out_backprop: Any, **attrs: Any) -> np.ndarray:
    return _scattered(filter.shape, _winners(input, filter, attrs, 1), out_backprop, input.dtype)


def dilation_pick_input(input: Any, filter: Any, grad: Any, **attrs: Any) -> np.ndarray:
    return _gathered(dilation(input, filter, **attrs).shape, _winners(input, filter, attrs, 0), grad)


def dilation_pick_filter(input: Any, filter: Any, grad: Any, **attrs: Any) -> np.ndarray:
    return _gathered(dilation(input, filter, **attrs).shape, _winners(input, filter, attrs, 1), grad)
