"""Networks that read a sequence in both directions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import graphdock as _tf
from graphdock import nest
from graphdock.errors import InvalidArgumentError
from graphdock.typing import DTypeLike, TensorLike

from graphdock_tf1.rnn.cell import check_cell
from graphdock_tf1.rnn.dynamic import dynamic_rnn
from graphdock_tf1.rnn.static import static_rnn


def bidirectional_dynamic_rnn(
    cell_fw: Any,
    cell_bw: Any,
    inputs: Any,
    sequence_length: TensorLike | None = None,
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: DTypeLike | None = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[Any, Any]:
    """Run one cell forwards and another backwards over every step of ``inputs``.

    Args:
      cell_fw, cell_bw: RNNCells.
      initial_state_fw, initial_state_bw: their states; default: their zero states.
      scope: variable scope; default: ``bidirectional_rnn``, with ``fw`` and ``bw`` below it.
      The others are those of :func:`dynamic_rnn`; a row is reversed within its length.

    Returns:
      ``((outputs_fw, outputs_bw), (state_fw, state_bw))``, the outputs of both in the order of the inputs.

    Raises:
      As :func:`dynamic_rnn`.
    """
    check_cell("cell_fw", cell_fw)
    check_cell("cell_bw", cell_bw)
    time_axis, batch_axis = (0, 1) if time_major else (1, 0)

    def backwards(tensor: Any) -> Any:
        if sequence_length is None:
            return _tf.reverse(tensor, [time_axis])
        return _tf.reverse_sequence(tensor, sequence_length, seq_axis=time_axis, batch_axis=batch_axis)

    def run(cell: Any, x: Any, state: Any, below: Any) -> tuple[Any, Any]:
        return dynamic_rnn(
            cell, x, sequence_length, state, dtype, parallel_iterations, swap_memory, time_major, scope=below
        )

    with _tf.variable_scope(scope or "bidirectional_rnn"):
        with _tf.variable_scope("fw") as below:
            outputs_fw, state_fw = run(cell_fw, inputs, initial_state_fw, below)
        with _tf.variable_scope("bw") as below:
            reversed_ = nest.map_structure(lambda x: backwards(_tf.convert_to_tensor(x)), inputs)
            outputs_bw, state_bw = run(cell_bw, reversed_, initial_state_bw, below)
    return (outputs_fw, nest.map_structure(backwards, outputs_bw)), (state_fw, state_bw)


def static_bidirectional_rnn(
    cell_fw: Any,
    cell_bw: Any,
    inputs: Sequence[Any],
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: DTypeLike | None = None,
    sequence_length: TensorLike | None = None,
    scope: Any = None,
) -> tuple[list[Any], Any, Any]:
    """Run one cell forwards and another backwards over a list of inputs.

    Args:
      As of :func:`bidirectional_dynamic_rnn`; ``inputs`` is a list of tensors ``[batch, n]``.

    Returns:
      ``(outputs, state_fw, state_bw)``: for each step the outputs of both, side by side.

    Raises:
      As :func:`static_rnn`.
    """
    check_cell("cell_fw", cell_fw)
    check_cell("cell_bw", cell_bw)
    if not isinstance(inputs, list | tuple):
        raise TypeError("inputs must be a sequence")
    if not inputs:
        raise InvalidArgumentError("inputs must not be empty")
    with _tf.variable_scope(scope or "bidirectional_rnn"):
        with _tf.variable_scope("fw") as below:
            forwards, state_fw = static_rnn(cell_fw, inputs, initial_state_fw, dtype, sequence_length, scope=below)
        with _tf.variable_scope("bw") as below:
            reversed_ = _backwards(inputs, sequence_length)
            found, state_bw = static_rnn(cell_bw, reversed_, initial_state_bw, dtype, sequence_length, scope=below)
    outputs = [
        nest.pack_sequence_as(
            fw, [_tf.concat(pair, 1) for pair in zip(nest.flatten(fw), nest.flatten(bw), strict=True)]
        )
        for fw, bw in zip(forwards, _backwards(found, sequence_length), strict=True)
    ]
    return outputs, state_fw, state_bw


def _backwards(steps: Sequence[Any], lengths: Any) -> list[Any]:
    """The steps in reverse order, of each row within its length."""
    if lengths is None:
        return list(reversed(steps))
    found = []
    for same in zip(*map(nest.flatten, steps), strict=True):
        whole = _tf.reverse_sequence(_tf.stack(same), lengths, seq_axis=0, batch_axis=1)
        found.append(_tf.unstack(whole))
    return [nest.pack_sequence_as(steps[0], flat) for flat in zip(*found, strict=True)]


def stack_bidirectional_dynamic_rnn(
    cells_fw: Sequence[Any],
    cells_bw: Sequence[Any],
    inputs: Any,
    initial_states_fw: Sequence[Any] | None = None,
    initial_states_bw: Sequence[Any] | None = None,
    dtype: DTypeLike | None = None,
    sequence_length: TensorLike | None = None,
    parallel_iterations: int | None = None,
    time_major: bool = False,
    scope: Any = None,
    swap_memory: bool = False,
) -> tuple[Any, Any, Any]:
    """Bidirectional networks on top of one another: each reads both outputs of the one below, side by side.

    Args:
      cells_fw, cells_bw: as many cells forwards as backwards, the lowest first.
      initial_states_fw, initial_states_bw: a state for each cell.
      scope: variable scope; default: ``stack_bidirectional_rnn``, with ``cell_0``, ``cell_1``, ... below it.
      The others are those of :func:`bidirectional_dynamic_rnn`.

    Returns:
      ``(outputs, states_fw, states_bw)``: the outputs of both highest cells side by side, and the last states of all.

    Raises:
      InvalidArgumentError: no cells, or another number backwards, or of states.
    """
    if not isinstance(cells_fw, list | tuple) or not isinstance(cells_bw, list | tuple) or not cells_fw:
        raise InvalidArgumentError("cells_fw and cells_bw must be lists of cells", got=f"{cells_fw}, {cells_bw}")
    if len(cells_fw) != len(cells_bw):
        raise InvalidArgumentError(
            "there must be as many cells backwards as forwards", expected=str(len(cells_fw)), got=str(len(cells_bw))
        )
    for name, states in (("initial_states_fw", initial_states_fw), ("initial_states_bw", initial_states_bw)):
        if states is not None and (not isinstance(states, list | tuple) or len(states) != len(cells_fw)):
            raise InvalidArgumentError(f"{name} must be a list of a state for each cell", got=str(states))
    states_fw, states_bw = [], []
    outputs = inputs
    with _tf.variable_scope(scope or "stack_bidirectional_rnn"):
        for i, (fw, bw) in enumerate(zip(cells_fw, cells_bw, strict=True)):
            with _tf.variable_scope(f"cell_{i}"):
                both, (state_fw, state_bw) = bidirectional_dynamic_rnn(
                    fw,
                    bw,
                    outputs,
                    sequence_length,
                    None if initial_states_fw is None else initial_states_fw[i],
                    None if initial_states_bw is None else initial_states_bw[i],
                    dtype,
                    parallel_iterations,
                    swap_memory,
                    time_major,
                )
                outputs = _tf.concat(both, 2)
            states_fw.append(state_fw)
            states_bw.append(state_bw)
    return outputs, tuple(states_fw), tuple(states_bw)
