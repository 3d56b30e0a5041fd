"""static_rnn: a cell over a list of steps, one after the other in the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import graphdock as _tf
from graphdock import nest
from graphdock.errors import InvalidArgumentError
from graphdock.typing import DTypeLike, TensorLike

from graphdock_tf1.rnn.arrays import behind, flows, joined, parted
from graphdock_tf1.rnn.cell import check_cell
from graphdock_tf1.rnn.steps import batch_of, check_depth, copied_through, dims_outside, initial, lengths_of, one_step


def static_rnn(
    cell: Any,
    inputs: Sequence[Any],
    initial_state: Any = None,
    dtype: DTypeLike | None = None,
    sequence_length: TensorLike | None = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """Run a cell over a list of inputs.

    The graph holds every step; the gradients by a weight of all of them are one product.

    Args:
      cell: an RNNCell.
      inputs: a tensor ``[batch, n]`` for each step, or a structure of such.
      initial_state: of the structure of the cell's state; default: its zero state.
      dtype: of the zero state.
      sequence_length: integer vector ``[batch]``: past its end a row's outputs are zeros, and its state stays as it is.
      scope: variable scope; default: ``rnn``.

    Returns:
      ``(outputs, state)``: a list of the outputs of all steps, and the state after the last one.

    Raises:
      TypeError: ``cell`` is no cell, ``inputs`` is no list. InvalidArgumentError: no inputs, or neither a state nor a dtype.
      ShapeError: inputs of an unknown depth; lengths that are no vector.
    """
    check_cell("cell", cell)
    if not isinstance(inputs, list | tuple):
        raise TypeError("inputs must be a sequence")
    if not inputs:
        raise InvalidArgumentError("inputs must not be empty")
    with _tf.variable_scope(scope or "rnn") as entered:
        steps = [nest.pack_sequence_as(x, [_tf.convert_to_tensor(t) for t in nest.flatten(x)]) for x in inputs]
        first = nest.flatten(steps[0])
        known = [t for x in steps for t in nest.flatten(x) if t.shape.rank is not None]
        check_depth("static_rnn", known, 1, "numbers after the batch")
        batch_size = batch_of(first, 0)
        state = initial(cell, initial_state, batch_size, dtype)
        lengths = None if sequence_length is None else lengths_of(sequence_length)
        outputs = []
        for time, x in enumerate(steps):
            if time > 0:
                entered.reuse_variables()
            if lengths is None:
                output, state = one_step(cell, x, state)
            else:
                output, state = _unless_over(cell, x, state, lengths <= _tf.constant(time, lengths.dtype), batch_size)
            outputs.append(output)
    return outputs, state


def _unless_over(cell: Any, x: Any, state: Any, finished: Any, batch_size: Any) -> tuple[Any, Any]:
    """A step that is run where a sequence goes on; behind all of them it gives zeros, and the state as it is."""
    before, arrays = parted(state)
    like: list[Any] = []

    def run() -> list[Any]:
        output, following = one_step(cell, x, state)
        like.extend([output, following])
        kept, (after, written) = nest.flatten(output), parted(following)
        kept = copied_through(finished, [_tf.zeros_like(t) for t in kept], kept)
        return [*kept, *flows(written), *copied_through(finished, before, after)]

    def nothing() -> list[Any]:
        kept = [_tf.zeros(dims_outside(t, batch_size), t.dtype) for t in nest.flatten(like[0])]
        return [*kept, *flows(arrays), *before]

    made = list(_tf.cond(_tf.logical_not(_tf.reduce_all(finished)), run, nothing, strict=True))
    count = len(nest.flatten(like[0]))
    kept, lists, after = made[:count], made[count : count + len(arrays)], made[count + len(arrays) :]
    return nest.pack_sequence_as(like[0], kept), joined(like[1], after, behind(arrays, lists))


def static_state_saving_rnn(
    cell: Any,
    inputs: Sequence[Any],
    state_saver: Any,
    state_name: Any,
    sequence_length: TensorLike | None = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """As :func:`static_rnn`, from a state that is kept between steps of the session.

    Args:
      state_saver: has ``state(name)``, the state to begin with, and ``save_state(name, state)``, an operation that keeps one.
      state_name: a name, or a structure of names like the cell's state. The other arguments are those of :func:`static_rnn`.

    Returns:
      As :func:`static_rnn`; the last output and the state wait for the saving.

    Raises:
      InvalidArgumentError: the names nest differently than the cell's state.
    """
    sizes = cell.state_size
    if not nest.same_structure(sizes, state_name):
        raise InvalidArgumentError(
            "state_name must be nested like cell.state_size", expected=str(sizes), got=str(state_name)
        )
    names = nest.flatten(state_name)
    start = nest.pack_sequence_as(sizes, [state_saver.state(name) for name in names])
    outputs, state = static_rnn(cell, inputs, initial_state=start, sequence_length=sequence_length, scope=scope)
    saving = [state_saver.save_state(name, part) for name, part in zip(names, nest.flatten(state), strict=True)]
    with _tf.control_dependencies(saving):
        outputs[-1] = nest.pack_sequence_as(outputs[-1], [_tf.identity(t) for t in nest.flatten(outputs[-1])])
        state = nest.pack_sequence_as(state, [_tf.identity(t) for t in nest.flatten(state)])
    return outputs, state
