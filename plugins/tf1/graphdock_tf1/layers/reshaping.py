"""Layers without variables: flatten and dropout."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import graphdock as _tf
from graphdock.typing import TensorLike

from graphdock_tf1.layers.base import Layer
from graphdock_tf1.layers.functional import called, choose, data_format_of
from graphdock_tf1.layers.input_spec import InputSpec


class Flatten(Layer):
    """A row per element of the batch. Arguments are those of :func:`flatten`."""

    def __init__(self, data_format: str = "channels_last", name: str | None = None, **keywords: Any) -> None:
        super().__init__(name=name, **keywords)
        data_format_of(data_format, 4)
        self.data_format = data_format
        self.input_spec = InputSpec(min_ndim=1)

    def call(self, inputs: Any) -> Any:
        rank = inputs.shape.rank
        if self.data_format == "channels_first" and rank is not None and rank > 2:
            inputs = _tf.transpose(inputs, [0, *range(2, rank), 1])
        if rank == 1:
            return _tf.expand_dims(inputs, 1)
        batch, row = self.compute_output_shape(inputs.shape).as_list()
        if row:
            return _tf.reshape(inputs, [-1, row])
        made = _tf.reshape(inputs, [batch or _tf.shape(inputs)[0], -1 if row is None else 0])
        made.set_shape([batch, row])
        return made

    def compute_output_shape(self, input_shape: Any) -> _tf.TensorShape:
        shape = _tf.TensorShape(input_shape)
        if shape.rank is None:
            return _tf.TensorShape([None, None])
        batch, *rest = shape.as_list()
        return _tf.TensorShape([batch, None if None in rest else math.prod(rest)])


class Dropout(Layer):
    """Zeros at random places, while training. Arguments are those of :func:`dropout`; ``training`` is the call's."""

    def __init__(
        self,
        rate: TensorLike = 0.5,
        noise_shape: Sequence[int | None] | _tf.Tensor | None = None,
        seed: int | None = None,
        name: str | None = None,
        **keywords: Any,
    ) -> None:
        super().__init__(name=name, **keywords)
        self.rate, self.noise_shape, self.seed = rate, noise_shape, seed

    def call(self, inputs: Any, training: Any = False) -> Any:
        return choose(
            training,
            lambda: _tf.nn.dropout(inputs, noise_shape=self._noise_shape(inputs), seed=self.seed, rate=self.rate),
            lambda: _tf.identity(inputs),
        )

    def _noise_shape(self, inputs: Any) -> Any:
        given = self.noise_shape
        if given is None or isinstance(given, _tf.Tensor) or None not in given:
            return given
        return [_tf.shape(inputs)[i] if size is None else size for i, size in enumerate(given)]

    def compute_output_shape(self, input_shape: Any) -> _tf.TensorShape:
        return _tf.TensorShape(input_shape)


def flatten(inputs: TensorLike, name: str | None = None, data_format: str = "channels_last") -> _tf.Tensor:
    """A row per element of the batch: ``[batch, ...]`` becomes ``[batch, n]``.

    Args:
      inputs: tensor of rank 1 or more.
      data_format: ``"channels_first"``: the channels, dim 1, go last before.
    """
    return called(Flatten, locals())  # type: ignore[no-any-return]


def dropout(
    inputs: TensorLike,
    rate: TensorLike = 0.5,
    noise_shape: Sequence[int | None] | _tf.Tensor | None = None,
    seed: int | None = None,
    training: Any = False,
    name: str | None = None,
) -> _tf.Tensor:
    """Set elements to zero at random and scale the rest, where ``training``; else the inputs.

    Args:
      inputs: floating tensor.
      rate: probability of an element to become zero.
      noise_shape: shape of the draws, which broadcasts to the inputs'; None in it is the inputs' size.
      seed: see ``tf.set_random_seed``.
      training: a bool, or a scalar tensor that says it in the step.
    """
    return called(Dropout, locals(), "training")  # type: ignore[no-any-return]
