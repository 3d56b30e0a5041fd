"""AttentionCellWrapper: a cell that attends to its own last outputs."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import nest
from graphdock.errors import InvalidArgumentError

from graphdock_tf1.rnn.cell import RNNCell, check_cell, depth_of
from graphdock_tf1.rnn.projections import linear


class AttentionCellWrapper(RNNCell):
    """A cell with attention over its last outputs (https://arxiv.org/abs/1601.06733).

    The state is ``(cell's state, attention, last outputs side by side)``, or these as one tensor.

    Args:
      cell: the cell inside.
      attn_length: over how many outputs.
      attn_size: the size of the outputs; default: the cell's.
      attn_vec_size: the size in which query and outputs are compared; default: ``attn_size``.
      input_size: the size of what the cell is given; default: that of the inputs.
      state_is_tuple: False: the state is one tensor ``[batch, all three]``, and so has to be the cell's.
      reuse: as of BasicRNNCell.
    """

    def __init__(
        self,
        cell: Any,
        attn_length: int,
        attn_size: int | None = None,
        attn_vec_size: int | None = None,
        input_size: int | None = None,
        state_is_tuple: bool = True,
        reuse: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        check_cell("cell", cell)
        if not state_is_tuple and nest.is_nested(cell.state_size):
            raise InvalidArgumentError(
                "Cell returns tuple of states, but the flag state_is_tuple is not set", got=str(cell.state_size)
            )
        if attn_length <= 0:
            raise InvalidArgumentError("attn_length should be greater than zero", got=str(attn_length))
        self._cell, self._tuple = cell, state_is_tuple
        self._length = attn_length
        self._size: int = attn_size or cell.output_size
        self._compared: int = attn_vec_size or self._size
        self._input_size = input_size

    @property
    def state_size(self) -> Any:
        sizes = self._cell.state_size, self._size, self._size * self._length
        return sizes if self._tuple else sum(sizes)

    @property
    def output_size(self) -> int:
        return self._size

    def call(self, inputs: Any, state: Any) -> Any:  # type: ignore[override]
        if not self._tuple:
            state = _tf.split(state, [self._cell.state_size, self._size, self._size * self._length], 1)
        inner, attention, flat = state
        last = _tf.reshape(flat, [-1, self._length, self._size])
        inputs = linear([inputs, attention], self._input_size or depth_of(inputs.shape))
        output, inner = self._cell(inputs, inner)
        attention = self._attention(_tf.concat(nest.flatten(inner), 1), last)
        with _tf.variable_scope("attn_output_projection"):
            output = linear([output, attention], self._size)
        last = _tf.concat([last[:, 1:], output[:, None]], 1)
        made = inner, attention, _tf.reshape(last, [-1, self._length * self._size])
        return output, made if self._tuple else _tf.concat(made, 1)

    def _attention(self, query: Any, last: Any) -> Any:
        """A mean of the last outputs, weighted by how well they fit the query."""
        with _tf.variable_scope("attention"):
            w = _tf.get_variable("attn_w", [1, 1, self._size, self._compared], query.dtype)
            v = _tf.get_variable("attn_v", [self._compared], query.dtype)
            keys = _tf.tensordot(last, _tf.reshape(w, [self._size, self._compared]), [[2], [0]])
            scores = _tf.reduce_sum(v * _tf.tanh(keys + linear([query], self._compared)[:, None]), 2)
            return _tf.reduce_sum(_tf.nn.softmax(scores)[:, :, None] * last, 1)
