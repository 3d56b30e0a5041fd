"""BasicRNNCell and GRUCell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphdock as _tf
from graphdock.typing import DTypeLike

from graphdock_tf1.layers.lookup import initializer_of
from graphdock_tf1.rnn.cell import UnitsCell, depth_of


def affine(parts: list[Any], kernel: Any, bias: Any) -> Any:
    """The parts, side by side, times a matrix, plus a bias."""
    return _tf.nn.bias_add(_tf.matmul(_tf.concat(parts, 1), kernel), bias)


class BasicRNNCell(UnitsCell):
    """``output = next_state = activation([inputs, state] @ kernel + bias)``.

    Args:
      num_units: size of the output and the state.
      activation: function of a tensor, or its name; default: tanh.
      reuse: True: its variables must exist; ``tf.AUTO_REUSE``: they are made where they do not.
      name: of its variable scope; default: ``basic_rnn_cell``.
      dtype: of its variables; default: that of the inputs.
    """

    def __init__(
        self,
        num_units: int,
        activation: Callable[[Any], Any] | str | None = None,
        reuse: Any = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
        **keywords: Any,
    ) -> None:
        super().__init__(num_units, activation, reuse, name, dtype, **keywords)
        self._weights: Any = None

    def build(self, inputs_shape: Any) -> None:
        self._weights = self._affine(inputs_shape, self._num_units)
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:  # type: ignore[override]
        output = self._activation(affine([inputs, state], *self._weights))
        return output, output


class GRUCell(UnitsCell):
    """A gated recurrent unit (Cho et al. 2014, https://arxiv.org/abs/1406.1078), with the reset gate before the product.

    Args:
      num_units: size of the output and the state.
      activation: of the candidate; default: tanh.
      reuse, name, dtype: as of BasicRNNCell; the default name is ``gru_cell``.
      kernel_initializer, bias_initializer: of both kernels and biases; by default the biases of the gates begin with ones.
    """

    #: Names of kernel and bias, of the gates and of the candidate.
    _named = ("gates/kernel", "gates/bias"), ("candidate/kernel", "candidate/bias")

    def __init__(
        self,
        num_units: int,
        activation: Callable[[Any], Any] | str | None = None,
        reuse: Any = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
        **keywords: Any,
    ) -> None:
        super().__init__(num_units, activation, reuse, name, dtype, **keywords)
        self._kernel_initializer = initializer_of(kernel_initializer)
        self._bias_initializer = initializer_of(bias_initializer)
        self._gates: Any = None
        self._candidate: Any = None

    def build(self, inputs_shape: Any) -> None:
        units, dtype = self._num_units, self.dtype or _tf.float32
        depth = depth_of(inputs_shape) + units

        def pair(kernel: str, bias: str, size: int, begins: Any) -> tuple[Any, Any]:
            weight = self.add_weight(kernel, [depth, size], initializer=self._kernel_initializer)
            return weight, self.add_weight(bias, [size], initializer=self._bias_initializer or begins)

        gates, candidate = self._named
        self._gates = pair(*gates, 2 * units, _tf.constant_initializer(1.0, dtype=dtype))
        self._candidate = pair(*candidate, units, _tf.zeros_initializer(dtype=dtype))
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:  # type: ignore[override]
        reset, update = _tf.split(_tf.sigmoid(affine([inputs, state], *self._gates)), 2, 1)
        candidate = self._activation(affine([inputs, reset * state], *self._candidate))
        output = update * state + (1 - update) * candidate
        return output, output
