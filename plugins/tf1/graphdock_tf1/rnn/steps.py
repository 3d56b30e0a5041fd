"""Common parts of static_rnn and dynamic_rnn: initial states, checks, and what happens past the end of a sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import graphdock as _tf
from graphdock import nest
from graphdock.errors import InvalidArgumentError, ShapeError
from graphdock.typing import DTypeLike

from graphdock_tf1.rnn.arrays import joined, parted


def batch_of(flat: Sequence[Any], axis: int) -> Any:
    """The size of the batch: a number where an input says it, else an int32 scalar.

    Raises:
      ShapeError: an input of a rank below ``axis + 1``.
    """
    for tensor in flat:
        rank = tensor.shape.rank
        if rank is not None and rank <= axis:
            raise ShapeError(f"inputs must be of rank {axis + 1} or more", got=f"{tensor.name} of shape {tensor.shape}")
        if rank is not None and tensor.shape.as_list()[axis] is not None:
            return tensor.shape.as_list()[axis]
    return _tf.shape(flat[0])[axis]


def initial(cell: Any, state: Any, batch_size: Any, dtype: DTypeLike | None) -> Any:
    """The state that was given, as tensors, or the cell's for a batch.

    Raises:
      InvalidArgumentError: neither a state nor a dtype; a state that nests differently than the cell's.
    """
    if state is not None:
        tensors, arrays = parted(state)
        given = joined(state, [_tf.convert_to_tensor(s) for s in tensors], arrays)
        sizes = cell.state_size
        if not isinstance(sizes, _tf.TensorShape) and not nest.same_structure(given, sizes):
            raise InvalidArgumentError(
                "the initial state nests differently than the cell's state_size", expected=str(sizes), got=str(state)
            )
        return given
    if dtype is None:
        raise InvalidArgumentError("If there is no initial_state, you must give a dtype.")
    if getattr(cell, "get_initial_state", None) is not None:
        return cell.get_initial_state(inputs=None, batch_size=batch_size, dtype=dtype)
    return cell.zero_state(batch_size, dtype)


def lengths_of(sequence_length: Any) -> Any:
    """The lengths as an int32 or int64 vector. Raises ShapeError for another rank."""
    lengths = _tf.convert_to_tensor(sequence_length, name="sequence_length")
    if lengths.dtype not in (_tf.int32, _tf.int64):
        lengths = _tf.cast(lengths, _tf.int32)
    if lengths.shape.rank not in (None, 1):
        raise ShapeError(
            "sequence_length must be a vector of length batch_size", got=f"{lengths.name} of shape {lengths.shape}"
        )
    return lengths


def check_nesting(said: str, before: Any, after: Any) -> None:
    """Refuse, with these words, what does not nest as it did before. Raises InvalidArgumentError."""
    if not nest.same_structure(before, after):
        raise InvalidArgumentError(said, expected=str(before), got=str(after))


def check_depth(who: str, flat: Sequence[Any], outer: int, expected: str) -> None:
    """Refuse inputs whose rank, or a static dim of which after the first ``outer``, is not known.

    Raises:
      ShapeError: it names the input.
    """
    for tensor in flat:
        if tensor.shape.rank is None or None in tensor.shape.as_list()[outer:]:
            raise ShapeError(
                f"{who} must know the depth of its inputs",
                expected=expected,
                got=f"{tensor.name} of shape {tensor.shape}",
                hint="call set_shape on them",
            )


def one_step(cell: Any, inputs: Any, state: Any) -> tuple[Any, Any]:
    """A call of the cell, whose next state keeps the static shapes of the one before.

    Raises:
      InvalidArgumentError: the next state nests differently.
    """
    output, following = cell(inputs, state)
    check_nesting("the cell returned a state that nests differently than the one it was given", state, following)
    for before, after in zip(parted(state)[0], parted(following)[0], strict=True):
        if after.shape.is_compatible_with(before.shape):
            after.set_shape(before.shape)
    return output, nest.pack_sequence_as(state, nest.flatten(following))


def copied_through(finished: Any, before: Sequence[Any], after: Sequence[Any]) -> list[Any]:
    """In the rows that are finished what was before, in the others what came after; a scalar comes through as it is.

    Args:
      finished: bool vector, one element per row of the batch.
    """
    made = []
    for old, new in zip(before, after, strict=True):
        if new.shape.rank == 0:
            made.append(new)
        else:
            chosen = _tf.where(finished, old, new)
            chosen.set_shape(new.shape)
            made.append(chosen)
    return made


def dims_outside(kept: Any, batch_size: Any) -> list[Any]:
    """The dims of an output of a step, as outside of the loop or branch. Raises ShapeError for an unknown rank."""
    if kept.shape.rank is None:
        raise ShapeError("the cell returned an output of an unknown rank", got=kept.name)
    return [batch_size if d is None and axis == 0 else d for axis, d in enumerate(kept.shape.as_list())]
