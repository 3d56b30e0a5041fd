"""Right and wrong answers to yes or no: how many there were, precision and recall."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import dtypes
from graphdock import ops as _ops
from graphdock.errors import ShapeError
from graphdock.typing import TensorLike

from graphdock_tf1.metrics.support import Collections, Metric, aligned, collected, metric_variable, single
from graphdock_tf1.signatures import like


def _yes_or_no(labels: Any, predictions: Any, weights: Any) -> tuple[Any, Any, Any]:
    labels, predictions = (_tf.cast(_ops.convert_to_tensor(v), dtypes.bool_) for v in (labels, predictions))
    return aligned(predictions, labels, weights)


def _count(
    kind: str, label: bool, prediction: bool, labels: Any, predictions: Any, weights: Any, name: Any, **keys: Any
) -> Metric:
    """Return how often a label came with a prediction."""
    with _tf.variable_scope(name, kind):
        predictions, labels, weights = _yes_or_no(labels, predictions, weights)
        found = _tf.logical_and(
            labels if label else _tf.logical_not(labels), predictions if prediction else _tf.logical_not(predictions)
        )
        count = metric_variable([], dtypes.float32, "count")
        found = _tf.cast(found, dtypes.float32)
        if weights is not None:
            ranks = weights.shape.rank, found.shape.rank
            if None not in ranks and ranks[0] not in (0, ranks[1]):
                raise ShapeError("weights of another rank", expected=f"rank 0 or {ranks[1]}", got=str(weights.shape))
            found = found * single(weights)
        value = _tf.identity(count)
        return collected(value, count.assign_add(_tf.reduce_sum(found)), **keys)


def true_positives(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """Return how often yes was predicted where the label is yes, in the local variable ``true_positives/count``.

    Args:
      labels, predictions: tensors of one shape that are cast to bool.
      weights, metrics_collections, updates_collections, name: as of ``tf.metrics.mean``.
    """
    return _count("true_positives", True, True, **locals())


@like(true_positives)
def true_negatives(**given: Any) -> Metric:
    """Return how often no was predicted where the label is no; as ``tf.metrics.true_positives``."""
    return _count("true_negatives", False, False, **given)


@like(true_positives)
def false_positives(**given: Any) -> Metric:
    """Return how often yes was predicted where the label is no; as ``tf.metrics.true_positives``."""
    return _count("false_positives", False, True, **given)


@like(true_positives)
def false_negatives(**given: Any) -> Metric:
    """Return how often no was predicted where the label is yes; as ``tf.metrics.true_positives``."""
    return _count("false_negatives", True, False, **given)


@like(true_positives)
def precision(labels: Any, predictions: Any, weights: Any, name: Any, **keys: Any) -> Metric:
    """Return what part of the predicted yes was right; 0 where there was none. As ``tf.metrics.true_positives``."""
    with _tf.variable_scope(name, "precision"):
        predictions, labels, weights = _yes_or_no(labels, predictions, weights)
        right = true_positives(labels, predictions, weights)
        wrong = false_positives(labels, predictions, weights)
        return _part(right, wrong, **keys)


@like(true_positives)
def recall(labels: Any, predictions: Any, weights: Any, name: Any, **keys: Any) -> Metric:
    """Return what part of the labels that are yes was predicted; 0 where there was none. As ``tf.metrics.true_positives``."""
    with _tf.variable_scope(name, "recall"):
        predictions, labels, weights = _yes_or_no(labels, predictions, weights)
        right = true_positives(labels, predictions, weights)
        missed = false_negatives(labels, predictions, weights)
        return _part(right, missed, **keys)


def _part(some: Metric, others: Metric, **keys: Any) -> Metric:
    value, update = (
        _tf.div_no_nan(a, a + b, name=name) for a, b, name in zip(some, others, ("value", "update_op"), strict=True)
    )
    return collected(value, update, **keys)
