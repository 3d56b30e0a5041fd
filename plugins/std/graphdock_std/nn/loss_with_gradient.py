"""Cross-entropies together with the gradient that follows them, in other ops, and their own gradients."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import ops as _ops

from graphdock_std.nn.gradients import cross_entropy_features, cross_entropy_labels

_DENSE, _SPARSE = "SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits"


def softmax_loss(features: Any, labels: Any) -> Any:
    """The loss of each row."""
    return _ops.apply_op(_DENSE, features=features, labels=labels).loss


def softmax_loss_gradient(features: Any, labels: Any, slope: Any) -> Any:
    """The gradient of features for what arrives at the loss of each row."""
    return _tf.expand_dims(slope, -1) * _ops.apply_op(_DENSE, features=features, labels=labels).backprop


def sparse_softmax_loss(features: Any, labels: Any) -> Any:
    """The same, of one class index per row."""
    return _ops.apply_op(_SPARSE, features=features, labels=labels).loss


def sparse_softmax_loss_gradient(features: Any, labels: Any, slope: Any) -> Any:
    """The same, of one class index per row."""
    return _tf.expand_dims(slope, -1) * _ops.apply_op(_SPARSE, features=features, labels=labels).backprop


def cross_entropy_with_gradient_gradient(op: Any, grad_loss: Any, grad_gradient: Any) -> list[Any]:
    """By features, labels and slope."""
    plain, reaches, to_slope = _apart(_DENSE, op, grad_gradient)
    return [
        cross_entropy_features(plain, grad_loss, reaches),
        cross_entropy_labels(plain, grad_loss, reaches),
        to_slope,
    ]


def sparse_cross_entropy_with_gradient_gradient(op: Any, grad_loss: Any, grad_gradient: Any) -> list[Any]:
    """By features and slope."""
    plain, reaches, to_slope = _apart(_SPARSE, op, grad_gradient)
    return [cross_entropy_features(plain, grad_loss, reaches), to_slope]


def _apart(name: str, op: Any, grad_gradient: Any) -> tuple[Any, Any, Any]:
    """The op without the slope, what reaches its derivative, and the gradient of the slope."""
    features, labels, slope = op.inputs
    plain = _ops.apply_op(name, features=features, labels=labels).loss.op
    if grad_gradient is None:
        return plain, None, None
    return plain, grad_gradient * _tf.expand_dims(slope, -1), _tf.reduce_sum(grad_gradient * plain.outputs[1], -1)
