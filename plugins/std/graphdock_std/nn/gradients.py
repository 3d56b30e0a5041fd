"""Gradients that a formula can't say: of ops with several outputs, and of sums over all dims but one."""

from __future__ import annotations

from typing import Any

import graphdock as tf


def l2_loss_sum(op: Any, grad: Any) -> list[Any]:
    """By each tensor as of one."""
    return [grad * t for t in op.inputs]


def cross_entropy_features(op: Any, grad_loss: Any, grad_backprop: Any) -> Any:
    """Of both cross-entropies, by features: backprop is the derivative of loss; that of backprop is softmax's own."""
    parts = []
    if grad_loss is not None:
        parts.append(tf.expand_dims(grad_loss, -1) * op.outputs[1])
    if grad_backprop is not None:
        softmax = tf.nn.softmax(op.inputs[0])
        parts.append((grad_backprop - tf.reduce_sum(grad_backprop * softmax, axis=-1, keepdims=True)) * softmax)
    return parts[0] if len(parts) == 1 else tf.add_n(parts) if parts else None


def cross_entropy_labels(op: Any, grad_loss: Any, grad_backprop: Any) -> Any:
    """Of the dense cross-entropy, by labels."""
    parts = []
    if grad_loss is not None:
        parts.append(-tf.nn.log_softmax(op.inputs[0]) * tf.expand_dims(grad_loss, -1))
    if grad_backprop is not None:
        parts.append(-grad_backprop)
    return parts[0] if len(parts) == 1 else tf.add_n(parts) if parts else None


def bias_add_grad(op: Any, grad: Any) -> Any:
    """Every element of a channel gets the gradient of the channel's sum."""
    backprop = op.inputs[0]
    if op.get_attr("data_format") == "NCHW":
        grad = tf.reshape(grad, tf.concat([[1, -1], tf.fill([tf.rank(backprop) - 2], 1)], 0))
    return tf.broadcast_to(grad, tf.shape(backprop))
