"""NASCell: the recurrent cell that a search over architectures found (Zoph and Le, https://arxiv.org/abs/1611.01578)."""

from __future__ import annotations

from typing import Any

import graphdock as _tf

from graphdock_tf1.rnn.cell import LSTMStateTuple, RNNCell, depth_of


class NASCell(RNNCell):
    """A cell of eight sums of projections of input and state, combined in a tree.

    Args:
      num_units: size of the memory. num_proj: size of the output; None for ``num_units``.
      use_bias: add ``bias`` to the projections of the state (``use_biases`` is its older name).
      reuse: as of BasicRNNCell.

    Variables: ``recurrent_kernel``, ``kernel``, ``bias`` and, for ``num_proj``, ``projection_weights``.
    """

    def __init__(
        self,
        num_units: int,
        num_proj: int | None = None,
        use_bias: bool = False,
        reuse: Any = None,
        use_biases: bool = False,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units = num_units
        self._num_proj = num_proj
        self._use_bias = use_bias or use_biases

    @property
    def state_size(self) -> LSTMStateTuple:
        return LSTMStateTuple(self._num_units, self.output_size)

    @property
    def output_size(self) -> int:
        return self._num_proj or self._num_units

    def call(self, inputs: Any, state: Any) -> tuple[Any, LSTMStateTuple]:
        """``[batch, depth]`` and the state -> output and next state."""
        memory, before = state
        wide, dtype = 8 * self._num_units, inputs.dtype
        of_state = _tf.matmul(before, _tf.get_variable("recurrent_kernel", [self.output_size, wide], dtype))
        of_input = _tf.matmul(inputs, _tf.get_variable("kernel", [depth_of(inputs.shape), wide], dtype))
        if self._use_bias:
            of_state += _tf.get_variable("bias", [wide], dtype, _tf.zeros_initializer())
        m, i = _tf.split(of_state, 8, 1), _tf.split(of_input, 8, 1)
        sigmoid, tanh, relu = _tf.sigmoid, _tf.tanh, _tf.nn.relu
        first = tanh(sigmoid(i[0] + m[0]) * relu(i[1] + m[1]))
        second = tanh(sigmoid(i[2] + m[2]) + relu(i[3] * m[3]))
        third = tanh(tanh(i[4] + m[4]) * sigmoid(i[5] + m[5]))
        fourth = sigmoid(tanh(i[6] + m[6]) + sigmoid(i[7] + m[7]))
        memory = tanh(first + memory) * second
        output = tanh(memory * tanh(third + fourth))
        if self._num_proj is not None:
            output = _tf.matmul(
                output, _tf.get_variable("projection_weights", [self._num_units, self._num_proj], dtype)
            )
        return output, LSTMStateTuple(memory, output)
