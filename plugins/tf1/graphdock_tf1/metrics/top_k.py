"""Metrics of the k best guesses: precision and recall among them, and average precision."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import dtypes
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError, ShapeError
from graphdock.typing import TensorLike
from graphdock_std.nn.broadcasting import assert_broadcastable, broadcast_weights

from graphdock_tf1.metrics.support import Collections, Metric, collected, metric_variable
from graphdock_tf1.signatures import like


def _named(kind: str, k: int | None, class_id: int | None = None) -> str:
    name = f"{kind}_at_{'k' if k is None else k}"
    return name if class_id is None else f"{name}_class{class_id}"


def _with_last_dim(labels: Any, predictions: Any) -> Any:
    """Labels of the rank of the predictions: where there is one per row, a list of one.

    Raises:
      ShapeError: another rank.
    """
    if isinstance(labels, _tf.SparseTensorValue):
        labels = _tf.SparseTensor(*labels)
    if isinstance(labels, _tf.SparseTensor):
        rank, shape = labels.dense_shape.shape[0], labels.dense_shape
        if predictions.shape.rank == int(rank) + 1:
            return _tf.sparse_reshape(labels, _tf.concat([shape, _ops.constant([1], dtypes.int64)], 0))
        return labels
    labels = _ops.convert_to_tensor(labels)
    a, b = labels.shape.rank, predictions.shape.rank
    if a is None or b is None:
        raise ShapeError("the ranks of labels and predictions must be known", expected="ranks", got=f"{a} and {b}")
    if b == a + 1:
        return _tf.expand_dims(labels, -1)
    if a != b:
        raise ShapeError("labels of another rank", expected=f"rank {b} or {b - 1}", got=str(labels.shape))
    return labels


def _only(ids: Any, wanted: int | None) -> Any:
    """The ids that are the wanted one, in a SparseTensor; all of them for None."""
    if wanted is None:
        return ids
    if isinstance(ids, _tf.SparseTensor):
        return _tf.sparse_retain(ids, _tf.equal(ids.values, _tf.cast(wanted, ids.values.dtype)))
    shape = _tf.cast(_tf.shape(ids), dtypes.int64)
    filled = _tf.fill(_tf.concat([shape[:-1], _ops.constant([1], dtypes.int64)], 0), _tf.cast(wanted, ids.dtype))
    found = _tf.sets.set_intersection(filled, ids)
    return _tf.SparseTensor(found.indices, found.values, shape)


def _sized(found: Any, weights: Any) -> Any:
    """Return how many are in each row's set, weighted."""
    sizes = _tf.cast(_tf.sets.set_size(found), dtypes.float64)
    if weights is None:
        return sizes
    weights = _tf.cast(_ops.convert_to_tensor(weights), dtypes.float64)
    check = assert_broadcastable(weights, sizes)
    with _tf.control_dependencies([] if check is None else [check]):
        return sizes * weights


def _streamed(kind: str, k: int | None, class_id: int | None, found: Any, weights: Any) -> Metric:
    """The sum so far of the sizes of sets, in a local variable that is named as its scope."""
    with _tf.name_scope(_named(kind, k, class_id)) as scope:
        total = _tf.reduce_sum(_sized(found(), weights))
        kept = metric_variable([], dtypes.float64, scope)
        return kept, kept.assign_add(total, name="update")  # type: ignore[return-value]


def _of_top(
    kind: str, labels: Any, predictions_idx: Any, k: Any, class_id: Any, weights: Any, name: Any, **keys: Any
) -> Metric:
    with _tf.name_scope(name or _named(kind, k, class_id)) as scope:
        predictions_idx = _tf.cast(_ops.convert_to_tensor(predictions_idx), dtypes.int64)
        labels = _wide(_with_last_dim(labels, predictions_idx))
        picked, wanted = _only(predictions_idx, class_id), _only(labels, class_id)
        right = _streamed("true_positive", k, class_id, lambda: _tf.sets.set_intersection(picked, wanted), weights)
        missing, fewer = ("false_positive", True) if kind == "precision" else ("false_negative", False)
        wrong = _streamed(missing, k, class_id, lambda: _tf.sets.set_difference(picked, wanted, aminusb=fewer), weights)
        value = _tf.divide(right[0], _tf.add(right[0], wrong[0]), name=scope)
        update = _tf.divide(right[1], _tf.add(right[1], wrong[1]), name="update")
        return collected(value, update, **keys)


def _of_best(kind: str, predictions: Any, k: int, class_id: int | None, name: Any, **given: Any) -> Metric:
    with _tf.name_scope(name or _named(kind, k, class_id)) as scope:
        best = _tf.nn.top_k(predictions, k)[1]
        return _of_top(kind, predictions_idx=best, k=k, class_id=class_id, name=scope, **given)


def _wide(labels: Any) -> Any:
    if isinstance(labels, _tf.SparseTensor):
        return _tf.SparseTensor(labels.indices, _tf.cast(labels.values, dtypes.int64), labels.dense_shape)
    return _tf.cast(labels, dtypes.int64)


def precision_at_top_k(
    labels: Any,
    predictions_idx: TensorLike,
    k: int | None = None,
    class_id: int | None = None,
    weights: TensorLike | None = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """Return what part of the guesses is among the labels.

    Args:
      labels: classes, ``[..., n]`` or ``[...]`` for one per row, or a SparseTensor with a row of classes.
      predictions_idx: guessed classes, ``[..., k]``.
      k: for the names of variables.
      class_id: count this class only.
      weights: None, one number, or ``[...]``.
      metrics_collections, updates_collections, name: as of ``tf.metrics.mean``.

    Returns:
      ``(value, update_op)``, float64; NaN where nothing was counted.
    """
    return _of_top("precision", **locals())


@like(precision_at_top_k)
def recall_at_top_k(**given: Any) -> Metric:
    """Return what part of the labels is among the guesses; as ``tf.metrics.precision_at_top_k``."""
    return _of_top("recall", **given)


def precision_at_k(
    labels: Any,
    predictions: TensorLike,
    k: int,
    class_id: int | None = None,
    weights: TensorLike | None = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """``tf.metrics.precision_at_top_k`` of the k classes with the largest ``predictions``, ``[..., classes]``."""
    return _of_best("precision", **locals())


@like(precision_at_k)
def recall_at_k(**given: Any) -> Metric:
    """``tf.metrics.recall_at_top_k`` of the k classes with the largest ``predictions``, ``[..., classes]``."""
    return _of_best("recall", **given)


@like(precision_at_k)
def sparse_precision_at_k(**given: Any) -> Metric:
    """The older name of ``tf.metrics.precision_at_k``."""
    return precision_at_k(**given)


def average_precision_at_k(
    labels: Any,
    predictions: TensorLike,
    k: int,
    weights: TensorLike | None = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The mean over rows of average precision: the mean of the precisions at each of the k best guesses that is right.

    Args:
      labels: int64 classes, ``[..., n]`` or ``[...]``; one that is no class does not count. Or a SparseTensor.
      predictions: ``[..., classes]``.
      weights: None, one number, or ``[...]``.
      metrics_collections, updates_collections, name: as of ``tf.metrics.mean``.

    Raises:
      InvalidArgumentError: ``k`` is below 1.
    """
    if k < 1:
        raise InvalidArgumentError("k is a number of guesses", expected="1 or more", got=str(k))
    with _tf.name_scope(name or _named("average_precision", k)) as scope:
        predictions = _ops.convert_to_tensor(predictions)
        best = _tf.cast(_tf.nn.top_k(predictions, k)[1], dtypes.int64)
        given = _with_last_dim(labels, best)
        if isinstance(given, _tf.SparseTensor):
            given = _wide(given)
            counted = _tf.sets.set_size(given)
            given = _tf.sparse_tensor_to_dense(given, default_value=-1)
        else:
            given, counted = _tf.cast(given, dtypes.int64), None
        classes = _tf.cast(_tf.shape(predictions)[-1], dtypes.int64)
        given = _tf.where(_tf.less(given, classes), given, -_tf.ones_like(given))
        if counted is None:
            counted = _tf.reduce_sum(_tf.cast(_tf.greater_equal(given, 0), dtypes.int32), -1)
        average = _average(given, best, k) / _tf.cast(_tf.minimum(counted, k), dtypes.float64)
        shares = None if weights is None else broadcast_weights(weights, average)
        if shares is not None:
            average = average * shares
        with _tf.name_scope("max_1") as inner:  # the name that it has in TensorFlow, where an operation took the other
            most = metric_variable([], dtypes.float64, inner)
            rows = _tf.cast(_tf.size(average), dtypes.float64) if shares is None else _tf.reduce_sum(shares)
            most_update = most.assign_add(rows, name="update")
        with _tf.name_scope("total") as inner:
            total = metric_variable([], dtypes.float64, inner)
            total_update = total.assign_add(_tf.reduce_sum(average), name="update")
        value = _tf.div_no_nan(total, most, name="mean")
        update = _tf.div_no_nan(total_update, most_update, name=scope)
        return collected(value, update, metrics_collections, updates_collections)


def _average(labels: Any, best: Any, k: int) -> Any:
    """The sum of precisions at the guesses of each row that are right, float64; ``labels`` below 0 are none."""
    hits = _tf.reduce_any(_tf.equal(_tf.expand_dims(best, -1), _tf.expand_dims(labels, -2)), -1)
    right = _tf.cast(hits, dtypes.float64)
    places = _tf.cast(_tf.range(1, k + 1), dtypes.float64)
    return _tf.reduce_sum(right * _tf.cumsum(right, axis=-1) / places, -1)


@like(average_precision_at_k)
def sparse_average_precision_at_k(**given: Any) -> Metric:
    """The older name of ``tf.metrics.average_precision_at_k``."""
    return average_precision_at_k(**given)
