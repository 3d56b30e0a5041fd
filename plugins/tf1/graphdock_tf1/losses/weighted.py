"""From a loss per element to one number: weights, the reductions, the collection."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import dtypes
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError, did_you_mean
from graphdock.typing import TensorLike
from graphdock_std.nn.broadcasting import assert_broadcastable

from graphdock_tf1.losses.collected import add_loss


class Reduction:
    """Ways in which the losses of elements are reduced.

    Attributes:
      NONE: nothing; SUM: their sum; MEAN: that by the sum of weights; SUM_OVER_BATCH_SIZE: by the number of elements;
      SUM_BY_NONZERO_WEIGHTS (SUM_OVER_NONZERO_WEIGHTS is its older name): by the number of those whose weight is not zero.
    """

    NONE = "none"
    SUM = "weighted_sum"
    MEAN = "weighted_mean"
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    SUM_BY_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"
    SUM_OVER_NONZERO_WEIGHTS = SUM_BY_NONZERO_WEIGHTS

    @classmethod
    def all(cls) -> tuple[str, ...]:
        return cls.NONE, cls.SUM, cls.MEAN, cls.SUM_OVER_BATCH_SIZE, cls.SUM_BY_NONZERO_WEIGHTS

    @classmethod
    def validate(cls, key: str) -> None:
        """Refuse what is no reduction.

        Raises:
          InvalidArgumentError: there is no such one.
        """
        if key not in cls.all():
            raise InvalidArgumentError(
                f"there is no reduction {key!r}",
                expected=", ".join(cls.all()),
                got=repr(key),
                hint=did_you_mean(str(key), cls.all()),
            )


def single(value: Any, what: str) -> Any:
    """An argument that must be given, as a float32 tensor.

    Raises:
      InvalidArgumentError: it is None.
    """
    if value is None:
        raise InvalidArgumentError(f"{what} must not be None")
    return _tf.cast(_ops.convert_to_tensor(value), dtypes.float32)


def present(shape: Any, weights: Any) -> Any:
    """Of losses of a shape, 1 for each element whose weight is not zero, else 0: it is known before the losses are."""
    return _tf.cast(_tf.not_equal(weights, 0.0), dtypes.float32) * _tf.ones(shape)


def compute_weighted_loss(
    losses: TensorLike,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str | None = _tf.GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> _tf.Tensor:
    """Weight the losses of elements and reduce them, in float32.

    Args:
      losses: a number per element.
      weights: one number, or of the rank of ``losses``, with 1 or its size in each dim.
      scope: name scope of what is made; default ``weighted_loss``.
      loss_collection: where the result is added; None for nowhere.
      reduction: one of :class:`Reduction`.

    Returns:
      A scalar of the dtype of ``losses``; of the shape of ``losses`` with ``Reduction.NONE``. It is 0 where nothing has a weight.

    Raises:
      InvalidArgumentError: no such reduction. ShapeError: the weights do not fit; an InvalidArgumentError of the step where only
        that can tell.
    """
    Reduction.validate(reduction)
    with _tf.name_scope(scope or "weighted_loss"):
        losses = _ops.convert_to_tensor(losses)
        given = losses.dtype
        losses = _tf.cast(losses, dtypes.float32)
        even = isinstance(weights, int | float) and not isinstance(weights, bool) and weights != 0
        weights = _tf.cast(_ops.convert_to_tensor(weights), dtypes.float32)
        check, shape = assert_broadcastable(weights, losses), _tf.shape(losses)
        with _tf.control_dependencies([] if check is None else [check]):
            made = _tf.multiply(losses, weights)
            if reduction != Reduction.NONE:
                made = _tf.reduce_sum(made)
            if reduction == Reduction.MEAN:
                made = _tf.div_no_nan(made, _tf.reduce_sum(_tf.ones(shape) * weights), name="value")
            elif reduction == Reduction.SUM_OVER_BATCH_SIZE or (reduction == Reduction.SUM_BY_NONZERO_WEIGHTS and even):
                made = _tf.div_no_nan(made, _tf.cast(_tf.size(losses), dtypes.float32), name="value")
            elif reduction == Reduction.SUM_BY_NONZERO_WEIGHTS:
                made = _tf.div_no_nan(made, _tf.reduce_sum(present(shape, weights)), name="value")
            made = _tf.cast(made, given)
        add_loss(made, loss_collection)
        return made
