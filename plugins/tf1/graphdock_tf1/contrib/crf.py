"""Linear-chain conditional random fields (Lafferty, McCallum and Pereira, 2001): scores, likelihoods, the best tags.

Scores are ``[batch, steps, tags]``, transitions ``[tags, tags]`` from a row's tag to a column's; a sequence has its first
``sequence_lengths`` steps.
"""

from __future__ import annotations

from typing import Any

import graphdock as _tf
import numpy as np
from graphdock.typing import TensorLike


def crf_unary_score(tag_indices: TensorLike, sequence_lengths: TensorLike, inputs: TensorLike) -> _tf.Tensor:
    """Sum of the scores of tags ``[batch, steps]``. Returns ``[batch]``."""
    inputs = _tf.convert_to_tensor(inputs)
    chosen = _tf.one_hot(tag_indices, _tf.shape(inputs)[2], on_value=True, off_value=False, dtype=_tf.bool)
    chosen &= _tf.sequence_mask(sequence_lengths, _tf.shape(inputs)[1])[:, :, None]
    # what is not chosen may be minus infinity, or NaN behind the end: it is no factor
    return _tf.reduce_sum(_tf.where(chosen, inputs, _tf.zeros_like(inputs)), [1, 2])


def crf_binary_score(
    tag_indices: TensorLike, sequence_lengths: TensorLike, transition_params: TensorLike
) -> _tf.Tensor:
    """Sum of the transitions between tags ``[batch, steps]``. Returns ``[batch]``."""
    transitions = _tf.convert_to_tensor(transition_params)
    tags = _tf.cast(_tf.convert_to_tensor(tag_indices), _tf.int32)
    number = tags[:, :-1] * _tf.shape(transitions)[0] + tags[:, 1:]
    steps = _tf.gather(_tf.reshape(transitions, [-1]), number)
    inside = _tf.sequence_mask(sequence_lengths, _tf.shape(tags)[1])[:, 1:]
    return _tf.reduce_sum(_tf.where(inside, steps, _tf.zeros_like(steps)), 1)


def crf_sequence_score(
    inputs: TensorLike, tag_indices: TensorLike, sequence_lengths: TensorLike, transition_params: TensorLike
) -> _tf.Tensor:
    """The score of tags ``[batch, steps]``, that is not normalised. Returns ``[batch]``."""
    unary = crf_unary_score(tag_indices, sequence_lengths, inputs)
    return unary + crf_binary_score(tag_indices, sequence_lengths, transition_params)


def crf_log_norm(inputs: TensorLike, sequence_lengths: TensorLike, transition_params: TensorLike) -> _tf.Tensor:
    """The logarithm of the sum over all tags of the exponentials of their scores, by the forward algorithm. Returns ``[batch]``."""
    inputs, transitions = _tf.convert_to_tensor(inputs), _tf.convert_to_tensor(transition_params)
    last, _ = _forward(inputs, sequence_lengths, transitions, lambda scores: (_tf.reduce_logsumexp(scores, 1), None))
    norm = _tf.reduce_logsumexp(last, 1)
    return _tf.where(_tf.greater(_tf.cast(sequence_lengths, _tf.int32), 0), norm, _tf.zeros_like(norm))


def crf_log_likelihood(
    inputs: TensorLike,
    tag_indices: TensorLike,
    sequence_lengths: TensorLike,
    transition_params: TensorLike | None = None,
) -> tuple[_tf.Tensor, Any]:
    """The logarithm of the probability of tags ``[batch, steps]``.

    Args:
      transition_params: ``[tags, tags]``; by default the variable ``transitions``, which is made.

    Returns:
      ``[batch]``, and the transitions.
    """
    inputs = _tf.convert_to_tensor(inputs)
    if transition_params is None:
        tags = inputs.shape.as_list()[2]
        transition_params = _tf.get_variable("transitions", [tags, tags])
    score = crf_sequence_score(inputs, tag_indices, sequence_lengths, transition_params)
    return score - crf_log_norm(inputs, sequence_lengths, transition_params), transition_params


def crf_decode(
    potentials: TensorLike, transition_params: TensorLike, sequence_length: TensorLike
) -> tuple[_tf.Tensor, _tf.Tensor]:
    """The best tags, by Viterbi's algorithm, in the graph.

    Returns:
      The tags, int32 ``[batch, steps]``, 0 behind a sequence's end; and their scores ``[batch]``.
    """
    inputs, transitions = _tf.convert_to_tensor(potentials), _tf.convert_to_tensor(transition_params)
    tags = _tf.shape(inputs)[2]

    def best(scores: Any) -> tuple[Any, Any]:
        return _tf.reduce_max(scores, 1), _tf.cast(_tf.argmax(scores, 1), _tf.int32)

    last, back = _forward(inputs, sequence_length, transitions, best)
    end = _tf.cast(_tf.argmax(last, 1), _tf.int32)
    steps = _tf.shape(inputs)[1]
    found = _tf.TensorArray(_tf.int32, steps).write(steps - 1, end)

    def step(at: Any, tag: Any, found: Any) -> Any:
        before = _tf.reduce_sum(back.read(at - 1) * _tf.one_hot(tag, tags, dtype=_tf.int32), 1)
        return at - 1, before, found.write(at - 1, before)

    _, _, found = _tf.while_loop(lambda at, *_: at > 0, step, [steps - 1, end, found])
    made = _tf.transpose(found.stack()) * _tf.sequence_mask(sequence_length, steps, dtype=_tf.int32)
    made.set_shape(inputs.shape[:2])
    return made, _tf.reduce_max(last, 1)


def _forward(inputs: Any, lengths: Any, transitions: Any, joined: Any) -> tuple[Any, Any]:
    """Scores ``[batch, tags]`` at the ends of sequences; and an array of what ``joined`` says of each step besides.

    ``joined`` takes scores ``[batch, tags before, tags]``. Behind the end of a sequence scores stay, and a tag comes from itself.
    """
    lengths = _tf.cast(_tf.convert_to_tensor(lengths), _tf.int32)
    steps, shape = _tf.shape(inputs)[1], _tf.shape(inputs)
    stay = _tf.zeros([shape[0], 1], _tf.int32) + _tf.range(shape[2])
    back = _tf.TensorArray(_tf.int32, _tf.maximum(steps - 1, 0))

    def step(at: Any, state: Any, back: Any) -> Any:
        scores, whence = joined(_tf.expand_dims(state, 2) + transitions)
        inside = _tf.expand_dims(at < lengths, 1) & (stay >= 0)
        state_ = _tf.where(inside, scores + inputs[:, at], state)
        state_.set_shape(state.shape)
        if whence is not None:
            back = back.write(at - 1, _tf.where(inside, whence, stay))
        return at + 1, state_, back

    _, last, back = _tf.while_loop(lambda at, *_: at < steps, step, [_tf.constant(1), inputs[:, 0], back])
    return last, back


def viterbi_decode(score: Any, transition_params: Any) -> tuple[list[int], Any]:
    """The best tags of one sequence, outside any graph: scores ``[steps, tags]`` as arrays. Returns the tags, and their score."""
    trellis, back = np.array(score), np.zeros(np.shape(score), np.int32)
    for at in range(1, len(trellis)):
        scores = trellis[at - 1][:, None] + np.asarray(transition_params)
        trellis[at] = trellis[at] + scores.max(0)
        back[at] = scores.argmax(0)
    tags = [int(trellis[-1].argmax())]
    for whence in back[:0:-1]:
        tags.append(int(whence[tags[-1]]))
    return tags[::-1], trellis[-1].max()
