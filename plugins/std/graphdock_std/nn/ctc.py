"""Connectionist temporal classification: ``tf.nn.ctc_loss`` and its decoders. Names and arguments are TensorFlow 1's.

Graves, Fernandez, Gomez and Schmidhuber, "Connectionist temporal classification: labelling unsegmented sequence data with recurrent
neural networks", 2006.
"""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import GradientError, InvalidArgumentError
from graphdock.typing import TensorLike


def ctc_loss(
    labels: Any,
    inputs: TensorLike | None = None,
    sequence_length: TensorLike | None = None,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = True,
    ignore_longer_outputs_than_inputs: bool = False,
    time_major: bool = True,
    logits: TensorLike | None = None,
) -> _ops.Tensor:
    """Minus the logarithm of the probability of labels whose place in time is not known, one number per row.

    Args:
      labels: int32 SparseTensor ``[batch, time]``: classes from 0 to ``classes - 2``; the last class is the blank.
      inputs: logits ``[time, batch, classes]``, float32 or float64. ``logits`` is a later name.
      sequence_length: int32 ``[batch]``, the steps of each row.
      preprocess_collapse_repeated: take repeated labels as one.
      ctc_merge_repeated: a label that stays for several steps is one; without it, as many.
      ignore_longer_outputs_than_inputs: rows whose label is longer than their sequence have a loss of 0, in place of an error.
      time_major: False for ``inputs`` of shape ``[batch, time, classes]``.

    Returns:
      ``[batch]``; infinite where no path stands for the label. A gradient flows to ``inputs``, and no second one.

    Raises:
      InvalidArgumentError: labels are no SparseTensor; in the step: a label that is no class, or longer than its sequence.
    """
    if not hasattr(labels, "dense_shape"):
        raise InvalidArgumentError("ctc_loss: labels must be a SparseTensor", got=f"a {type(labels).__name__}")
    given = logits if inputs is None else inputs
    if given is None or sequence_length is None:
        raise InvalidArgumentError("ctc_loss needs inputs and sequence_length")
    given = _ops.convert_to_tensor(given)
    if not time_major:
        given = _tf.transpose(given, [1, 0, 2])
    return _ops.apply_op(
        "CTCLoss",
        inputs=given,
        labels_indices=labels.indices,
        labels_values=labels.values,
        sequence_length=sequence_length,
        preprocess_collapse_repeated=preprocess_collapse_repeated,
        ctc_merge_repeated=ctc_merge_repeated,
        ignore_longer_outputs_than_inputs=ignore_longer_outputs_than_inputs,
    ).loss


def ctc_loss_grad(op: Any, grad_loss: Any, grad_gradient: Any) -> Any:
    """Of the loss by the inputs: the op's second output, which has no derivative itself."""
    if grad_gradient is not None:
        raise GradientError("ctc_loss has no second derivative", op=op.name, site=op.site)
    return None if grad_loss is None else op.outputs[1] * _tf.reshape(grad_loss, [1, -1, 1])


def ctc_greedy_decoder(
    inputs: TensorLike, sequence_length: TensorLike, merge_repeated: bool = True
) -> tuple[list[Any], _ops.Tensor]:
    """The label of the most probable class of each step.

    Args:
      inputs: logits ``[time, batch, classes]``; the last class is the blank.
      sequence_length: int32 ``[batch]``, the steps of each row.
      merge_repeated: take a class that stays for several steps as one.

    Returns:
      ``([labels], neg_sum_logits)``: an int64 SparseTensor ``[batch, most labels]``, and minus the sum of the largest logits,
      ``[batch, 1]``.
    """
    op = "CTCGreedyDecoder"
    made = _ops.apply_op(op, inputs=inputs, sequence_length=sequence_length, merge_repeated=merge_repeated)
    labels = _tf.SparseTensor(made.decoded_indices, made.decoded_values, made.decoded_shape)
    return [labels], made.log_probability


def ctc_beam_search_decoder(
    inputs: TensorLike,
    sequence_length: TensorLike,
    beam_width: int = 100,
    top_paths: int = 1,
    merge_repeated: bool = True,
) -> tuple[list[Any], _ops.Tensor]:
    """The most probable labels, found by a beam search.

    Args:
      inputs: logits ``[time, batch, classes]``; the last class is the blank.
      sequence_length: int32 ``[batch]``, the steps of each row.
      beam_width: how many prefixes are kept at each step.
      top_paths: how many labels are given per row.
      merge_repeated: take repeated classes of a label as one, though blanks stood between them.

    Returns:
      ``(labels, log_probability)``: ``top_paths`` int64 SparseTensors, most probable first, and ``[batch, top_paths]``.

    Raises:
      InvalidArgumentError: top_paths above beam_width; in the step: a row of fewer labels.
    """
    attrs = {"beam_width": beam_width, "top_paths": top_paths, "merge_repeated": merge_repeated}
    made = _ops.apply_op("CTCBeamSearchDecoder", inputs=inputs, sequence_length=sequence_length, **attrs)
    parts = zip(made.decoded_indices, made.decoded_values, made.decoded_shape, strict=True)
    return [_tf.SparseTensor(*part) for part in parts], made.log_probability
