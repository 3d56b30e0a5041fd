"""Parts of metrics: variables of one process, and shapes brought together.

Every function of ``tf.metrics`` returns ``(value, update_op)``: the metric of what was counted so far, and the operation that
counts a batch and gives the metric with it. What is counted lies in local variables:
``tf.local_variables_initializer()`` begins again.
Arguments that all have in common:

* ``weights``: None, one number, or of the rank of the values with 1 or their size in each dim; 0 leaves an element out.
* ``metrics_collections``, ``updates_collections``: names of collections that the value, and the update, are added to.
* ``name``: the variable scope; default: the function's name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import graphdock as _tf
from graphdock import dtypes
from graphdock import ops as _ops
from graphdock_std.nn.broadcasting import check_compatible, squeeze_labels, squeeze_weights

#: Names of collections, or one name.
Collections: TypeAlias = "Sequence[str] | str | None"
#: The value so far, and the update.
Metric: TypeAlias = "tuple[_tf.Tensor, _tf.Tensor]"


def metric_variable(shape: Any, dtype: Any, name: str) -> _tf.Variable:
    """A local variable that begins at zero."""
    keys = [_tf.GraphKeys.LOCAL_VARIABLES, _tf.GraphKeys.METRIC_VARIABLES]
    return _tf.Variable(lambda: _tf.zeros(shape, dtype), trainable=False, collections=keys, name=name)


def collected(value: Any, update: Any, metrics_collections: Collections, updates_collections: Collections) -> Metric:
    """Both, added to their collections."""
    for keys, made in ((metrics_collections, value), (updates_collections, update)):
        if keys:
            _tf.add_to_collections(keys, made)
    return value, update


def aligned(predictions: Any, labels: Any, weights: Any) -> tuple[Any, Any, Any]:
    """Predictions, labels and weights whose ranks fit, a last dim of 1 more or less; labels and weights may be None.

    Raises:
      ShapeError: the static shapes of labels and predictions differ.
    """
    predictions = _ops.convert_to_tensor(predictions)
    if labels is not None:
        labels, predictions = squeeze_labels(labels, predictions)
        check_compatible(labels, predictions)
    return predictions, labels, None if weights is None else squeeze_weights(weights, predictions)


def ratio(counted: Any, total: Any, name: str | None) -> Any:
    """``counted / total``, 0 where nothing is there to count."""
    return _tf.div_no_nan(counted, _tf.maximum(total, _tf.cast(0, total.dtype)), name=name)


def single(value: Any) -> Any:
    """A float32 tensor."""
    return _tf.cast(_ops.convert_to_tensor(value), dtypes.float32)


def flat(value: Any) -> Any:
    """A tensor of rank 1."""
    value = _ops.convert_to_tensor(value)
    return value if value.shape.rank == 1 else _tf.reshape(value, [-1])
