"""Metrics of probabilities: what they give at thresholds, and the areas below the curves that these draw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import graphdock as _tf
import numpy as np
from graphdock import dtypes
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError
from graphdock.typing import TensorLike
from graphdock_std.nn.broadcasting import broadcast_weights

from graphdock_tf1.metrics.support import Collections, Metric, aligned, collected, metric_variable, single
from graphdock_tf1.signatures import like

_VARIABLES = {"tp": "true_positives", "fn": "false_negatives", "tn": "true_negatives", "fp": "false_positives"}
#: What TensorFlow adds so that nothing is divided by zero, and puts around the thresholds.
_EPSILON = 1e-7


def _counts(labels: Any, predictions: Any, thresholds: Sequence[float], weights: Any, *kinds: str) -> tuple[Any, Any]:
    """Counts at each threshold, and what updates them: two dicts by kind.

    Args:
      kinds: of ``tp``, ``fn``, ``tn`` and ``fp``.
    """
    predictions = _ops.convert_to_tensor(predictions)
    said = "predictions must be in [0, 1]"
    checks = [
        _tf.assert_greater_equal(predictions, _tf.cast(0, predictions.dtype), message=said),
        _tf.assert_less_equal(predictions, _tf.cast(1, predictions.dtype), message=said),
    ]
    with _tf.control_dependencies(checks):
        predictions, labels, weights = aligned(
            single(predictions), _tf.cast(_ops.convert_to_tensor(labels), dtypes.bool_), weights
        )
    share = _tf.ones_like(predictions) if weights is None else broadcast_weights(weights, predictions)
    yes = single(labels) * share
    both = _tf.reshape(_tf.stack([yes, share - yes], axis=-1), [-1, 2])
    cuts = np.asarray(thresholds, np.float32)[:, None]
    above = _tf.greater(_tf.reshape(predictions, [1, -1]), cuts)
    sums: dict[str, Any] = {}
    for flags, right, wrong in ((above, "tp", "fp"), (_tf.logical_not(above), "fn", "tn")):
        if right in kinds or wrong in kinds:
            made = _tf.matmul(single(flags), both)
            sums[right], sums[wrong] = made[:, 0], made[:, 1]
    kept = {k: metric_variable([len(thresholds)], dtypes.float32, _VARIABLES[k]) for k in _VARIABLES if k in kinds}
    return kept, {k: v.assign_add(sums[k]) for k, v in kept.items()}


def _counted(
    kind: str, labels: Any, predictions: Any, thresholds: Sequence[float], weights: Any, name: Any, **keys: Any
) -> Metric:
    with _tf.variable_scope(name, _VARIABLES[kind]):
        kept, updates = _counts(labels, predictions, thresholds, weights, kind)
        return collected(_tf.identity(kept[kind]), updates[kind], **keys)


def true_positives_at_thresholds(
    labels: TensorLike,
    predictions: TensorLike,
    thresholds: Sequence[float],
    weights: TensorLike | None = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """Return how many probabilities are above each threshold where the label is yes.

    Args:
      labels: a tensor that is cast to bool.
      predictions: probabilities, of its shape; one outside of [0, 1] is an InvalidArgumentError of the step.
      thresholds: numbers between 0 and 1.
      weights, metrics_collections, updates_collections, name: as of ``tf.metrics.mean``.

    Returns:
      ``(value, update_op)``, both of as many counts as there are thresholds, float32.
    """
    return _counted("tp", **locals())


@like(true_positives_at_thresholds)
def true_negatives_at_thresholds(**given: Any) -> Metric:
    """Return how many are not above each threshold where the label is no; as ``tf.metrics.true_positives_at_thresholds``."""
    return _counted("tn", **given)


@like(true_positives_at_thresholds)
def false_positives_at_thresholds(**given: Any) -> Metric:
    """Return how many are above each threshold where the label is no; as ``tf.metrics.true_positives_at_thresholds``."""
    return _counted("fp", **given)


@like(true_positives_at_thresholds)
def false_negatives_at_thresholds(**given: Any) -> Metric:
    """Return how many are not above each threshold where the label is yes; as ``tf.metrics.true_positives_at_thresholds``."""
    return _counted("fn", **given)


def _rate(
    of: str, other: str, labels: Any, predictions: Any, thresholds: Any, weights: Any, name: Any, **keys: Any
) -> Metric:
    """Return what part the true positives are of them and the others, at each threshold."""
    with _tf.variable_scope(name, f"{of}_at_thresholds"):
        kept, updates = _counts(labels, predictions, thresholds, weights, "tp", other)
        value, update = (
            _tf.divide(c["tp"], _EPSILON + c["tp"] + c[other], name=f"{of}_{n}")
            for c, n in ((kept, "value"), (updates, "update_op"))
        )
        return collected(value, update, **keys)


@like(true_positives_at_thresholds)
def precision_at_thresholds(**given: Any) -> Metric:
    """Precision at each threshold; as ``tf.metrics.true_positives_at_thresholds``."""
    return _rate("precision", "fp", **given)


@like(true_positives_at_thresholds)
def recall_at_thresholds(**given: Any) -> Metric:
    """Recall at each threshold; as ``tf.metrics.true_positives_at_thresholds``."""
    return _rate("recall", "fn", **given)


def _even(num_thresholds: int, last: float = 1.0 + _EPSILON) -> list[float]:
    """Thresholds at equal distances, the outer two beyond all probabilities."""
    if num_thresholds < 2:
        raise InvalidArgumentError("too few thresholds", expected="2 or more", got=str(num_thresholds))
    return [-_EPSILON, *((i + 1) / (num_thresholds - 1) for i in range(num_thresholds - 2)), last]


_METHODS = ("trapezoidal", "careful_interpolation", "minoring", "majoring")


def auc(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    num_thresholds: int = 200,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    curve: Literal["ROC", "PR"] = "ROC",
    name: str | None = None,
    summation_method: Literal["trapezoidal", "careful_interpolation", "minoring", "majoring"] = "trapezoidal",
    thresholds: Sequence[float] | None = None,
) -> Metric:
    """The area below a curve that is drawn through thresholds.

    Args:
      labels, predictions, weights, metrics_collections, updates_collections, name: as of
        ``tf.metrics.true_positives_at_thresholds``.
      num_thresholds: how many thresholds, at equal distances.
      curve: ``"ROC"``: recall by the rate of false positives; ``"PR"``: precision by recall.
      summation_method: how the steps are summed: by trapezoids, from below or from above; ``"careful_interpolation"`` is right
        between points of a PR curve (Davis and Goadrich, "The relationship between precision-recall and ROC curves", 2006), for an
        ROC curve it is trapezoids.
      thresholds: those between 0 and 1, in place of ``num_thresholds``.

    Raises:
      InvalidArgumentError: no such curve or method.
    """
    for word, known in ((curve, ("ROC", "PR")), (summation_method, _METHODS)):
        if word not in known:
            raise InvalidArgumentError(f"auc does not know {word!r}", expected=" or ".join(known), got=repr(word))
    with _tf.variable_scope(name, "auc"):
        cuts = _even(num_thresholds) if thresholds is None else [-_EPSILON, *sorted(thresholds), 1.0 + _EPSILON]
        kept, updates = _counts(labels, predictions, cuts, weights, *_VARIABLES)
        value = _area(kept, curve, summation_method, "value")
        update = _area(updates, curve, summation_method, "update_op")
        return collected(value, update, metrics_collections, updates_collections)


def _area(counts: dict[str, Any], curve: str, method: str, name: str) -> Any:
    tp, fn, tn, fp = (_ops.convert_to_tensor(counts[k]) for k in ("tp", "fn", "tn", "fp"))
    if curve == "PR" and method == "careful_interpolation":
        return _interpolated(tp, fp, fn)
    small = 1e-6
    found = (tp + small) / (tp + fn + small)
    x, y = (fp / (fp + tn + small), found) if curve == "ROC" else (found, (tp + small) / (tp + fp + small))
    heights: dict[str, Callable[[Any, Any], Any]] = {"minoring": _tf.minimum, "majoring": _tf.maximum}
    height = heights.get(method, lambda a, b: (a + b) / 2.0)(y[:-1], y[1:])
    return _tf.reduce_sum((x[:-1] - x[1:]) * height, name=name)


def _interpolated(tp: Any, fp: Any, fn: Any) -> Any:
    """The area of a PR curve between whose points precision goes as recall's slope says, not along a line."""
    steps, above = tp[:-1] - tp[1:], tp + fp
    slope = _tf.div_no_nan(steps, _tf.maximum(above[:-1] - above[1:], 0), name="prec_slope")
    start = tp[1:] - slope * above[1:]
    known = _tf.logical_and(above[:-1] > 0, above[1:] > 0)
    grown = _tf.where(known, _tf.div_no_nan(above[:-1], _tf.maximum(above[1:], 0)), _tf.ones_like(above[1:]))
    parts = _tf.div_no_nan(slope * (steps + start * _tf.log(grown)), _tf.maximum(tp[1:] + fn[1:], 0))
    return _tf.reduce_sum(parts, name="interpolate_pr_auc")


def sensitivity_at_specificity(
    labels: TensorLike,
    predictions: TensorLike,
    specificity: float,
    weights: TensorLike | None = None,
    num_thresholds: int = 200,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """Recall at the threshold at which the part of right noes is nearest to ``specificity``, a number in [0, 1].

    Other arguments as of ``tf.metrics.auc``.
    """
    _part(specificity, "specificity")

    def found(c: dict[str, Any], said: str) -> Any:
        rates = c["tn"] / (c["tn"] + c["fp"] + _EPSILON)
        at = _tf.cast(_tf.argmin(_tf.abs(rates - specificity), 0), dtypes.int32)
        tp, fn = _ops.convert_to_tensor(c["tp"])[at], _ops.convert_to_tensor(c["fn"])[at]
        return _tf.divide(tp, tp + fn + _EPSILON, name=said)

    with _tf.variable_scope(name, "sensitivity_at_specificity"):
        kept, updates = _counts(labels, predictions, _even(num_thresholds), weights, *_VARIABLES)
        return collected(found(kept, "value"), found(updates, "update_op"), metrics_collections, updates_collections)


def specificity_at_sensitivity(
    labels: TensorLike,
    predictions: TensorLike,
    sensitivity: float,
    weights: TensorLike | None = None,
    num_thresholds: int = 200,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The part of right noes at the highest threshold at which recall is nearest to ``sensitivity``, a number in [0, 1].

    Other arguments as of ``tf.metrics.auc``.
    """
    _part(sensitivity, "sensitivity")

    def found(c: dict[str, Any], said: str) -> Any:
        apart = _tf.abs(c["tp"] / (c["tp"] + c["fn"] + _EPSILON) - sensitivity)
        nearest = _tf.cast(_tf.equal(apart, _tf.reduce_min(apart)), dtypes.int64)
        at = _tf.cast(_tf.argmax(_tf.cumsum(nearest), 0), dtypes.int32)  # the last of the nearest
        tn, fp = _ops.convert_to_tensor(c["tn"])[at], _ops.convert_to_tensor(c["fp"])[at]
        return _tf.divide(tn, tn + fp + _EPSILON, name=said)

    with _tf.variable_scope(name, "specificity_at_sensitivity"):
        cuts = _even(num_thresholds, 1.0 - _EPSILON)
        kept, updates = _counts(labels, predictions, cuts, weights, *_VARIABLES)
        return collected(found(kept, "value"), found(updates, "update_op"), metrics_collections, updates_collections)


def _part(value: float, name: str) -> None:
    if not 0 <= value <= 1:
        raise InvalidArgumentError(f"{name} is a part", expected="a number in [0, 1]", got=str(value))
