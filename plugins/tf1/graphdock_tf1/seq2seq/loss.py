"""sequence_loss: a weighted cross entropy over the steps of sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphdock as _tf
from graphdock.errors import InvalidArgumentError, ShapeError
from graphdock.typing import TensorLike

#: Added to a sum of weights, as TensorFlow does, so that no weights give no loss.
_TINY = 1e-12


def sequence_loss(
    logits: TensorLike,
    targets: TensorLike,
    weights: TensorLike,
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    sum_over_timesteps: bool = False,
    sum_over_batch: bool = False,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> _tf.Tensor:
    """The cross entropy of each step, times its weight, averaged or summed.

    Args:
      logits: floating tensor ``[batch, time, classes]``.
      targets: integers ``[batch, time]``, the right class of each step.
      weights: floating tensor ``[batch, time]``: how much each step counts, 0 past the end of a sequence.
      average_across_timesteps, average_across_batch: divide by the weights over time, over the batch, or both.
      sum_over_timesteps, sum_over_batch: sum over time, over the batch, or both, and divide by how many weights are not 0. Beside
        an average over the other dim they do nothing, as in TensorFlow.
      softmax_loss_function: takes ``labels`` and ``logits`` of all steps and returns a loss for each; default: sparse softmax.

    Returns:
      A scalar, a tensor ``[time]``, ``[batch]`` or ``[batch, time]``: without the dims that are averaged or summed over.

    Raises:
      ShapeError: an argument of another rank. InvalidArgumentError: both the average and the sum over one dim.
    """
    logits, targets, weights = (_tf.convert_to_tensor(t) for t in (logits, targets, weights))
    for what, tensor, rank in (("Logits", logits, 3), ("Targets", targets, 2), ("Weights", weights, 2)):
        if tensor.shape.rank not in (None, rank):
            raise ShapeError(f"{what} must be a tensor of rank {rank}", got=f"{tensor.name} of shape {tensor.shape}")
    if average_across_timesteps and sum_over_timesteps:
        raise InvalidArgumentError("average_across_timesteps and sum_over_timesteps cannot both be True")
    if average_across_batch and sum_over_batch:
        raise InvalidArgumentError("average_across_batch and sum_over_batch cannot both be True")
    with _tf.name_scope(name or "sequence_loss"):
        classes = logits.shape.as_list()[-1] if logits.shape.rank is not None else None
        flat = _tf.reshape(logits, [-1, _tf.shape(logits)[2] if classes is None else classes])
        labels = _tf.reshape(targets, [-1])
        if softmax_loss_function is None:
            found = _tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=flat)
        else:
            found = softmax_loss_function(labels=labels, logits=flat)
        found = found * _tf.reshape(weights, [-1])
        if average_across_timesteps and average_across_batch:
            return _tf.reduce_sum(found) / (_tf.reduce_sum(weights) + _TINY)
        if sum_over_timesteps and sum_over_batch:
            return _tf.reduce_sum(found) / (_counted(weights, [0, 1]) + _TINY)
        found = _tf.reshape(found, _tf.shape(weights))
        if found.shape.rank is not None:
            found.set_shape(weights.shape)
        averages = average_across_timesteps or average_across_batch
        over_batch = average_across_batch if averages else sum_over_batch
        if not averages and not sum_over_batch and not sum_over_timesteps:
            return found
        axis = [0] if over_batch else [1]
        return _tf.reduce_sum(found, axis) / (
            (_tf.reduce_sum(weights, axis) if averages else _counted(weights, axis)) + _TINY
        )


def _counted(weights: Any, axis: list[int]) -> Any:
    """Number of weights that are not 0."""
    return _tf.cast(_tf.count_nonzero(weights, axis), weights.dtype)
