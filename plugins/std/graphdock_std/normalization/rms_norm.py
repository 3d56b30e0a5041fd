"""RMS normalisation in other ops: for devices without a kernel of it, and for gradients of its gradient."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import ops as _ops


def _wide(*tensors: Any) -> list[Any]:
    """All of them in one dtype that loses nothing of any, float32 at least."""
    both = any(t.dtype is _tf.float64 for t in tensors)
    return [_ops.cast(t, _tf.float64 if both else _tf.float32) for t in tensors]


def _inverse(x: Any, epsilon: float) -> Any:
    return _tf.rsqrt(_tf.reduce_mean(_tf.square(x), axis=-1) + epsilon)


def _spread(numbers: Any) -> Any:
    """A number per row, as what broadcasts against the rows."""
    return _tf.expand_dims(numbers, -1)


def _sum(x: Any) -> Any:
    """Of each row."""
    return _tf.reduce_sum(x, axis=-1)


def _over(x: Any) -> Any:
    """The sum of all rows."""
    return _tf.reduce_sum(x, _tf.range(_tf.rank(x) - 1))


def rms_inverse(x: Any, gamma: Any, epsilon: float) -> Any:
    """RMSNorm's second output."""
    rows, _ = _wide(x, gamma)
    return _ops.cast(_inverse(rows, epsilon), gamma.dtype)


def rms_scaled(x: Any, gamma: Any, epsilon: float) -> Any:
    """Its first."""
    rows, factors = _wide(x, gamma)
    return _ops.cast(rows * _spread(_inverse(rows, epsilon)) * factors, x.dtype)


def rms_slope(y_backprop: Any, x: Any, gamma: Any, inverse: Any) -> Any:
    """RMSNormGrad's first output: ``i (h - n mean(h n))`` with h = dy gamma and n = x i."""
    grad, rows, factors, i = _wide(y_backprop, x, gamma, inverse)
    normal, h = rows * _spread(i), grad * factors
    return _ops.cast(_spread(i) * (h - normal * _tf.reduce_mean(h * normal, -1, keepdims=True)), x.dtype)


def rms_gamma_slope(y_backprop: Any, x: Any, gamma: Any, inverse: Any) -> Any:
    """Its second."""
    grad, rows, i = _wide(y_backprop, x, inverse)
    return _ops.cast(_over(grad * rows * _spread(i)), gamma.dtype)


def rms_norm_gradient(op: Any, grad_y: Any, grad_inverse: Any) -> list[Any]:
    """By x and gamma; the inverse has a gradient of its own."""
    (x, gamma), inverse = op.inputs, op.outputs[1]
    parts: list[Any] = [None, None]
    if grad_y is not None:
        parts = list(_ops.apply_op("RMSNormGrad", y_backprop=grad_y, x=x, gamma=gamma, inverse=inverse))
    if grad_inverse is not None:
        rows, i, g = _wide(x, inverse, grad_inverse)
        more = _ops.cast(-(rows * _spread(g * i * i * i / _width(x, i))), x.dtype)
        parts[0] = more if parts[0] is None else parts[0] + more
    return parts


def rms_norm_grad_gradient(op: Any, grad_x: Any, grad_gamma: Any) -> list[Any]:
    """By the gradient of y, x, gamma and inverse; u and p are the gradients of the two results.

    ``dx = i h - i^3 x B/n``, where h = dy gamma, i = inverse and B = sum h x over a row.
    """
    u = _ops.zeros_like(op.inputs[1]) if grad_x is None else grad_x
    p = _ops.zeros_like(op.inputs[2]) if grad_gamma is None else grad_gamma
    g, x, gamma, i, u, p = _wide(*op.inputs, u, p)
    n = _width(x, i)
    h = g * gamma
    b, v, cube = _sum(h * x), _sum(u * x), i * i * i / n
    to_h = _spread(i) * u - x * _spread(cube * v)
    to_dy = gamma * to_h + p * x * _spread(i)
    to_x = p * g * _spread(i) - _spread(cube * b) * u - _spread(cube * v) * h
    to_inverse = _sum(u * h) - 3 * i * i * v * b / n + _sum(p * g * x)
    found = [to_dy, to_x, _over(g * to_h), to_inverse]
    return [_ops.cast(t, v.dtype) for t, v in zip(found, op.inputs, strict=True)]


def _width(x: Any, like: Any) -> Any:
    """Return how many elements a row has, in a dtype."""
    return _ops.cast(_tf.shape(x)[-1], like.dtype)
