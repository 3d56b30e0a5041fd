"""Separable convolutions: one filter per channel, then a mixture of the channels at each place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Unpack

import graphdock as _tf

from graphdock_tf1.layers.convolution import Conv
from graphdock_tf1.layers.functional import layer_function, numbers
from graphdock_tf1.layers.weighted import WeightedKeywords


class _Separable(Conv):
    """Base of separable convolutions."""

    depthwise_kernel: Any = None
    pointwise_kernel: Any = None

    def __init__(
        self,
        filters: int,
        kernel_size: int | Sequence[int],
        strides: int | Sequence[int] = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: int | Sequence[int] = 1,
        depth_multiplier: int = 1,
        activation: Callable[[Any], Any] | str | None = None,
        use_bias: bool = True,
        depthwise_initializer: Any = None,
        pointwise_initializer: Any = None,
        bias_initializer: Any = "zeros",
        depthwise_regularizer: Callable[[Any], Any] | None = None,
        pointwise_regularizer: Callable[[Any], Any] | None = None,
        bias_regularizer: Callable[[Any], Any] | None = None,
        activity_regularizer: Callable[[Any], Any] | None = None,
        depthwise_constraint: Callable[[Any], Any] | None = None,
        pointwise_constraint: Callable[[Any], Any] | None = None,
        bias_constraint: Callable[[Any], Any] | None = None,
        trainable: bool = True,
        name: str | None = None,
        **keywords: Unpack[WeightedKeywords],
    ) -> None:
        super().__init__(
            filters,
            kernel_size,
            strides,
            padding,
            data_format,
            dilation_rate,
            activity_regularizer=activity_regularizer,
            trainable=trainable,
            name=name,
            **keywords,
        )
        self._keep(locals())
        self.depth_multiplier = numbers(depth_multiplier, 1, "depth_multiplier")[0]

    def build(self, input_shape: Any) -> None:
        channels = self._known_channels(input_shape)
        deep = [*self.kernel_size, channels, self.depth_multiplier]
        wide = [1] * self.spatial + [channels * self.depth_multiplier, self.filters]
        self.depthwise_kernel = self._variable("depthwise_kernel", deep, "depthwise")
        self.pointwise_kernel = self._variable("pointwise_kernel", wide, "pointwise")
        self._build_bias(self.filters)

    def call(self, inputs: Any) -> Any:
        deep, wide, steps, rates, padding = (
            self.depthwise_kernel, self.pointwise_kernel, self.strides, self.dilation_rate, self.padding
        )  # fmt: skip
        first = 2 if self._channels == 1 else 1
        if self.spatial == 1:  # an image of one row
            if padding == "causal":
                inputs, padding = self._past(inputs), "valid"
            inputs, deep, wide = _tf.expand_dims(inputs, first), _tf.expand_dims(deep, 0), _tf.expand_dims(wide, 0)
            steps, rates = (steps[0], steps[0]), (1, rates[0])
        strides = [1, 1, *steps] if first == 2 else [1, *steps, 1]
        made = _tf.nn.separable_conv2d(
            inputs, deep, wide, strides, padding.upper(), rate=list(rates), data_format="NCHW" if first == 2 else "NHWC"
        )
        return self._finish(_tf.squeeze(made, [first]) if self.spatial == 1 else made)


class SeparableConv1D(_Separable):
    """The same for sequences ``[batch, width, channels]``; as :class:`SeparableConv2D`."""

    spatial = 1


class SeparableConv2D(_Separable):
    """Slide ``depth_multiplier`` filters over each channel of images, then mix the channels at each place.

    Other arguments are those of ``tf.layers.conv2d``.

    Returns:
      A tensor of the same layout with ``filters`` channels. Variables are ``separable_conv2d/depthwise_kernel``, ``[height, width,
      channels, depth_multiplier]``, ``pointwise_kernel`` and ``bias``.
    """

    spatial = 2


separable_conv1d = layer_function(SeparableConv1D)
separable_conv2d = layer_function(SeparableConv2D, strides=(1, 1), dilation_rate=(1, 1))
