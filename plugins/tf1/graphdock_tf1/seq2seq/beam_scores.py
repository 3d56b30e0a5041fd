"""Scores in a beam search: log probabilities, the penalty of their length, the penalty of what attention left aside."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock.errors import InvalidArgumentError, ShapeError

from graphdock_tf1.seq2seq.wrapper import AttentionWrapperState


def masked(log_probs: Any, finished: Any, end_token: Any) -> Any:
    """Log probabilities ``[batch, beam, ids]``, where a sequence that has finished is sure to end once more.

    Args:
      finished: bool ``[batch, beam]``. ``end_token``: int32 scalar.
    """
    dtype = log_probs.dtype
    ids = log_probs.shape.as_list()[-1]
    over = _tf.one_hot(end_token, ids, _tf.constant(0, dtype), _tf.constant(dtype.min, dtype), dtype=dtype)
    whole = _tf.zeros_like(log_probs)
    made = _tf.where(_tf.logical_and(finished[:, :, None], _tf.equal(whole, whole)), whole + over, log_probs)
    made.set_shape(log_probs.shape)
    return made


def attention_of(cell_state: Any, penalty: Any) -> Any:
    """Return how much each row of the memory counts now, as the state of a cell with attention says; None where no penalty
    asks for it.

    Of several mechanisms, or of several cells with attention, it is the mean.

    Raises:
      InvalidArgumentError: there is a penalty, and no cell attends.
    """
    if isinstance(penalty, int | float) and penalty == 0:
        return None
    states = cell_state if type(cell_state) is tuple else [cell_state]
    found = [_mean(s.alignments) for s in states if isinstance(s, AttentionWrapperState)]
    if not found:
        raise InvalidArgumentError(
            "coverage_penalty_weight must be 0.0 if no cell is attentional", got=f"coverage_penalty_weight={penalty}"
        )
    return _mean(tuple(found))


def _mean(alignments: Any) -> Any:
    if not isinstance(alignments, tuple):
        return alignments
    return alignments[0] if len(alignments) == 1 else _tf.add_n(alignments) / float(len(alignments))


def scores_of(
    log_probs: Any, lengths: Any, length_penalty: Any, finished: Any, attention: Any, coverage_penalty: Any
) -> Any:
    """Return what continuations ``[batch, beam, ids]`` are chosen by.

    Args:
      log_probs: of the sequences with them. ``lengths``: int64, of the same shape.
      length_penalty: scores are divided by ``((5 + length) / 6) ** length_penalty``.
      finished: bool ``[batch, beam]``: the sequences that the coverage penalty is for.
      attention: ``[batch, beam, rows]``, what each row counted so far; () without a coverage penalty.
      coverage_penalty: times the sum over rows of ``log(min(attention, 1))``; rows that count nothing at all are no rows.

    Raises:
      ShapeError: a penalty is no scalar.
    """
    dtype = log_probs.dtype
    scores = log_probs
    if not (isinstance(length_penalty, int | float) and length_penalty == 0):
        weight = _scalar("length_penalty_weight", length_penalty, dtype)
        scores = scores / ((5.0 + _tf.cast(lengths, dtype)) / 6.0) ** weight
    if isinstance(attention, tuple):
        return scores
    weight = _scalar("coverage_penalty_weight", coverage_penalty, dtype)
    counted = _tf.where(_tf.equal(attention, 0.0), _tf.ones_like(attention), attention)
    coverage = _tf.reduce_sum(_tf.log(_tf.minimum(counted, 1.0)), 2)
    return scores + (weight * coverage * _tf.cast(finished, dtype))[:, :, None]


def _scalar(name: str, value: Any, dtype: Any) -> Any:
    weight = _tf.cast(_tf.convert_to_tensor(value, preferred_dtype=dtype), dtype)
    if weight.shape.rank not in (None, 0):
        raise ShapeError(f"{name} must be a scalar", got=str(weight.shape))
    return weight
