"""Oracles of pools and morphology: the elements of one window at a time, as Python numbers."""

from __future__ import annotations

import itertools
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
    for o, covered in _windows(input.shape, attrs)[1]:
        i = _first(input, y[o], covered)
        if i is not None:
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
    dx = np.zeros(input.shape)
    for o, i in _places(input.shape, argmax, include_batch_in_index):
        dx[i] += float(grad[o])
    return dx.astype(grad.dtype)


def max_pool_grad_grad_with_argmax(
    input: Any, grad: Any, argmax: Any, include_batch_in_index: bool = False, **_: Any
) -> np.ndarray:
    out = np.zeros(argmax.shape, grad.dtype)
    for o, i in _places(input.shape, argmax, include_batch_in_index):
        out[o] = grad[i]
    return out


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
    found = {o: max(value for value, _, _ in cells) for o, cells in _sums(input, filter, attrs)}
    sizes = [taps(n, 1, attrs["strides"][d], 1, "SAME")[0] for d, n in enumerate(input.shape)]
    if attrs["padding"] == "VALID":
        for d in (1, 2):
            args = (input.shape[d], filter.shape[d - 1], attrs["strides"][d], attrs["rates"][d], "VALID")
            sizes[d] = taps(*args)[0]
    y = np.zeros(sizes, input.dtype)
    for o, value in found.items():
        y[o] = value
    return y


def _winner(cells: list[tuple[Any, Any, Any]]) -> tuple[Any, Any]:
    """Element and tap of the first largest sum."""
    largest = max(value for value, _, _ in cells)
    return next((i, k) for value, i, k in cells if value == largest)


def dilation_backprop_input(input: Any, filter: Any, out_backprop: Any, **attrs: Any) -> np.ndarray:
    dx = np.zeros(input.shape)
    for o, cells in _sums(input, filter, attrs):
        dx[_winner(cells)[0]] += float(out_backprop[o])
    return dx.astype(input.dtype)


def dilation_backprop_filter(input: Any, filter: Any, out_backprop: Any, **attrs: Any) -> np.ndarray:
    dw = np.zeros(filter.shape)
    for o, cells in _sums(input, filter, attrs):
        dw[_winner(cells)[1]] += float(out_backprop[o])
    return dw.astype(input.dtype)


def _pick(which: int, input: Any, filter: Any, grad: Any, attrs: dict[str, Any]) -> np.ndarray:
    out = dilation(input, filter, **attrs)
    for o, cells in _sums(input, filter, attrs):
        out[o] = grad[_winner(cells)[which]]
    return out


def dilation_pick_input(input: Any, filter: Any, grad: Any, **attrs: Any) -> np.ndarray:
    return _pick(0, input, filter, grad, attrs)


def dilation_pick_filter(input: Any, filter: Any, grad: Any, **attrs: Any) -> np.ndarray:
    return _pick(1, input, filter, grad, attrs)
