"""AttentionWrapper: a cell that attends to a memory in every step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import graphdock as _tf
from graphdock import nest
from graphdock.errors import InvalidArgumentError
from graphdock.typing import DTypeLike, TensorLike

from graphdock_tf1.layers.dense import Dense
from graphdock_tf1.rnn.cell import RNNCell, check_cell, zeros_of


class AttentionWrapperState(NamedTuple):
    """The state of an AttentionWrapper.

    Attributes:
      cell_state: the cell's. ``time``: the number of the step.
      attention: what it attended to in the step before, ``[batch, n]``.
      alignments: how much each row of the memory counted. ``attention_state``: the mechanism's.
      alignment_history: of all steps so far, one TensorArray per mechanism, whose ``stack()`` is ``[time, batch, rows]``; empty
        where the wrapper keeps none.
    """

    cell_state: Any
    attention: Any
    time: Any
    alignments: Any
    alignment_history: Any
    attention_state: Any

    def clone(self, **changes: Any) -> AttentionWrapperState:
        """The same state with other parts, such as ``cell_state=``."""
        return self._replace(**changes)


class AttentionWrapper(RNNCell):
    """A cell that reads its inputs and what it attended to before, and attends to a memory by its output.

    Args:
      cell: the cell inside.
      attention_mechanism: one, or a list of them.
      attention_layer_size: the size of the attention, made of output and context by a layer; of a list one each. None: the context.
      alignment_history: whether the state keeps the alignments of all steps.
      cell_input_fn: of the inputs and the attention: what the cell reads; default: both side by side.
      output_attention: whether the output is the attention; otherwise it is the cell's.
      initial_cell_state: the cell's state in :meth:`zero_state`.
      name: of the variable scope; default: ``attention_wrapper``.

    Raises:
      TypeError: no cell or no mechanism. InvalidArgumentError: another number of sizes than of mechanisms.
    """

    def __init__(
        self,
        cell: Any,
        attention_mechanism: Any,
        attention_layer_size: Any = None,
        alignment_history: bool = False,
        cell_input_fn: Callable[[Any, Any], Any] | None = None,
        output_attention: bool = True,
        initial_cell_state: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(name=name)
        check_cell("cell", cell)
        self._keeps = alignment_history
        self._is_multi = isinstance(attention_mechanism, list | tuple)
        self._mechanisms = list(attention_mechanism) if self._is_multi else [attention_mechanism]
        for mechanism in self._mechanisms:
            if not hasattr(mechanism, "alignments_size"):
                raise TypeError(
                    f"attention_mechanism must be an AttentionMechanism, saw type: {type(mechanism).__name__}"
                )
        self._layers: list[Any] = [None] * len(self._mechanisms)
        sizes = [m.values.shape.as_list()[-1] for m in self._mechanisms]
        if attention_layer_size is not None:
            sizes = (
                list(attention_layer_size) if isinstance(attention_layer_size, list | tuple) else [attention_layer_size]
            )
            if len(sizes) != len(self._mechanisms):
                raise InvalidArgumentError(
                    "attention_layer_size must hold one size per mechanism",
                    expected=str(len(self._mechanisms)),
                    got=str(len(sizes)),
                )
            self._layers = [
                Dense(size, name="attention_layer", use_bias=False, dtype=m.dtype)
                for size, m in zip(sizes, self._mechanisms, strict=True)
            ]
        self._size: int = sum(sizes)
        self._cell = cell
        self._cell_input_fn = cell_input_fn or (lambda inputs, attention: _tf.concat([inputs, attention], -1))
        self._output_attention = output_attention
        self._initial: Any = None
        if initial_cell_state is not None:
            self._initial = nest.pack_sequence_as(
                initial_cell_state, [_tf.identity(s) for s in nest.flatten(initial_cell_state)]
            )

    def _one_or_all(self, found: list[Any]) -> Any:
        return tuple(found) if self._is_multi else found[0]

    @property
    def output_size(self) -> Any:
        return self._size if self._output_attention else self._cell.output_size

    @property
    def state_size(self) -> AttentionWrapperState:
        return AttentionWrapperState(
            self._cell.state_size,
            self._size,
            _tf.TensorShape([]),
            self._one_or_all([m.alignments_size for m in self._mechanisms]),
            self._one_or_all([m.alignments_size if self._keeps else () for m in self._mechanisms]),
            self._one_or_all([m.state_size for m in self._mechanisms]),
        )

    def zero_state(self, batch_size: Any, dtype: DTypeLike) -> AttentionWrapperState:
        """The state to begin with: of ``initial_cell_state``, if that was given."""
        with _tf.name_scope(type(self).__name__ + "ZeroState"):
            alignments = [m.initial_alignments(batch_size, dtype) for m in self._mechanisms]
            return AttentionWrapperState(
                self._cell.zero_state(batch_size, dtype) if self._initial is None else self._initial,
                zeros_of(self._size, batch_size, dtype),
                _tf.zeros([], _tf.int32),
                self._one_or_all(alignments),
                self._one_or_all([_array_of(like) if self._keeps else () for like in alignments]),
                self._one_or_all([m.initial_state(batch_size, dtype) for m in self._mechanisms]),
            )

    def call(self, inputs: Any, state: Any) -> Any:  # type: ignore[override]
        if not isinstance(state, AttentionWrapperState):
            raise TypeError(
                f"Expected state to be instance of AttentionWrapperState. Received type {type(state)} instead."
            )
        output, cell_state = self._cell(self._cell_input_fn(inputs, state.attention), state.cell_state)
        before = list(state.attention_state) if self._is_multi else [state.attention_state]
        kept = list(state.alignment_history) if self._is_multi else [state.alignment_history]
        attentions, alignments, states = [], [], []
        for mechanism, layer, past in zip(self._mechanisms, self._layers, before, strict=True):
            weights, after = mechanism(output, state=past)
            context = _tf.squeeze(_tf.matmul(weights[:, None], mechanism.values), [1])
            attentions.append(context if layer is None else layer(_tf.concat([output, context], 1)))
            alignments.append(weights)
            states.append(after)
        attention = attentions[0] if len(attentions) == 1 else _tf.concat(attentions, 1)
        following = AttentionWrapperState(
            cell_state,
            attention,
            state.time + 1,
            self._one_or_all(alignments),
            self._one_or_all(
                [a.write(state.time, w) if self._keeps else a for a, w in zip(kept, alignments, strict=True)]
            ),
            self._one_or_all(states),
        )
        return attention if self._output_attention else output, following


def _array_of(like: Any) -> Any:
    """An empty array of tensors like one, as long as there are steps."""
    return _tf.TensorArray(like.dtype, 0, dynamic_size=True, clear_after_read=False, element_shape=like.shape)


def tile_batch(t: Any, multiplier: int, name: str | None = None) -> Any:
    """Each row of a batch so many times, one after the other.

    Args:
      t: tensor ``[batch, ...]``, or a structure of such.
      multiplier: how often.

    Returns:
      Tensors ``[batch * multiplier, ...]``.
    """

    def tiled(value: TensorLike) -> Any:
        tensor = _tf.convert_to_tensor(value)
        shape = _tf.shape(tensor)
        rank = tensor.shape.rank
        if rank is None:
            raise InvalidArgumentError("tile_batch must know the rank", got=tensor.name)
        many = _tf.tile(tensor[:, None], [1, multiplier, *[1] * (rank - 1)])
        made = _tf.reshape(many, _tf.concat([shape[:1] * multiplier, shape[1:]], 0))
        dims = tensor.shape.as_list()
        made.set_shape([None if dims[0] is None else dims[0] * multiplier, *dims[1:]])
        return made

    with _tf.name_scope(name or "tile_batch"):
        return nest.pack_sequence_as(t, [tiled(x) for x in nest.flatten(t)])
