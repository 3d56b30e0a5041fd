"""A linear layer and its cross-entropy in other ops: for devices without a kernel of both, and for gradients of the gradient."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import ops as _ops

from graphdock_std.attention.functions import total as both
from graphdock_std.grad_support import apart


def linear_logits(x: Any, w: Any, bias: Any, transpose_w: bool, dtype: Any) -> Any:
    """[rows, classes] of a dtype, or of that of ``x`` where that is wider."""
    product = _tf.matmul(x, w, transpose_b=transpose_w)
    made = product if bias is None else _tf.nn.bias_add(product, bias)
    return _ops.cast(made, _tf.float64 if x.dtype is _tf.float64 else dtype)


def linear_slope(loss_backprop: Any, x: Any, w: Any, labels: Any, log_sum: Any, bias: Any, transpose_w: bool) -> Any:
    """The gradient of the loss by the logits, of the dtype of ``x``."""
    logits = linear_logits(x, w, bias, transpose_w, log_sum.dtype)
    hit = _tf.one_hot(labels, _tf.shape(logits)[1], dtype=logits.dtype)
    total, factor = (_tf.expand_dims(_ops.cast(t, logits.dtype), 1) for t in (log_sum, loss_backprop))
    return _ops.cast((_tf.exp(logits - total) - hit) * factor, x.dtype)


def linear_cross_entropy_gradient(op: Any, grad_loss: Any, grad_log_sum: Any) -> list[Any]:
    """By x, w and bias; of the logarithms through other ops."""
    x, w, labels, *rest = op.inputs
    turned = op.get_attr("transpose_w")
    parts: list[Any] = [None] * (2 + len(rest))
    if grad_loss is not None:
        given = {"loss_backprop": grad_loss, "x": x, "w": w, "labels": labels, "log_sum": op.outputs[1]}
        bias = rest[0] if rest else None
        found = _ops.apply_op("LinearSparseSoftmaxCrossEntropyGrad", **given, bias=bias, transpose_w=turned)
        parts = list(found)[: len(parts)]
    if grad_log_sum is not None:
        sources = apart(x, w, *rest)
        logits = linear_logits(*sources[:2], sources[2] if rest else None, turned, grad_log_sum.dtype)
        log_sum = _ops.cast(_tf.reduce_logsumexp(logits, axis=-1), grad_log_sum.dtype)
        more = _tf.gradients(log_sum, sources, grad_log_sum)
        parts = [both(a, b) for a, b in zip(parts, more, strict=True)]
    return parts


def linear_cross_entropy_grad_gradient(op: Any, *grads: Any) -> list[Any]:
    """By all that is no label: the gradient, built of other ops, is differentiated as it is."""
    labels, turned = op.inputs[3], op.get_attr("transpose_w")
    sources = apart(*op.inputs[:3], *op.inputs[4:])
    arriving, x, w, log_sum, *rest = sources
    slope = linear_slope(arriving, x, w, labels, log_sum, rest[0] if rest else None, turned)
    made = (
        _tf.matmul(slope, w, False, not turned),
        _tf.matmul(slope, x, True) if turned else _tf.matmul(x, slope, True),
        _tf.reduce_sum(slope, 0),
    )
    pairs = [(y, g) for y, g in zip(made, grads, strict=True) if g is not None]
    return list(_tf.gradients([y for y, _ in pairs], sources, [g for _, g in pairs]))
