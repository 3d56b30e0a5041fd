"""Gradients of normalisation: of LRN, batch and layer normalisation, and of their gradients.

Batch and layer normalisation give their statistics as outputs, and their gradients take them as inputs, each with a partial
derivative. So the second order follows by the chain rule alone.
"""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import ops as _ops

_LRN = ("depth_radius", "bias", "alpha", "beta")


def lrn(op: Any, grad: Any) -> Any:
    attrs = {a: op.get_attr(a) for a in _LRN}
    return _ops.apply_op("LRNGrad", input_grads=grad, input_image=op.inputs[0], output_image=op.outputs[0], **attrs)


def _window(x: Any, radius: int) -> Any:
    """The sum over channels at most ``radius`` away."""
    zeros = _ops.zeros_like(_tf.shape(x)[:3])
    margins = [[0, 0], [0, 0], [0, 0], [radius, radius]]
    padded, size = _tf.pad(x, margins), _tf.concat([zeros - 1, _tf.shape(x)[3:]], 0)
    return _tf.add_n([_tf.slice(padded, [0, 0, 0, i], size) for i in range(2 * radius + 1)])


def lrn_grad(op: Any, grad: Any) -> list[Any]:
    """Of ``g s^-b - 2 a b x W(g y / s)``, where W sums over the window and s = bias + a W(x^2)."""
    g, x, y = op.inputs
    radius, bias, alpha, beta = (op.get_attr(a) for a in _LRN)
    s = bias + alpha * _window(x * x, radius)
    power, factor = _tf.pow(s, -beta), 2 * alpha * beta
    mixed = _window(x * grad, radius)
    to_s = factor * (mixed * g * y / (s * s)) - beta * (grad * g * power / s)
    to_x = 2 * alpha * (x * _window(to_s, radius)) - factor * (grad * _window(g * y / s, radius))
    return [grad * power - factor * (y / s * mixed), to_x, -factor * (g / s * mixed)]


class _Channels:
    """Sums to, and spreads from, one number per channel, in the dtype of the statistics."""

    def __init__(self, op: Any, like: Any, statistics: Any) -> None:
        data_format = op.get_attr("data_format")
        rank = len(data_format)
        first = data_format.startswith("NC")
        self.axes = [i for i in range(rank) if i != (1 if first else rank - 1)]
        self.shape = [1, -1, *[1] * (rank - 2)] if first else None
        self.dtype, self.narrow = statistics.dtype, like.dtype
        count = _tf.size(like) // _tf.maximum(_tf.size(statistics), 1)
        self.count = _ops.cast(count, self.dtype)
        self.rest = _ops.cast(_tf.maximum(count - 1, 1), self.dtype)

    def wide(self, x: Any) -> Any:
        return _ops.cast(x, self.dtype)

    def thin(self, x: Any) -> Any:
        return _ops.cast(x, self.narrow)

    def spread(self, vector: Any) -> Any:
        return vector if self.shape is None else _tf.reshape(vector, self.shape)

    def total(self, x: Any) -> Any:
        return _tf.reduce_sum(x, self.axes)


def fused_batch_norm(op: Any, grad_y: Any, *grads: Any) -> list[Any]:
    """By x, scale, offset, mean and variance. TensorFlow has no gradient of the statistics; here they have theirs."""
    x, scale, offset, mean, variance = op.inputs
    used, divisor = op.outputs[3:]
    channels, training = _Channels(op, x, scale), op.get_attr("is_training")
    to_mean = _sum([grads[0], grads[2]])
    to_variance = [g for g in (grads[1], grads[3]) if g is not None]
    parts: list[Any] = [None, None, None]
    if grad_y is not None:
        attrs = {a: op.get_attr(a) for a in ("epsilon", "data_format", "is_training")}
        made = _ops.apply_op(
            "FusedBatchNormGrad",
            y_backprop=grad_y,
            x=x,
            scale=scale,
            reserve_space_1=used,
            reserve_space_2=divisor,
            **attrs,
        )
        parts = list(made)
    if not training:
        results = [to_mean, _sum(to_variance)]
        if grad_y is not None:
            inverse = _tf.rsqrt(divisor + op.get_attr("epsilon"))
            results[0] = _sum([results[0], -(scale * inverse * parts[2])])
            results[1] = _sum([results[1], -0.5 * (scale * inverse * inverse * parts[1])])
        return [*parts, *results]
    spread = []
    if to_mean is not None:
        spread.append(channels.spread(to_mean / channels.count) * _ops.ones_like(channels.wide(x)))
    centred = channels.wide(x) - channels.spread(used)
    for g, count in ((grads[1], channels.rest), (grads[3], channels.count)):
        if g is not None:
            spread.append(centred * channels.spread(2 * g / count))
    if spread:
        parts[0] = _sum([parts[0], channels.thin(_sum(spread))])
    return [*parts, _ops.zeros_like(mean), _ops.zeros_like(variance)]


def _sum(parts: list[Any]) -> Any:
    present = [p for p in parts if p is not None]
    return None if not present else present[0] if len(present) == 1 else _tf.add_n(present)


def fused_batch_norm_grad(op: Any, grad_x: Any, grad_scale: Any, grad_offset: Any) -> list[Any]:
    """By the gradient of y, x, scale, mean and variance; the sums A, B, U, V, W are named as in the formula

    ``dx = s i (dy - A/N - c i^2 B/N)``, where i = (variance + epsilon)^-1/2, c = x - mean, A = sum dy and B = sum dy c.
    """
    dy, x, scale, mean, variance = op.inputs
    channels = _Channels(op, x, scale)
    spread, total, count = channels.spread, channels.total, channels.count
    g, c = channels.wide(dy), channels.wide(x) - spread(mean)
    u = channels.wide(_ops.zeros_like(x) if grad_x is None else grad_x)
    p = _ops.zeros_like(scale) if grad_scale is None else grad_scale
    q = _ops.zeros_like(scale) if grad_offset is None else grad_offset
    i = _tf.rsqrt(variance + op.get_attr("epsilon"))
    b = total(g * c)
    w = total(u * g)
    to_dy, to_c = u, spread(p * i) * g
    to_i = p * b
    if op.get_attr("is_training"):
        a, u0, v = total(g), total(u), total(u * c)
        w -= (u0 * a + v * i * i * b) / count
        to_dy = u - spread(u0 / count) - c * spread(v * i * i / count)
        to_c -= spread(scale * i * i * i * b / count) * u + spread(scale * i * i * i * v / count) * g
        to_i -= 2 * (scale * i * i * v * b) / count
    to_i += scale * w
    to_dy = spread(scale * i) * to_dy + spread(p * i) * c + spread(q)
    return [channels.thin(to_dy), channels.thin(to_c), i * w, -total(to_c), -0.5 * (to_i * i * i * i)]


class _Rows:
    """Sums over the rows of a layer normalisation and over all rows, in the dtype of the statistics."""

    def __init__(self, op: Any, like: Any, gamma: Any) -> None:
        self.dtype, self.narrow = gamma.dtype, like.dtype
        begin = op.get_attr("begin_norm_axis")
        rank = _tf.rank(like)
        begin = rank + begin if begin < 0 else _ops.convert_to_tensor(begin)
        self.inner, self.outer = _tf.range(begin, rank), _tf.range(begin)
        self.row = _tf.concat([_tf.shape(like)[:begin], _ops.ones_like(self.inner)], 0)
        self.count = _ops.cast(_tf.size(gamma), self.dtype)

    def wide(self, x: Any) -> Any:
        return _ops.cast(x, self.dtype)

    def thin(self, x: Any) -> Any:
        return _ops.cast(x, self.narrow)

    def spread(self, numbers: Any) -> Any:
        """A number per row, as what broadcasts against the rows."""
        return _tf.reshape(numbers, self.row)

    def total(self, x: Any) -> Any:
        """The sum of each row."""
        return _tf.reduce_sum(x, self.inner)

    def over(self, x: Any) -> Any:
        """The sum of all rows."""
        return _tf.reduce_sum(x, self.outer)


def layer_norm(op: Any, grad_y: Any, grad_mean: Any, grad_inverse: Any) -> list[Any]:
    """By x, gamma and beta; the statistics have gradients of their own."""
    x, gamma, _ = op.inputs
    _, mean, inverse = op.outputs
    parts: list[Any] = [None, None, None]
    if grad_y is not None:
        made = _ops.apply_op(
            "LayerNormGrad",
            y_backprop=grad_y,
            x=x,
            gamma=gamma,
            mean=mean,
            inverse=inverse,
            begin_norm_axis=op.get_attr("begin_norm_axis"),
        )
        parts = list(made)
    if grad_mean is None and grad_inverse is None:
        return parts
    rows, spread = _Rows(op, x, gamma), []
    if grad_mean is not None:
        spread.append(rows.spread(grad_mean / rows.count) * _ops.ones_like(rows.wide(x)))
    if grad_inverse is not None:
        cube = inverse * inverse * inverse
        spread.append((rows.spread(mean) - rows.wide(x)) * rows.spread(grad_inverse * cube / rows.count))
    return [_sum([parts[0], rows.thin(_sum(spread))]), *parts[1:]]


def layer_norm_grad(op: Any, grad_x: Any, grad_gamma: Any, grad_beta: Any) -> list[Any]:
    """By the gradient of y, x, gamma, mean and inverse; u, p and q are the gradients of the three results.

    ``dx = i (h - H/n - c i^2 B/n)``, where h = dy gamma, c = x - mean, i = inverse, H = sum h and B = sum h c over a row.
    """
    dy, x, gamma, mean, inverse = op.inputs
    rows = _Rows(op, x, gamma)
    spread, total, count = rows.spread, rows.total, rows.count
    g, c, i = rows.wide(dy), rows.wide(x) - spread(mean), spread(inverse)
    u = rows.wide(_ops.zeros_like(x) if grad_x is None else grad_x)
    p = _ops.zeros_like(gamma) if grad_gamma is None else grad_gamma
    q = _ops.zeros_like(gamma) if grad_beta is None else grad_beta
    h = g * gamma
    b, u0, v = total(h * c), total(u), total(u * c)
    square = inverse * inverse
    to_h = i * (u - spread(u0 / count) - c * spread(square * v / count))
    to_c = p * g * i - spread(square * inverse * b / count) * u - spread(square * inverse * v / count) * h
    to_inverse = total(u * h) - (u0 * total(h) + 3 * square * v * b) / count + total(p * g * c)
    to_dy = gamma * to_h + p * c * i + q
    return [rows.thin(to_dy), rows.thin(to_c), rows.over(g * to_h), -total(to_c), to_inverse]
