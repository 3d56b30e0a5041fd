"""``tf.contrib.legacy_seq2seq``: losses of lists of steps, and models over buckets of lengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import graphdock as _tf

#: Added to a sum of weights, as TensorFlow does, so that no weights give no loss.
_TINY = 1e-12


def sequence_loss_by_example(
    logits: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    average_across_timesteps: bool = True,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> _tf.Tensor:
    """The weighted cross entropy of each sequence.

    Args:
      logits: a list of ``[batch, classes]``. targets: a list of integers ``[batch]``. weights: a list of ``[batch]``.
      average_across_timesteps: divide by the weights.
      softmax_loss_function: takes ``labels`` and ``logits`` of a step; default: sparse softmax.

    Returns:
      ``[batch]``.

    Raises:
      ValueError: the lists have several lengths.
    """
    if not len(logits) == len(targets) == len(weights):
        raise ValueError(
            f"Lengths of logits, weights, and targets must be the same {len(logits)}, {len(weights)}, {len(targets)}."
        )
    with _tf.name_scope(name or "sequence_loss_by_example"):
        found = []
        for logit, target, weight in zip(logits, targets, weights, strict=True):
            if softmax_loss_function is None:
                labels = _tf.reshape(target, [-1])
                loss = _tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logit)
            else:
                loss = softmax_loss_function(labels=target, logits=logit)
            found.append(loss * weight)
        total = _tf.add_n(found)
        return total / (_tf.add_n(list(weights)) + _TINY) if average_across_timesteps else total


def sequence_loss(
    logits: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> _tf.Tensor:
    """The sum of :func:`sequence_loss_by_example`, whose arguments these are; by the batch where ``average_across_batch``."""
    with _tf.name_scope(name or "sequence_loss"):
        cost = _tf.reduce_sum(
            sequence_loss_by_example(logits, targets, weights, average_across_timesteps, softmax_loss_function)
        )
        return cost / _tf.cast(_tf.shape(targets[0])[0], cost.dtype) if average_across_batch else cost


def model_with_buckets(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    buckets: Sequence[tuple[int, int]],
    seq2seq: Callable[[Any, Any], tuple[Any, Any]],
    softmax_loss_function: Callable[..., Any] | None = None,
    per_example_loss: bool = False,
    name: str | None = None,
) -> tuple[list[Any], list[Any]]:
    """A model for each bucket of lengths, with one set of variables.

    Args:
      encoder_inputs, decoder_inputs, targets, weights: lists of steps, as long as the last bucket or longer.
      buckets: ``(input length, output length)``, growing.
      seq2seq: takes the inputs of both, gives ``(outputs, state)``.
      softmax_loss_function: as of :func:`sequence_loss`. per_example_loss: a loss for each sequence.

    Returns:
      ``(outputs, losses)``, one of each bucket.

    Raises:
      ValueError: a list is shorter than the last bucket.
    """
    for what, given, end in (
        ("encoder_inputs", encoder_inputs, buckets[-1][0]),
        ("targets", targets, buckets[-1][1]),
        ("weights", weights, buckets[-1][1]),
    ):
        if len(given) < end:
            raise ValueError(f"Length of {what} ({len(given)}) must be at least that of last bucket ({end}).")
    loss = sequence_loss_by_example if per_example_loss else sequence_loss
    outputs, losses = [], []
    with _tf.name_scope(name or "model_with_buckets"):
        for j, (inward, outward) in enumerate(buckets):
            with _tf.variable_scope(_tf.get_variable_scope(), reuse=True if j > 0 else None):
                found, _ = seq2seq(encoder_inputs[:inward], decoder_inputs[:outward])
                outputs.append(found)
                losses.append(
                    loss(found, targets[:outward], weights[:outward], softmax_loss_function=softmax_loss_function)
                )
    return outputs, losses
