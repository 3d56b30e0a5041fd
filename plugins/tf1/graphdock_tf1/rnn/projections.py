"""Cells of ``tf.contrib.rnn`` around a cell: embeddings and projections of what goes in and comes out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import graphdock as _tf
from graphdock import nest
from graphdock.errors import InvalidArgumentError

from graphdock_tf1.rnn.cell import CellAround, depth_of


def linear(parts: list[Any], size: int) -> Any:
    """The parts side by side times ``kernel``, plus ``bias``: variables of the scope."""
    depth = sum(depth_of(p.shape) for p in parts)
    kernel = _tf.get_variable("kernel", [depth, size], parts[0].dtype)
    bias = _tf.get_variable("bias", [size], parts[0].dtype, _tf.zeros_initializer(dtype=parts[0].dtype))
    return _tf.nn.bias_add(_tf.matmul(parts[0] if len(parts) == 1 else _tf.concat(parts, 1), kernel), bias)


class EmbeddingWrapper(CellAround):
    """A cell whose inputs are integers, ``[batch]`` or ``[batch, 1]``: rows of a variable ``embedding``.

    Args:
      cell: the cell inside.
      embedding_classes: how many rows. ``embedding_size``: their size.
      initializer: of the rows; default: the scope's, else uniform with variance 1.
      reuse: as of BasicRNNCell.
    """

    def __init__(
        self, cell: Any, embedding_classes: int, embedding_size: int, initializer: Any = None, reuse: Any = None
    ) -> None:
        super().__init__(cell, reuse)
        if embedding_classes <= 0 or embedding_size <= 0:
            raise InvalidArgumentError(
                "embedding_classes and embedding_size must be above 0", got=f"{embedding_classes}, {embedding_size}"
            )
        self._classes, self._size, self._initializer = embedding_classes, embedding_size, initializer

    def call(self, inputs: Any, state: Any) -> Any:  # type: ignore[override]
        initializer = self._initializer or _tf.get_variable_scope().initializer
        if initializer is None:
            initializer = _tf.random_uniform_initializer(-math.sqrt(3), math.sqrt(3))
        dtype = next(iter(nest.flatten(state))).dtype
        embedding = _tf.get_variable("embedding", [self._classes, self._size], dtype, initializer)
        return self._cell(_tf.nn.embedding_lookup(embedding, _tf.reshape(inputs, [-1])), state)


class InputProjectionWrapper(CellAround):
    """A cell whose inputs go through a linear function first.

    Args:
      cell: the cell inside. ``num_proj``: the size of its inputs.
      activation: of them; default: none. ``input_size``: taken and without effect.
      reuse: as of BasicRNNCell.
    """

    def __init__(
        self,
        cell: Any,
        num_proj: int,
        activation: Callable[[Any], Any] | None = None,
        input_size: int | None = None,
        reuse: Any = None,
    ) -> None:
        super().__init__(cell, reuse)
        self._num_proj, self._activation = num_proj, activation

    def call(self, inputs: Any, state: Any) -> Any:  # type: ignore[override]
        projected = linear([inputs], self._num_proj)
        return self._cell(projected if self._activation is None else self._activation(projected), state)


class OutputProjectionWrapper(CellAround):
    """A cell whose outputs go through a linear function.

    Args:
      cell: the cell inside. ``output_size``: the size of the outputs.
      activation: of them; default: none.
      reuse: as of BasicRNNCell.
    """

    def __init__(
        self, cell: Any, output_size: int, activation: Callable[[Any], Any] | None = None, reuse: Any = None
    ) -> None:
        super().__init__(cell, reuse)
        if output_size < 1:
            raise InvalidArgumentError("output_size must be above 0", got=str(output_size))
        self._output_size, self._activation = output_size, activation

    @property
    def output_size(self) -> int:
        return self._output_size

    def call(self, inputs: Any, state: Any) -> Any:  # type: ignore[override]
        output, following = self._cell(inputs, state)
        projected = linear([output], self._output_size)
        return projected if self._activation is None else self._activation(projected), following
