"""Attention over a memory: Bahdanau's and Luong's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import graphdock as _tf
from graphdock.errors import ShapeError
from graphdock.typing import DTypeLike, TensorLike

from graphdock_tf1.layers.dense import Dense


class AttentionMechanism(ABC):
    """Mechanism that an AttentionWrapper asks how much each row of a memory counts for a query.

    Args:
      memory: tensor ``[batch, rows, n]``.
      memory_sequence_length: integer vector ``[batch]``: rows past a length count nothing, and are zeros.
      memory_layer: what makes keys of the memory; None: the memory itself.
      probability_fn: of scores ``[batch, rows]``; default: softmax. ``score_mask_value``: the score of rows that count nothing.

    Attributes:
      values: the memory ``[batch, rows, n]``. ``keys``: what queries are compared with, ``[batch, rows, k]``.
    """

    def __init__(
        self,
        memory: TensorLike,
        memory_sequence_length: TensorLike | None = None,
        memory_layer: Any = None,
        probability_fn: Callable[[Any], Any] | None = None,
        score_mask_value: float | None = None,
        dtype: DTypeLike = _tf.float32,
    ) -> None:
        values = _tf.convert_to_tensor(memory)
        if values.shape.rank not in (None, 3):
            raise ShapeError("memory must be [batch, rows, n]", got=str(values.shape))
        self._lengths = memory_sequence_length
        self._mask: Any = None
        if memory_sequence_length is not None:
            self._mask = _tf.sequence_mask(memory_sequence_length, _tf.shape(values)[1])
            masked = values * _tf.cast(self._mask, values.dtype)[:, :, None]
            masked.set_shape(values.shape)
            values = masked
        self.values = values
        self.keys = values if memory_layer is None else memory_layer(values)
        self.memory_layer = memory_layer
        self.dtype = _tf.as_dtype(dtype)
        self._probability_fn = probability_fn or _tf.nn.softmax
        self._mask_value = float("-inf") if score_mask_value is None else score_mask_value

    @property
    def batch_size(self) -> Any:
        known = self.keys.shape.as_list()[0]
        return _tf.shape(self.keys)[0] if known is None else known

    @property
    def alignments_size(self) -> Any:
        """The number of rows: a number, or an int32 scalar."""
        known = self.keys.shape.as_list()[1]
        return _tf.shape(self.keys)[1] if known is None else known

    @property
    def state_size(self) -> Any:
        return self.alignments_size

    def initial_alignments(self, batch_size: Any, dtype: DTypeLike) -> Any:
        """Zeros ``[batch, rows]``."""
        made = _tf.zeros(_tf.stack([batch_size, self.alignments_size]), dtype)
        made.set_shape([None if isinstance(batch_size, _tf.Tensor) else batch_size, self.keys.shape.as_list()[1]])
        return made

    def initial_state(self, batch_size: Any, dtype: DTypeLike) -> Any:
        return self.initial_alignments(batch_size, dtype)

    def _weighed(self, scores: Any) -> tuple[Any, Any]:
        """``(alignments, next state)`` of scores."""
        if self._mask is not None:
            scores = _tf.where(
                self._mask, scores, _tf.fill(_tf.shape(scores), _tf.cast(self._mask_value, scores.dtype))
            )
        alignments = self._probability_fn(scores)
        return alignments, alignments

    @abstractmethod
    def __call__(self, query: Any, state: Any) -> tuple[Any, Any]:
        """``(alignments, next state)``: how much each row counts for the query ``[batch, q]``, ``[batch, rows]``."""


class BahdanauAttention(AttentionMechanism):
    """``v . tanh(keys + query)``, keys and query each times a matrix (https://arxiv.org/abs/1409.0473).

    Args:
      num_units: the size in which keys and query are compared.
      memory, memory_sequence_length, probability_fn, score_mask_value: as of AttentionMechanism.
      normalize: ``v`` has a length of its own and the sum a bias (https://arxiv.org/abs/1602.07868).
      dtype: of the layers of query and memory.
      name: taken for TensorFlow's sake.
    """

    def __init__(
        self,
        num_units: int,
        memory: TensorLike,
        memory_sequence_length: TensorLike | None = None,
        normalize: bool = False,
        probability_fn: Callable[[Any], Any] | None = None,
        score_mask_value: float | None = None,
        dtype: DTypeLike | None = None,
        name: str = "BahdanauAttention",
    ) -> None:
        dtype = dtype or _tf.float32
        layer = Dense(num_units, name="memory_layer", use_bias=False, dtype=dtype)
        super().__init__(memory, memory_sequence_length, layer, probability_fn, score_mask_value, dtype)
        self.query_layer = Dense(num_units, name="query_layer", use_bias=False, dtype=dtype)
        self._num_units = num_units
        self._normalize = normalize

    def __call__(self, query: Any, state: Any) -> tuple[Any, Any]:
        with _tf.variable_scope(None, "bahdanau_attention"):
            units = self._num_units
            total = self.keys + self.query_layer(query)[:, None]
            v = _tf.get_variable("attention_v", [units], query.dtype)
            if self._normalize:
                start = _tf.constant_initializer(units**-0.5)
                g = _tf.get_variable("attention_g", [], query.dtype, start)
                v = g * v * _tf.rsqrt(_tf.reduce_sum(_tf.square(v)))
                total = total + _tf.get_variable("attention_b", [units], query.dtype, _tf.zeros_initializer())
            return self._weighed(_tf.reduce_sum(v * _tf.tanh(total), 2))


class LuongAttention(AttentionMechanism):
    """``keys . query``, the keys times a matrix (https://arxiv.org/abs/1508.04025).

    Args:
      num_units: the size of the queries.
      memory, memory_sequence_length, probability_fn, score_mask_value: as of AttentionMechanism.
      scale: the scores are times a variable.
      dtype: of the memory's layer.
      name: taken for TensorFlow's sake.
    """

    def __init__(
        self,
        num_units: int,
        memory: TensorLike,
        memory_sequence_length: TensorLike | None = None,
        scale: bool = False,
        probability_fn: Callable[[Any], Any] | None = None,
        score_mask_value: float | None = None,
        dtype: DTypeLike | None = None,
        name: str = "LuongAttention",
    ) -> None:
        dtype = dtype or _tf.float32
        layer = Dense(num_units, name="memory_layer", use_bias=False, dtype=dtype)
        super().__init__(memory, memory_sequence_length, layer, probability_fn, score_mask_value, dtype)
        self._scale = scale

    def __call__(self, query: Any, state: Any) -> tuple[Any, Any]:
        with _tf.variable_scope(None, "luong_attention"):
            have, want = query.shape.as_list()[-1], self.keys.shape.as_list()[-1]
            if have != want:
                raise ShapeError(
                    "the query is not as deep as the keys",
                    expected=str(want),
                    got=str(have),
                    hint="give LuongAttention num_units of the cell's output",
                )
            scores = _tf.squeeze(_tf.matmul(query[:, None], self.keys, transpose_b=True), [1])
            if self._scale:
                scores = _tf.get_variable("attention_g", [], query.dtype, _tf.ones_initializer()) * scores
            return self._weighed(scores)
