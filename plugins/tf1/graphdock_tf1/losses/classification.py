"""Losses of classes: cross-entropies of logits."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError
from graphdock.typing import TensorLike
from graphdock_std.nn.broadcasting import check_compatible, squeeze_labels

from graphdock_tf1.losses.weighted import Reduction, compute_weighted_loss


def _logits_and_labels(logits: Any, labels: Any) -> tuple[Any, Any]:
    """Both tensors of one shape and dtype."""
    if logits is None or labels is None:
        raise InvalidArgumentError("labels and logits must not be None")
    logits = _ops.convert_to_tensor(logits)
    labels = _tf.cast(_ops.convert_to_tensor(labels), logits.dtype)
    check_compatible(labels, logits)
    return logits, labels


def softmax_cross_entropy(
    onehot_labels: TensorLike,
    logits: TensorLike,
    weights: TensorLike = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: str | None = _tf.GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> _tf.Tensor:
    """The cross-entropy between the softmax of ``logits`` and labels that are distributions.

    Args:
      onehot_labels: ``[batch, classes]``, of the shape of ``logits``; no gradient flows to them.
      logits: floating tensor.
      weights: one number, or ``[batch]``.
      label_smoothing: how much of each label is spread evenly over the classes.
      scope, loss_collection, reduction: as of ``tf.losses.mean_squared_error``.

    Returns:
      A scalar of the dtype of ``logits``, or ``[batch]`` with ``Reduction.NONE``.

    Raises:
      InvalidArgumentError: labels or logits are None. ShapeError: shapes that do not fit.
    """
    with _tf.name_scope(scope or "softmax_cross_entropy_loss") as scope:
        logits, labels = _logits_and_labels(logits, onehot_labels)
        if label_smoothing > 0:
            classes = _tf.cast(_tf.shape(labels)[-1], logits.dtype)
            labels = labels * (1.0 - label_smoothing) + label_smoothing / classes
        labels = _tf.stop_gradient(labels, name="labels_stop_gradient")
        losses = _tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits, name="xentropy")
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def sparse_softmax_cross_entropy(
    labels: TensorLike,
    logits: TensorLike,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str | None = _tf.GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> _tf.Tensor:
    """The cross-entropy between the softmax of ``logits`` and one class per row.

    Args:
      labels: int32 or int64, ``[batch]`` or ``[batch, 1]``, below the number of classes.
      logits: floating tensor ``[batch, classes]``.
      weights: one number, ``[batch]`` or ``[batch, 1]``.
      scope, loss_collection, reduction: as of ``tf.losses.mean_squared_error``.

    Raises:
      InvalidArgumentError: labels or logits are None; a label that is no class, in the step. ShapeError: shapes that do not fit.
    """
    if labels is None or logits is None:
        raise InvalidArgumentError("labels and logits must not be None")
    with _tf.name_scope(scope or "sparse_softmax_cross_entropy_loss") as scope:
        labels, logits = squeeze_labels(labels, logits, 1)
        if not isinstance(weights, int | float):
            weights = squeeze_labels(labels, weights)[1]
        losses = _tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits, name="xentropy")
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def sigmoid_cross_entropy(
    multi_class_labels: TensorLike,
    logits: TensorLike,
    weights: TensorLike = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: str | None = _tf.GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> _tf.Tensor:
    """The cross-entropy between the sigmoid of ``logits`` and labels between 0 and 1, element by element.

    Args:
      multi_class_labels: of the shape of ``logits``.
      logits: floating tensor.
      label_smoothing: how far labels are moved towards 1/2.
      weights, scope, loss_collection, reduction: as of ``tf.losses.mean_squared_error``.
    """
    with _tf.name_scope(scope or "sigmoid_cross_entropy_loss") as scope:
        logits, labels = _logits_and_labels(logits, multi_class_labels)
        if label_smoothing > 0:
            labels = labels * (1 - label_smoothing) + 0.5 * label_smoothing
        losses = _tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits, name="xentropy")
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)
