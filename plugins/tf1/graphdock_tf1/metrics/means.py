"""Means over many steps: of values, of errors, of classes."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import dtypes
from graphdock import ops as _ops
from graphdock.typing import TensorLike
from graphdock_std.nn.broadcasting import broadcast_weights, check_compatible, squeeze_labels

from graphdock_tf1.metrics.support import Collections, Metric, aligned, collected, flat, metric_variable, ratio, single
from graphdock_tf1.signatures import like


def mean(
    values: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The weighted mean of all values.

    Args:
      values: tensor of any shape, counted in float32.
      weights: None, one number, or of the rank of ``values`` with 1 or its size in each dim; 0 leaves a value out.
      metrics_collections, updates_collections: names of collections that the value, and the update, are added to.
      name: variable scope; default ``mean``. The local variables are ``mean/total`` and ``mean/count``.

    Returns:
      ``(value, update_op)``: the mean of what was counted, 0 for nothing; what counts ``values`` and gives the mean with them.

    Raises:
      ShapeError: the weights do not fit.
    """
    with _tf.variable_scope(name, "mean"):
        values = single(values)
        total, count = metric_variable([], dtypes.float32, "total"), metric_variable([], dtypes.float32, "count")
        if weights is None:
            counted = _tf.cast(_tf.size(values), dtypes.float32)
        else:
            values, _, weights = aligned(values, None, weights)
            weights = broadcast_weights(weights, values)
            values = values * weights
            counted = _tf.reduce_sum(weights)
        sums = total.assign_add(_tf.reduce_sum(values)), count.assign_add(counted)
        value, update = ratio(total, count, "value"), ratio(*sums, "update_op")
        return collected(value, update, metrics_collections, updates_collections)


@like(mean)
def mean_tensor(values: Any, weights: Any, name: Any, **keys: Any) -> Metric:
    """The mean of each element of ``values``, whose static shape must be known; as :func:`mean`, but for the shape."""
    with _tf.variable_scope(name, "mean"):
        values = single(values)
        shape = values.shape.as_list()
        total, count = (metric_variable(shape, dtypes.float32, n) for n in ("total_tensor", "count_tensor"))
        counted = _tf.ones_like(values)
        if weights is not None:
            values, _, weights = aligned(values, None, weights)
            counted = broadcast_weights(weights, values)
            values = values * counted
        sums = total.assign_add(values), count.assign_add(counted)
        value, update = ratio(total, count, "value"), ratio(*sums, "update_op")
        return collected(value, update, **keys)


def accuracy(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """Return how many predictions are the label: the mean of ``labels == predictions``; other arguments as of ``tf.metrics.mean``.

    Args:
      labels, predictions: tensors of one shape, but for a last dim of 1.
    """
    predictions, labels, weights = aligned(predictions, labels, weights)
    if labels.dtype is not predictions.dtype:
        predictions = _tf.cast(predictions, labels.dtype)
    right = _tf.cast(_tf.equal(predictions, labels), dtypes.float32)
    return mean(right, weights, metrics_collections, updates_collections, name or "accuracy")


@like(accuracy)
def mean_absolute_error(labels: Any, predictions: Any, weights: Any, name: Any, **keys: Any) -> Metric:
    """The mean of ``|predictions - labels|``; arguments as of ``tf.metrics.accuracy``."""
    predictions, labels, weights = aligned(predictions, labels, weights)
    errors = _tf.abs(predictions - labels)
    return mean(errors, weights, name=name or "mean_absolute_error", **keys)


@like(accuracy)
def mean_squared_error(labels: Any, predictions: Any, weights: Any, name: Any, **keys: Any) -> Metric:
    """The mean of ``(predictions - labels) ** 2``; arguments as of ``tf.metrics.accuracy``."""
    predictions, labels, weights = aligned(predictions, labels, weights)
    errors = _tf.squared_difference(labels, predictions)
    return mean(errors, weights, name=name or "mean_squared_error", **keys)


@like(accuracy)
def root_mean_squared_error(labels: Any, predictions: Any, weights: Any, name: Any, **keys: Any) -> Metric:
    """The root of ``tf.metrics.mean_squared_error``."""
    made = mean_squared_error(labels, predictions, weights, name=name or "root_mean_squared_error")
    value, update = (_tf.sqrt(m) for m in made)
    return collected(value, update, **keys)


def mean_relative_error(
    labels: TensorLike,
    predictions: TensorLike,
    normalizer: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The mean of ``|labels - predictions| / normalizer``, 0 where that is 0; arguments as of ``tf.metrics.accuracy``."""
    predictions, labels, weights = aligned(predictions, labels, weights)
    predictions, normalizer = squeeze_labels(predictions, normalizer)
    check_compatible(normalizer, predictions)
    errors = _tf.div_no_nan(_tf.abs(labels - predictions), normalizer)
    return mean(errors, weights, metrics_collections, updates_collections, name or "mean_relative_error")


def mean_cosine_distance(
    labels: TensorLike,
    predictions: TensorLike,
    dim: int,
    weights: TensorLike | None = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """1 less the mean of ``sum(labels * predictions)`` along ``dim``, along which both have norm 1.

    Other arguments as of ``tf.metrics.accuracy``.
    """
    predictions, labels, weights = aligned(predictions, labels, weights)
    products = _tf.reduce_sum(predictions * labels, axis=[dim], keepdims=True)
    made = mean(products, weights, name=name or "mean_cosine_distance")
    value, update = (_tf.subtract(1.0, m) for m in made)
    return collected(value, update, metrics_collections, updates_collections)


def percentage_below(
    values: TensorLike,
    threshold: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """Return what part of the values is below ``threshold``, between 0 and 1; other arguments as of ``tf.metrics.mean``."""
    below = _tf.cast(_tf.less(values, threshold), dtypes.float32)
    return mean(below, weights, metrics_collections, updates_collections, name or "percentage_below_threshold")


def mean_per_class_accuracy(
    labels: TensorLike,
    predictions: TensorLike,
    num_classes: int,
    weights: TensorLike | None = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The mean over classes of the accuracy of each; the update gives the accuracies.

    Args:
      labels, predictions: classes, below ``num_classes``; a label beyond is an InvalidArgumentError of the step.
      weights, metrics_collections, updates_collections, name: as of ``tf.metrics.mean``.
    """
    with _tf.variable_scope(name, "mean_accuracy"):
        labels, predictions = _tf.cast(flat(labels), dtypes.int64), flat(predictions)
        check_compatible(labels, predictions)
        total = metric_variable([num_classes], dtypes.float32, "total")
        count = metric_variable([num_classes], dtypes.float32, "count")
        right = _tf.cast(_tf.equal(_tf.cast(predictions, labels.dtype), labels), dtypes.float32)
        ones = _tf.ones_like(right)
        if weights is not None:
            given = single(weights)
            given = given if given.shape.rank == 0 else flat(given)
            right, ones = right * given, ones * given
        sums = (
            count.assign_add(_tf.unsorted_segment_sum(right, labels, num_classes)),
            total.assign_add(_tf.unsorted_segment_sum(ones, labels, num_classes)),
        )
        value, update = _tf.reduce_mean(ratio(count, total, None), name="mean_accuracy"), ratio(*sums, "update_op")
        return collected(value, update, metrics_collections, updates_collections)


@like(mean_per_class_accuracy)
def mean_iou(labels: Any, predictions: Any, num_classes: Any, weights: Any, name: Any, **keys: Any) -> Metric:
    """The mean over classes of intersection by union: of what is of the class, and what was taken for it.

    Classes that do not occur are left out. The update gives the matrix of counts, ``total_confusion_matrix``.

    Args:
      labels, predictions: classes, below ``num_classes``.
      weights, metrics_collections, updates_collections, name: as of ``tf.metrics.mean``.
    """
    with _tf.variable_scope(name, "mean_iou"):
        labels, predictions = _ops.convert_to_tensor(labels), _ops.convert_to_tensor(predictions)
        check_compatible(labels, predictions)
        total = metric_variable([num_classes, num_classes], dtypes.float64, "total_confusion_matrix")
        given: Any = None if weights is None else _ops.convert_to_tensor(weights)
        if given is not None and given.shape.rank != 0:
            given = flat(given)
        wide = (_tf.cast(flat(v), dtypes.int64) for v in (labels, predictions))
        update = total.assign_add(_tf.confusion_matrix(*wide, num_classes, weights=given, dtype=dtypes.float64))
        rows, columns, both = (
            single(v) for v in (_tf.reduce_sum(total, 0), _tf.reduce_sum(total, 1), _tf.diag_part(total))
        )
        union = rows + columns - both
        present = _tf.reduce_sum(_tf.cast(_tf.not_equal(union, 0), dtypes.float32))
        each = both / _tf.where(_tf.greater(union, 0), union, _tf.ones_like(union))
        summed = _tf.reduce_sum(each, name="mean_iou")
        value = _tf.where(_tf.greater(present, 0), summed / present, _tf.zeros_like(present))
        return collected(value, update, **keys)
