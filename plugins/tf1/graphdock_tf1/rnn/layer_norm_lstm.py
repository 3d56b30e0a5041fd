"""LayerNormBasicLSTMCell: an LSTM whose gates and memory are normalised."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphdock as _tf
from graphdock_std.grad_support import is_tensor

from graphdock_tf1.rnn.cell import LSTMStateTuple, RNNCell, depth_of

_EPSILON = 1e-12


class LayerNormBasicLSTMCell(RNNCell):
    """An LSTM with layer normalisation (https://arxiv.org/abs/1607.06450) and dropout of what is learnt
    (https://arxiv.org/abs/1603.05118).

    Args:
      num_units: size of the output and of each state.
      forget_bias: added to what the forget gate sees.
      input_size: taken and without effect.
      activation: of the input and the output.
      layer_norm: whether the gates and the memory are normalised, each with ``gamma`` and ``beta`` of its own below ``input``,
        ``transform``, ``forget``, ``output`` and ``state``.
      norm_gain, norm_shift: what ``gamma`` and ``beta`` begin with.
      dropout_keep_prob: with which probability what enters the memory stays; ``dropout_prob_seed`` its seed.
      reuse: as of BasicRNNCell.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        input_size: int | None = None,
        activation: Callable[[Any], Any] = _tf.tanh,
        layer_norm: bool = True,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
        dropout_keep_prob: Any = 1.0,
        dropout_prob_seed: int | None = None,
        reuse: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units = num_units
        self._forget_bias = forget_bias
        self._activation = activation
        self._layer_norm = layer_norm
        self._gain = norm_gain
        self._shift = norm_shift
        self._keep = dropout_keep_prob
        self._seed = dropout_prob_seed

    @property
    def state_size(self) -> LSTMStateTuple:
        return LSTMStateTuple(self._num_units, self._num_units)

    @property
    def output_size(self) -> int:
        return self._num_units

    def _norm(self, x: Any, scope: str) -> Any:
        if not self._layer_norm:
            return x
        with _tf.variable_scope(scope):
            gamma = _tf.get_variable("gamma", [self._num_units], x.dtype, _tf.constant_initializer(self._gain))
            beta = _tf.get_variable("beta", [self._num_units], x.dtype, _tf.constant_initializer(self._shift))
            return _tf.nn.layer_norm(x, gamma, beta, epsilon=_EPSILON)

    def call(self, inputs: Any, state: Any) -> Any:  # type: ignore[override]
        c, h = state
        units, dtype = self._num_units, inputs.dtype
        kernel = _tf.get_variable("kernel", [depth_of(inputs.shape) + units, 4 * units], dtype)
        gates = _tf.matmul(_tf.concat([inputs, h], 1), kernel)
        if not self._layer_norm:
            gates = _tf.nn.bias_add(gates, _tf.get_variable("bias", [4 * units], dtype))
        parts = zip(_tf.split(gates, 4, 1), ("input", "transform", "forget", "output"), strict=True)
        i, j, f, o = [self._norm(part, scope) for part, scope in parts]
        new = self._activation(j)
        if is_tensor(self._keep) or self._keep < 1:
            new = _tf.nn.dropout(new, keep_prob=self._keep, seed=self._seed)
        c = self._norm(c * _tf.sigmoid(f + self._forget_bias) + _tf.sigmoid(i) * new, "state")
        h = self._activation(c) * _tf.sigmoid(o)
        return h, LSTMStateTuple(c, h)
