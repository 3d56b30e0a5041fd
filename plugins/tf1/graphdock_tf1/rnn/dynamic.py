"""dynamic_rnn: a cell over the steps of a tensor, as a loop that is linear in time, forwards and backwards."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import nest
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError, ShapeError
from graphdock.typing import DTypeLike, TensorLike

from graphdock_tf1.rnn.arrays import behind, flows, joined, parted
from graphdock_tf1.rnn.cell import check_cell
from graphdock_tf1.rnn.steps import batch_of, check_depth, copied_through, dims_outside, initial, lengths_of, one_step


def dynamic_rnn(
    cell: Any,
    inputs: Any,
    sequence_length: TensorLike | None = None,
    initial_state: Any = None,
    dtype: DTypeLike | None = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[Any, Any]:
    """Run a cell over every step of ``inputs``.

    The number of steps and the size of the batch need not be known. A step costs the same however many there are, and so does
    one of the gradient.

    Args:
      cell: an RNNCell.
      inputs: tensor ``[batch, time, ...]``, or a structure of such; with ``time_major`` ``[time, batch, ...]``.
      sequence_length: integer vector ``[batch]``: past its end a row's outputs are zeros, and its state stays as it is.
      initial_state: of the structure of the cell's state; default: its zero state.
      dtype: of the zero state.
      parallel_iterations: how many steps a dataflow executor may overlap; default: 32.
      swap_memory: taken for TensorFlow's sake.
      time_major: the layout of inputs and outputs.
      scope: variable scope; default: ``rnn``.

    Returns:
      ``(outputs, state)``: the outputs of all steps, in the layout of the inputs, and the state after the last one.

    Raises:
      TypeError: ``cell`` is no cell. InvalidArgumentError: neither a state nor a dtype. ShapeError: inputs of a rank below 2 or
      with an unknown depth; lengths that are no vector.
    """
    check_cell("cell", cell)
    with _tf.variable_scope(scope or "rnn"):
        flat = [_tf.convert_to_tensor(x) for x in nest.flatten(inputs)]
        if not flat:
            raise InvalidArgumentError("dynamic_rnn: no inputs")
        for tensor in flat:
            if tensor.shape.rank is not None and tensor.shape.rank < 2:
                raise ShapeError("inputs must be of rank 2 or more", got=f"{tensor.name} of shape {tensor.shape}")
        if not time_major:
            flat = [swapped(x) for x in flat]
        check_depth("dynamic_rnn", flat, 2, "numbers after batch and time")
        batch_size = batch_of(flat, 1)
        state = initial(cell, initial_state, batch_size, dtype)
        carried, arrays = parted(state)
        rows, count = list(flat), None
        lengths = None if sequence_length is None else lengths_of(sequence_length)
        if lengths is not None:
            time = _tf.cast(_tf.range(_tf.shape(flat[0])[0]), lengths.dtype)
            longest = _tf.maximum(
                _tf.reduce_max(lengths), _tf.constant(1, lengths.dtype)
            )  # TensorFlow runs one of none
            rows = [_tf.where(time < longest, x, _tf.zeros_like(x)) for x in flat]  # for devices that run all
            rows.append(time[:, None] >= lengths[None, :])
            count = _tf.cast(_tf.minimum(longest, _tf.cast(_tf.size(time), lengths.dtype)), _tf.int32)
        outputs_like: list[Any] = []

        def step(variables: list[Any], elements: list[Any]) -> tuple[list[Any], list[Any]]:
            variables, lists = variables[: len(carried)], variables[len(carried) :]
            before = joined(state, variables, behind(arrays, lists))
            output, following = one_step(cell, nest.pack_sequence_as(inputs, elements[: len(flat)]), before)
            outputs_like.append(output)
            kept, (after, written) = nest.flatten(output), parted(following)
            if lengths is not None:
                kept = copied_through(elements[-1], [_tf.zeros_like(t) for t in kept], kept)
                after = copied_through(elements[-1], variables, after)
            return [*after, *flows(written)], kept

        last, stacked = _ops.scan_loop(
            step,
            [*carried, *flows(arrays)],
            rows,
            element_shapes=lambda kept: [dims_outside(t, batch_size) for t in kept],
            count=count,
            parallel_iterations=parallel_iterations or 32,
        )
        for tensor, known in zip(last, carried, strict=False):
            tensor.set_shape(known.shape)
        outputs = stacked if time_major else [swapped(x) for x in stacked]
        final = joined(state, last[: len(carried)], behind(arrays, last[len(carried) :]))
        return nest.pack_sequence_as(outputs_like[0], outputs), final


def swapped(tensor: Any) -> Any:
    """The tensor with its first two dims exchanged; of unknown rank too."""
    rank = tensor.shape.rank
    if rank is not None and rank < 2:
        return tensor
    if rank is None:
        return _tf.transpose(tensor, _tf.concat([[1, 0], _tf.range(2, _tf.rank(tensor))], 0))
    return _tf.transpose(tensor, [1, 0, *range(2, rank)])
