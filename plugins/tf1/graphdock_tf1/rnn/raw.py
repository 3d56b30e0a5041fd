"""raw_rnn: a cell in a loop whose inputs, states and outputs a function decides of in every step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphdock as _tf
from graphdock import nest
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError

from graphdock_tf1.rnn.arrays import behind, flows, joined, parted
from graphdock_tf1.rnn.cell import check_cell
from graphdock_tf1.rnn.steps import batch_of, check_nesting, copied_through


def raw_rnn(
    cell: Any,
    loop_fn: Callable[[Any, Any, Any, Any], tuple[Any, Any, Any, Any, Any]],
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    scope: Any = None,
) -> tuple[Any, Any, Any]:
    """Run a cell until a function says that all sequences have finished.

    Args:
      cell: an RNNCell.
      loop_fn: takes ``(time, cell_output, cell_state, loop_state)`` and returns ``(finished, next_input, next_cell_state, emitted,
        next_loop_state)``. It is called twice, now: before the first step, when all but ``time`` is None, with what the loop begins
        with; there ``emitted`` is a structure of tensors of the shape and dtype of one row, or None for the cell's output. And
        for each step, with its number plus one and what the cell made of the input and the state. ``finished`` is a bool vector
        ``[batch]``; ``loop_state`` is a structure of tensors, or None.
      parallel_iterations: how many steps a dataflow executor may overlap; default: 32.
      swap_memory: taken for TensorFlow's sake.
      scope: variable scope; default: ``rnn``.

    Returns:
      ``(emitted, state, loop_state)``: in the structure of what was emitted a TensorArray each, whose ``stack()`` is
      ``[time, batch, ...]``; and the last states. What a sequence emits once it has
      finished is zeros, and its state stays as it is.

    Raises:
      TypeError: ``cell`` is no cell, ``loop_fn`` is no function. InvalidArgumentError: no input or state to begin with, or what a
      step returns nests differently than what the loop began with.
    """
    check_cell("cell", cell)
    if not callable(loop_fn):
        raise TypeError(f"loop_fn must be callable, received: {type(loop_fn)}")
    with _tf.variable_scope(scope or "rnn"):
        finished, inputs, state, row, loop_state = loop_fn(_tf.constant(0), None, None, None)
        if finished is None or inputs is None or state is None:
            raise InvalidArgumentError(
                "raw_rnn: loop_fn has to return inputs and a state at time 0",
                got=f"finished={finished}, next_input={inputs}, next_cell_state={state}",
            )
        finished = _tf.convert_to_tensor(finished)
        given = [_tf.convert_to_tensor(x) for x in nest.flatten(inputs)]
        batch_size = batch_of(given, 0)
        states, arrays = parted(state)
        carried = [
            *map(_tf.convert_to_tensor, states),
            *map(_tf.convert_to_tensor, [] if loop_state is None else nest.flatten(loop_state)),
        ]
        count, like = len(states), {"emitted": row}

        def going_on(time: Any, over: Any, *_: Any) -> Any:
            return _tf.logical_not(_tf.reduce_all(over))

        def step(variables: list[Any], _: list[Any]) -> tuple[list[Any], list[Any]]:
            time, over, *rest = variables
            fed, rest = rest[: len(given)], rest[len(given) :]
            rest, lists = rest[: len(carried)], rest[len(carried) :]
            before = joined(state, rest[:count], behind(arrays, lists))
            own = None if loop_state is None else nest.pack_sequence_as(loop_state, rest[count:])
            output, after = cell(nest.pack_sequence_as(inputs, fed), before)
            done, following, after, emitted, own = loop_fn(time + 1, output, after, own)
            if row is None:
                like["emitted"] = output
            for what, a, b in (
                ("an input", inputs, following),
                ("a state", state, after),
                ("an output", like["emitted"], emitted),
            ):
                check_nesting(f"raw_rnn: loop_fn returned {what} that nests differently than at first", a, b)
            after, written = parted(after)
            kept = [_tf.convert_to_tensor(t) for t in nest.flatten(emitted)]
            kept = copied_through(over, [_tf.zeros_like(t) for t in kept], kept)
            after = copied_through(over, rest[:count], [_tf.convert_to_tensor(t) for t in after])
            last = rest[count:] if own is None else [_tf.convert_to_tensor(t) for t in nest.flatten(own)]
            over = _tf.logical_or(over, done)
            made = [
                time + 1,
                over,
                *map(_tf.convert_to_tensor, nest.flatten(following)),
                *after,
                *last,
                *flows(written),
            ]
            for new, old in zip(made, variables, strict=False):
                if new.shape.is_compatible_with(old.shape):
                    new.set_shape(old.shape)
            return made, kept

        last, stacked = _ops.scan_loop(
            step,
            [_tf.constant(0), finished, *given, *carried, *flows(arrays)],
            cond=going_on,
            element_shapes=lambda kept: [
                [batch_size if d is None and axis == 0 else d for axis, d in enumerate(t.shape.as_list())] for t in kept
            ],
            parallel_iterations=parallel_iterations or 32,
        )
        last, lists = last[2 + len(given) :][: len(carried)], last[2 + len(given) + len(carried) :]
        emitted = nest.pack_sequence_as(like["emitted"], [_array_of(rows) for rows in stacked])
        final = joined(state, last[:count], behind(arrays, lists))
        return emitted, final, None if loop_state is None else nest.pack_sequence_as(loop_state, last[count:])


def _array_of(rows: Any) -> Any:
    return _tf.TensorArray(rows.dtype, _tf.shape(rows)[0], clear_after_read=False).unstack(rows)
