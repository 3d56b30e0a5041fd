"""BasicLSTMCell and LSTMCell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphdock as _tf
from graphdock.typing import DTypeLike

from graphdock_tf1.layers.lookup import initializer_of
from graphdock_tf1.rnn.basic import affine
from graphdock_tf1.rnn.cell import LSTMStateTuple, UnitsCell


def parted(state: Any, sizes: LSTMStateTuple, is_tuple: bool) -> Any:
    """The two states, of a tuple or of one tensor that holds both side by side."""
    return state if is_tuple else _tf.split(state, [sizes.c, sizes.h], 1)


def joined(c: Any, h: Any, is_tuple: bool) -> Any:
    """The state of two parts."""
    return LSTMStateTuple(c, h) if is_tuple else _tf.concat([c, h], 1)


class BasicLSTMCell(UnitsCell):
    """A long short-term memory (Zaremba et al. 2014, https://arxiv.org/abs/1409.2329), without peepholes, clipping or projection.

    Args:
      num_units: size of the output and of each state.
      forget_bias: added to what the forget gate sees.
      state_is_tuple: the state is an LSTMStateTuple; otherwise one tensor ``[batch, 2 * num_units]``.
      activation: of the input and the output; default: tanh.
      reuse, name, dtype: as of BasicRNNCell; the default name is ``basic_lstm_cell``.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Callable[[Any], Any] | str | None = None,
        reuse: Any = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
        **keywords: Any,
    ) -> None:
        super().__init__(num_units, activation, reuse, name, dtype, **keywords)
        self._forget_bias = forget_bias
        self._state_is_tuple = state_is_tuple
        self._weights: Any = None

    @property
    def state_size(self) -> Any:
        sizes = LSTMStateTuple(self._num_units, self._num_units)
        return sizes if self._state_is_tuple else 2 * self._num_units

    def build(self, inputs_shape: Any) -> None:
        self._weights = self._affine(inputs_shape, 4 * self._num_units)
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:  # type: ignore[override]
        c, h = parted(state, LSTMStateTuple(self._num_units, self._num_units), self._state_is_tuple)
        i, j, f, o = _tf.split(affine([inputs, h], *self._weights), 4, 1)
        c = c * _tf.sigmoid(f + self._forget_bias) + _tf.sigmoid(i) * self._activation(j)
        h = self._activation(c) * _tf.sigmoid(o)
        return h, joined(c, h, self._state_is_tuple)


class LSTMCell(UnitsCell):
    """A long short-term memory with peepholes, clipping and a projection of its output (Sak et al. 2014).

    Args:
      num_units: size of the memory.
      use_peepholes: the gates see the memory too, through diagonal weights.
      cell_clip: the memory stays within so much on either side of 0.
      initializer: of the weights.
      num_proj: size of the output, which is then a linear function of what it would be.
      proj_clip: the output stays within so much on either side of 0.
      num_unit_shards, num_proj_shards: into how many parts the kernels are cut.
      forget_bias: added to what the forget gate sees.
      state_is_tuple: the state is an LSTMStateTuple; otherwise one tensor with both side by side.
      activation: of the input and the output; default: tanh.
      reuse, name, dtype: as of BasicRNNCell; the default name is ``lstm_cell``.
    """

    #: Gates in the order in which their diagonal weights are made: of forgetting, of the input, of the output.
    _peephole_order = "fio"

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        num_unit_shards: int | None = None,
        num_proj_shards: int | None = None,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Callable[[Any], Any] | str | None = None,
        reuse: Any = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
        **keywords: Any,
    ) -> None:
        super().__init__(num_units, activation, reuse, name, dtype, **keywords)
        self._use_peepholes = use_peepholes
        self._cell_clip = cell_clip
        self._initializer = initializer_of(initializer)
        self._num_proj = num_proj
        self._proj_clip = proj_clip
        self._num_unit_shards = num_unit_shards
        self._num_proj_shards = num_proj_shards
        self._forget_bias = forget_bias
        self._state_is_tuple = state_is_tuple
        self._weights: Any = None
        self._peepholes: Any = None
        self._projection: Any = None

    @property
    def _sizes(self) -> LSTMStateTuple:
        return LSTMStateTuple(self._num_units, self.output_size)

    @property
    def state_size(self) -> Any:
        return self._sizes if self._state_is_tuple else sum(self._sizes)

    @property
    def output_size(self) -> int:
        return self._num_proj or self._num_units

    def build(self, inputs_shape: Any) -> None:
        units = self._num_units
        cut = _cut(self._num_unit_shards)
        self._weights = self._affine(inputs_shape, 4 * units, initializer=self._initializer, partitioner=cut)
        if self._use_peepholes:
            self._peepholes = {
                gate: self.add_weight(f"w_{gate}_diag", [units], initializer=self._initializer)
                for gate in self._peephole_order
            }
        if self._num_proj is not None:
            self._projection = self.add_weight(
                "projection/kernel",
                [units, self._num_proj],
                initializer=self._initializer,
                partitioner=_cut(self._num_proj_shards),
            )
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:  # type: ignore[override]
        c, h = parted(state, self._sizes, self._state_is_tuple)
        i, j, f, o = _tf.split(affine([inputs, h], *self._weights), 4, 1)
        f = f + self._forget_bias
        if self._peepholes is not None:
            see = self._peepholes
            c = _tf.sigmoid(f + see["f"] * c) * c + _tf.sigmoid(i + see["i"] * c) * self._activation(j)
        else:
            c = _tf.sigmoid(f) * c + _tf.sigmoid(i) * self._activation(j)
        if self._cell_clip is not None:
            c = _tf.clip_by_value(c, -self._cell_clip, self._cell_clip)
        h = _tf.sigmoid(o if self._peepholes is None else o + self._peepholes["o"] * c) * self._activation(c)
        if self._projection is not None:
            h = _tf.matmul(h, self._projection)
            if self._proj_clip is not None:
                h = _tf.clip_by_value(h, -self._proj_clip, self._proj_clip)
        return h, joined(c, h, self._state_is_tuple)


def _cut(shards: int | None) -> Any:
    return None if shards is None else _tf.fixed_size_partitioner(shards)
