"""The sequences that a beam search found, read from its end to its beginning."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import ShapeError
from graphdock.typing import TensorLike


def ancestors(parent_ids: Any, max_sequence_lengths: Any) -> tuple[Any, Any]:
    """For each step of each sequence the beam in which it stood.

    Args:
      parent_ids: int32 ``[time, batch, beam]``: the beam of the step before of which each beam goes on.
      max_sequence_lengths: int32 ``[batch]``: the sequences begin to be read at the last of so many steps.

    Returns:
      ``(beams, live)``: int32 and bool ``[time, batch, beam]``; past the end ``live`` is false and a beam is its own.
    """
    times, batch, width = (_tf.shape(parent_ids)[axis] for axis in range(3))
    own = _tf.tile(_tf.range(width)[None], [batch, 1])
    own.set_shape(parent_ids.shape[1:])

    def step(variables: list[Any], rows: list[Any]) -> tuple[list[Any], list[Any]]:
        (beams,), (parents, time) = variables, rows
        live = _tf.logical_and(time < max_sequence_lengths[:, None], _tf.equal(own, own))
        before = _tf.where(live, _tf.batch_gather(parents, beams), own)
        before.set_shape(own.shape)
        return [before], [beams, live]

    reverse = [_tf.reverse(parent_ids, [0]), _tf.range(times)[::-1]]
    _, kept = _ops.scan_loop(step, [own], reverse, element_shapes=lambda _: [[batch, width]] * 2, name="gather_tree")
    beams, live = (_tf.reverse(rows, [0]) for rows in kept)
    return beams, live


def gather_tree(
    step_ids: TensorLike,
    parent_ids: TensorLike,
    max_sequence_lengths: TensorLike,
    end_token: TensorLike,
    name: str | None = None,
) -> Any:
    """Whole sequences of what a beam search found in each step.

    Args:
      step_ids: int32 ``[time, batch, beam]``: what each beam was continued by.
      parent_ids: int32 ``[time, batch, beam]``: the beam of the step before that was continued.
      max_sequence_lengths: integer vector ``[batch]``: after so many steps all beams had ended.
      end_token: integer scalar.

    Returns:
      int32 ``[time, batch, beam]``: in beam k the sequence that ends there; after an end, and past the maximum, ``end_token``.

    Raises:
      ShapeError: ids of another rank than 3. A parent that is no beam is an error of the step.
    """
    with _tf.name_scope(name or "GatherTree"):
        ids, parents = _tf.convert_to_tensor(step_ids), _tf.convert_to_tensor(parent_ids)
        for what, given in (("step_ids", ids), ("parent_ids", parents)):
            if given.shape.rank != 3:
                raise ShapeError(f"gather_tree: {what} must be [time, batch, beam]", got=str(given.shape))
        lengths = _tf.cast(_tf.convert_to_tensor(max_sequence_lengths), _tf.int32)
        end = _tf.cast(end_token, ids.dtype)
        beams, live = ancestors(parents, lengths)
        found = _tf.where(live, _tf.batch_gather(ids, beams), _tf.fill(_tf.shape(ids), end))
        ended = _tf.cumsum(_tf.cast(_tf.equal(found, end), _tf.int32), axis=0, exclusive=True)
        found = _tf.where(ended > 0, _tf.fill(_tf.shape(ids), end), found)
        found.set_shape(ids.shape)
        return found
