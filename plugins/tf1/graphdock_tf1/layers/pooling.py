"""Pools of sequences, images and volumes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, Unpack

import graphdock as _tf

from graphdock_tf1.layers.base import Layer, LayerKeywords
from graphdock_tf1.layers.convolution import conv_length
from graphdock_tf1.layers.functional import data_format_of, layer_function, numbers, padding_of
from graphdock_tf1.layers.input_spec import InputSpec


class PoolKeywords(LayerKeywords, total=False):
    """Keywords that the class of a pool hands on to :class:`Layer`."""

    activity_regularizer: Callable[[Any], Any] | None


class _Pool(Layer):
    """Base of pools. A subclass says of how many dims it is, and what it takes of a window."""

    spatial: ClassVar[int]
    kind: ClassVar[Literal["max", "avg"]]

    def __init__(
        self,
        pool_size: int | Sequence[int],
        strides: int | Sequence[int],
        padding: str = "valid",
        data_format: str = "channels_last",
        name: str | None = None,
        **keywords: Unpack[PoolKeywords],
    ) -> None:
        super().__init__(name=name, **keywords)
        n = self.spatial
        self.pool_size = numbers(pool_size, n, "pool_size")
        self.strides = numbers(strides, n, "strides")
        self.padding = padding_of(padding)
        self.data_format = data_format
        self._format = data_format_of(data_format, n + 2)
        self.input_spec = InputSpec(ndim=n + 2)

    def call(self, inputs: Any) -> Any:
        first = 2 if self._format.startswith("NC") else 1
        size, strides, word = self.pool_size, self.strides, self._format
        if self.spatial == 1:  # an image of one column
            inputs, size, strides = _tf.expand_dims(inputs, first + 1), (*size, 1), (*strides, 1)
            word = "NCHW" if first == 2 else "NHWC"
        pools = {
            "max": (_tf.nn.max_pool, _tf.nn.max_pool3d),
            "avg": (_tf.nn.avg_pool, _tf.nn.avg_pool3d),
        }[self.kind]
        window, steps = ([1, 1, *v] if first == 2 else [1, *v, 1] for v in (size, strides))
        made = pools[self.spatial == 3](inputs, window, steps, self.padding.upper(), data_format=word)
        return _tf.squeeze(made, [first + 1]) if self.spatial == 1 else made

    def compute_output_shape(self, input_shape: Any) -> _tf.TensorShape:
        dims = _tf.TensorShape(input_shape).as_list()
        first = 2 if self._format.startswith("NC") else 1
        for i in range(self.spatial):
            dims[first + i] = conv_length(dims[first + i], self.pool_size[i], self.padding, self.strides[i])
        return _tf.TensorShape(dims)


class MaxPooling1D(_Pool):
    """The largest of each window of sequences ``[batch, width, channels]``; as :class:`MaxPooling2D`."""

    spatial, kind = 1, "max"


class MaxPooling2D(_Pool):
    """The largest of each window of images ``[batch, height, width, channels]``.

    Args:
      inputs: of a call, floating tensor; its channels are dim 1 with ``data_format="channels_first"``.
      pool_size, strides: one number, or one per spatial dim.
      padding: ``"valid"`` or ``"same"``, in any letters.
      name: of the operation; default: ``max_pooling2d``, with a number for the second.

    Returns:
      A tensor of the same layout.

    Raises:
      ShapeError: another rank. InvalidArgumentError: a number, padding or data_format that fits no pool.
    """

    spatial, kind = 2, "max"


class MaxPooling3D(_Pool):
    """The largest of each window of volumes ``[batch, depth, height, width, channels]``; as :class:`MaxPooling2D`."""

    spatial, kind = 3, "max"


class AveragePooling1D(_Pool):
    """The mean of each window of sequences ``[batch, width, channels]``; as :class:`MaxPooling2D`."""

    spatial, kind = 1, "avg"


class AveragePooling2D(_Pool):
    """The mean of each window of images ``[batch, height, width, channels]``; as :class:`MaxPooling2D`."""

    spatial, kind = 2, "avg"


class AveragePooling3D(_Pool):
    """The mean of each window of volumes ``[batch, depth, height, width, channels]``; as :class:`MaxPooling2D`."""

    spatial, kind = 3, "avg"


max_pooling1d = layer_function(MaxPooling1D)
max_pooling2d = layer_function(MaxPooling2D)
max_pooling3d = layer_function(MaxPooling3D)
average_pooling1d = layer_function(AveragePooling1D)
average_pooling2d = layer_function(AveragePooling2D)
average_pooling3d = layer_function(AveragePooling3D)
