"""Losses of contrib and slim: those of ``tf.losses``, with predictions before labels."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock.typing import TensorLike

from graphdock_tf1.signatures import like


def absolute_difference(
    predictions: TensorLike, labels: TensorLike | None = None, weights: TensorLike = 1.0, scope: str | None = None
) -> _tf.Tensor:
    """``tf.losses.absolute_difference``."""
    return _tf.losses.absolute_difference(labels, predictions, weights, scope)


@like(absolute_difference)
def mean_squared_error(**given: Any) -> _tf.Tensor:
    """``tf.losses.mean_squared_error``."""
    return _tf.losses.mean_squared_error(**given)


@like(absolute_difference)
def mean_pairwise_squared_error(**given: Any) -> _tf.Tensor:
    """``tf.losses.mean_pairwise_squared_error``."""
    return _tf.losses.mean_pairwise_squared_error(**given)


def log_loss(
    predictions: TensorLike,
    labels: TensorLike | None = None,
    weights: TensorLike = 1.0,
    epsilon: float = 1e-7,
    scope: str | None = None,
) -> _tf.Tensor:
    """``tf.losses.log_loss``."""
    return _tf.losses.log_loss(labels, predictions, weights, epsilon, scope)


def hinge_loss(logits: TensorLike, labels: TensorLike | None = None, scope: str | None = None) -> _tf.Tensor:
    """The hinge loss of each element, which is not collected."""
    return _tf.losses.hinge_loss(labels, logits, 1.0, scope, None, _tf.losses.Reduction.NONE)


def cosine_distance(
    predictions: TensorLike,
    labels: TensorLike | None = None,
    axis: int | None = None,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    dim: int | None = None,
) -> _tf.Tensor:
    """``tf.losses.cosine_distance``."""
    return _tf.losses.cosine_distance(labels, predictions, axis, weights, scope, dim=dim)


def softmax_cross_entropy(
    logits: TensorLike,
    onehot_labels: TensorLike,
    weights: TensorLike = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
) -> _tf.Tensor:
    """``tf.losses.softmax_cross_entropy``."""
    return _tf.losses.softmax_cross_entropy(onehot_labels, logits, weights, label_smoothing, scope)


def sigmoid_cross_entropy(
    logits: TensorLike,
    multi_class_labels: TensorLike,
    weights: TensorLike = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
) -> _tf.Tensor:
    """``tf.losses.sigmoid_cross_entropy``."""
    return _tf.losses.sigmoid_cross_entropy(multi_class_labels, logits, weights, label_smoothing, scope)


def sparse_softmax_cross_entropy(
    logits: TensorLike, labels: TensorLike, weights: TensorLike = 1.0, scope: str | None = None
) -> _tf.Tensor:
    """``tf.losses.sparse_softmax_cross_entropy``."""
    return _tf.losses.sparse_softmax_cross_entropy(labels, logits, weights, scope)


def compute_weighted_loss(losses: Any, weights: TensorLike = 1.0, scope: str | None = None) -> _tf.Tensor:
    """``tf.losses.compute_weighted_loss``."""
    return _tf.losses.compute_weighted_loss(losses, weights, scope)
