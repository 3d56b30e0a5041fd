"""Losses of predictions against labels of the same shape. All are computed in float32, as TensorFlow 1 does."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock.errors import InvalidArgumentError
from graphdock.typing import TensorLike
from graphdock_std.nn.broadcasting import assert_broadcastable, check_compatible

from graphdock_tf1.losses.collected import add_loss
from graphdock_tf1.losses.weighted import Reduction, compute_weighted_loss, present, single
from graphdock_tf1.signatures import like


def _pair(labels: Any, predictions: Any, what: str = "predictions") -> tuple[Any, Any]:
    """Both in float32; they must be of one shape."""
    predictions, labels = single(predictions, what), single(labels, "labels")
    check_compatible(labels, predictions)
    return labels, predictions


def mean_squared_error(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str | None = _tf.GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> _tf.Tensor:
    """The weighted mean of ``(predictions - labels) ** 2``.

    Args:
      labels, predictions: tensors of one shape.
      weights: one number, or of their rank, with 1 or their size in each dim; what has weight 0 is not counted.
      scope: name scope of what is made; default: the function's name.
      loss_collection: where the result is added; None for nowhere.
      reduction: one of ``tf.losses.Reduction``.

    Returns:
      A float32 scalar, or a tensor of the shape of the labels with ``Reduction.NONE``.

    Raises:
      InvalidArgumentError: labels or predictions are None. ShapeError: shapes that do not fit.
    """
    with _tf.name_scope(scope or "mean_squared_error") as scope:
        labels, predictions = _pair(labels, predictions)
        losses = _tf.squared_difference(predictions, labels)
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


@like(mean_squared_error)
def absolute_difference(labels: Any, predictions: Any, weights: Any, scope: Any, **how: Any) -> _tf.Tensor:
    """The weighted mean of ``|predictions - labels|``; arguments as of :func:`mean_squared_error`."""
    with _tf.name_scope(scope or "absolute_difference") as scope:
        labels, predictions = _pair(labels, predictions)
        return compute_weighted_loss(_tf.abs(predictions - labels), weights, scope, **how)


def huber_loss(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike = 1.0,
    delta: float = 1.0,
    scope: str | None = None,
    loss_collection: str | None = _tf.GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> _tf.Tensor:
    """Half the square of an error up to ``delta``, linear beyond it; other arguments as of :func:`mean_squared_error`."""
    with _tf.name_scope(scope or "huber_loss") as scope:
        labels, predictions = _pair(labels, predictions)
        error = _tf.abs(predictions - labels)
        near = _tf.minimum(error, delta)
        losses = _tf.add(_tf.multiply(0.5, _tf.multiply(near, near)), _tf.multiply(delta, error - near))
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def log_loss(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike = 1.0,
    epsilon: float = 1e-7,
    scope: str | None = None,
    loss_collection: str | None = _tf.GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> _tf.Tensor:
    """Cross-entropy of probabilities: ``-labels * log(predictions + epsilon) - (1 - labels) * log(1 - predictions + epsilon)``.

    Other arguments as of :func:`mean_squared_error`.
    """
    with _tf.name_scope(scope or "log_loss") as scope:
        labels, predictions = _pair(labels, predictions)
        losses = -_tf.multiply(labels, _tf.log(predictions + epsilon))
        losses -= _tf.multiply(1 - labels, _tf.log(1 - predictions + epsilon))
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def hinge_loss(
    labels: TensorLike,
    logits: TensorLike,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str | None = _tf.GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> _tf.Tensor:
    """``max(0, 1 - y * logits)``, with y of -1 and 1 for labels of 0 and 1; arguments as of :func:`mean_squared_error`."""
    with _tf.name_scope(scope or "hinge_loss") as scope:
        labels, logits = _pair(labels, logits, "logits")
        losses = _tf.nn.relu(1.0 - _tf.multiply(2.0 * labels - 1.0, logits))
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def cosine_distance(
    labels: TensorLike,
    predictions: TensorLike,
    axis: int | None = None,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str | None = _tf.GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
    dim: int | None = None,
) -> _tf.Tensor:
    """``1 - sum(labels * predictions)`` along an axis along which both have norm 1.

    Args:
      axis: the axis, which stays with size 1; ``dim`` is its older name.
      labels, predictions, weights, scope, loss_collection, reduction: as of :func:`mean_squared_error`.

    Raises:
      InvalidArgumentError: no axis.
    """
    if (axis is None) == (dim is None):
        raise InvalidArgumentError("cosine_distance needs one axis", got="none" if axis is None else "axis and dim")
    with _tf.name_scope(scope or "cosine_distance_loss") as scope:
        labels, predictions = _pair(labels, predictions)
        losses = 1 - _tf.reduce_sum(
            _tf.multiply(predictions, labels), axis=[dim if axis is None else axis], keepdims=True
        )
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def mean_pairwise_squared_error(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str | None = _tf.GraphKeys.LOSSES,
) -> _tf.Tensor:
    """The mean squared difference between the errors of each two elements of an example, summed over the batch.

    It asks that differences are right rather than values. Weights are one number, one per example (``[batch, 1]``), or one
    per element; other arguments as of :func:`mean_squared_error`.
    """
    with _tf.name_scope(scope or "mean_pairwise_squared_error"):
        labels, predictions = _pair(labels, predictions)
        weights = single(weights, "weights")
        check = assert_broadcastable(weights, labels)
        with _tf.control_dependencies([] if check is None else [check]):
            errors = predictions - labels
            over = _tf.range(1, _tf.rank(errors)) if errors.shape.rank is None else list(range(1, errors.shape.rank))
            count = _tf.reduce_sum(present(_tf.shape(errors), weights), over, keepdims=True)
            squares = _tf.reduce_sum(_tf.square(errors), over, keepdims=True)
            square = _tf.square(_tf.reduce_sum(errors, over, keepdims=True))
            apart = 2.0 * _tf.div_no_nan(squares, _tf.maximum(count - 1, 0), name="value")
            common = 2.0 * _tf.div_no_nan(square, _tf.maximum(count * (count - 1), 0), name="value")
            loss = _tf.reduce_sum((apart - common) * weights)
            made = _tf.where(_tf.reduce_sum(count) > 0, loss, _tf.zeros_like(loss), name="value")
        add_loss(made, loss_collection)
        return made
