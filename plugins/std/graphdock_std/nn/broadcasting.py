"""Broadcasting of weights to values, and of labels to predictions, in losses and metrics: TensorFlow's rules.

Weights are one number, or of the rank of the values with 1 or the values' size in each dim. Labels and predictions may differ by a
last dim of 1.
"""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import dtypes
from graphdock import ops as _ops
from graphdock.errors import ShapeError

from graphdock_std.grad_support import static_shape

_RULE = "one number, or the rank of the values with 1 or their size in each dim"


def assert_broadcastable(weights: Any, values: Any) -> _ops.Operation | None:
    """Refuse weights that do not fit; the operation that checks it in the step, or None where the shapes are known.

    Raises:
      ShapeError: they surely do not fit.
    """
    w, v = static_shape(weights), static_shape(values)
    if w == ():
        return None
    if w is not None and v is not None:
        fits = len(w) == len(v) and all(a in (1, b) or a is None or b is None for a, b in zip(w, v, strict=True))
        if not fits:
            raise ShapeError(
                "weights can not be broadcast to values",
                expected=_RULE,
                got=f"weights {weights.shape} for {values.shape}",
            )
        if all(a is not None and a in (1, b) for a, b in zip(w, v, strict=True)):
            return None
    with _tf.name_scope("assert_broadcastable"):
        sizes, wanted = _tf.shape(weights), _tf.shape(values)

        ranks = _tf.rank(weights), _tf.rank(values)
        common = _tf.minimum(*ranks)
        a, b = sizes[:common], wanted[:common]
        dims = _tf.reduce_all(_tf.logical_or(_tf.equal(a, b), _tf.equal(a, 1)))
        fitting = _tf.logical_or(_tf.equal(ranks[0], 0), _tf.logical_and(_tf.equal(*ranks), dims))
        said = f"weights can not be broadcast to values: expected {_RULE}; weights, values:"
        return _tf.Assert(fitting, [said, sizes, wanted])


def broadcast_weights(weights: Any, values: Any) -> Any:
    """Weights of the shape and dtype of the values.

    Raises:
      ShapeError: they do not fit; an InvalidArgumentError of the step where only that can tell.
    """
    weights = _tf.cast(_ops.convert_to_tensor(weights), values.dtype)
    known = static_shape(weights)
    if known is not None and None not in known and known == static_shape(values):
        return weights
    check = assert_broadcastable(weights, values)
    with _tf.control_dependencies([] if check is None else [check]):
        return weights * _tf.ones_like(values)


def check_compatible(labels: Any, predictions: Any) -> None:
    """Refuse labels whose static shape is another than that of the predictions.

    Raises:
      ShapeError: they differ.
    """
    if not predictions.shape.is_compatible_with(labels.shape):
        raise ShapeError(
            "labels and predictions must be of one shape", expected=f"labels {predictions.shape}", got=str(labels.shape)
        )


def squeeze_labels(labels: Any, predictions: Any, difference: int = 0) -> tuple[Any, Any]:
    """Labels and predictions, the one that has a last dim of 1 too many without it.

    Args:
      difference: how much higher the rank of predictions has to be.
    """
    labels, predictions = _ops.convert_to_tensor(labels), _ops.convert_to_tensor(predictions)
    a, b = labels.shape.rank, predictions.shape.rank
    if a is not None and b is not None:
        if b - a == difference + 1 and predictions.shape[-1].value in (1, None):
            predictions = _tf.squeeze(predictions, [-1])
        elif b - a == difference - 1 and labels.shape[-1].value in (1, None):
            labels = _tf.squeeze(labels, [-1])
        return labels, predictions
    apart = _tf.rank(predictions) - _tf.rank(labels)
    predictions = _squeezed_if(predictions, _tf.equal(apart, difference + 1))
    return _squeezed_if(labels, _tf.equal(apart, difference - 1)), predictions


def squeeze_weights(weights: Any, values: Any) -> Any:
    """Weights without a last dim of 1 that is one too many for the values, or with one where it is missing."""
    weights = _ops.convert_to_tensor(weights)
    a, b = weights.shape.rank, values.shape.rank
    if a == 0:
        return weights
    if a is not None and b is not None:
        if a - b == 1:
            return _tf.squeeze(weights, [-1])
        return _tf.expand_dims(weights, -1) if b - a == 1 else weights
    apart = _tf.rank(weights) - _tf.rank(values)
    missing = _tf.logical_and(_tf.equal(apart, -1), _tf.greater(_tf.rank(weights), 0))
    return _with_rank(weights, _tf.cast(missing, dtypes.int32) - _tf.cast(_tf.equal(apart, 1), dtypes.int32))


def _squeezed_if(tensor: Any, flag: Any) -> Any:
    rank = tensor.shape.rank
    if rank is not None and (rank == 0 or tensor.shape[-1].value not in (1, None)):
        return tensor
    return _with_rank(tensor, -_tf.cast(flag, dtypes.int32))


def _with_rank(tensor: Any, more: Any) -> Any:
    """The tensor with a last dim of 1 more or less, or as it is. No cond, whose branches would be planned for every shape."""
    sizes = _tf.shape(tensor)
    kept = sizes[: _tf.rank(tensor) + _tf.minimum(more, 0)]
    return _tf.reshape(tensor, _tf.concat([kept, _tf.ones(_tf.reshape(_tf.maximum(more, 0), [1]), dtypes.int32)], 0))
