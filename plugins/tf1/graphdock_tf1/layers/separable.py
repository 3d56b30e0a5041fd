"""Separable convolutions: one filter per channel, then a mixture of the channels at each place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import graphdock as _tf
from graphdock.typing import TensorLike

from graphdock_tf1.layers.convolution import Conv
from graphdock_tf1.layers.functional import called, numbers
from graphdock_tf1.layers.lookup import initializer_of

__all__ = ["SeparableConv1D", "SeparableConv2D", "separable_conv1d", "separable_conv2d"]


class _Separable(Conv):
    """What they have in common."""

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
        **keywords: Any,
    ) -> None:
        super().__init__(
            filters,
            kernel_size,
            strides,
            padding,
            data_format,
            dilation_rate,
            activation,
            use_bias,
            bias_initializer=bias_initializer,
            bias_regularizer=bias_regularizer,
            activity_regularizer=activity_regularizer,
            bias_constraint=bias_constraint,
            trainable=trainable,
            name=name,
            **keywords,
        )
        self.depth_multiplier = numbers(depth_multiplier, 1, "depth_multiplier")[0]
        self._depthwise = initializer_of(depthwise_initializer), depthwise_regularizer, depthwise_constraint
        self._pointwise = initializer_of(pointwise_initializer), pointwise_regularizer, pointwise_constraint
        self.depthwise_kernel: Any = None
        self.pointwise_kernel: Any = None

    def build(self, input_shape: Any) -> None:
        channels = self._known_channels(input_shape)
        deep = [*self.kernel_size, channels, self.depth_multiplier]
        wide = [1] * self.spatial + [channels * self.depth_multiplier, self.filters]
        self.depthwise_kernel = self.add_weight(
            "depthwise_kernel", deep, None, *self._depthwise[:2], constraint=self._depthwise[2]
        )
        self.pointwise_kernel = self.add_weight(
            "pointwise_kernel", wide, None, *self._pointwise[:2], constraint=self._pointwise[2]
        )
        self._build_bias()

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
    """A separable convolution of sequences. Arguments are those of :func:`separable_conv1d`."""

    spatial = 1


class SeparableConv2D(_Separable):
    """A separable convolution of images. Arguments are those of :func:`separable_conv2d`."""

    spatial = 2


def separable_conv2d(
    inputs: TensorLike,
    filters: int,
    kernel_size: int | Sequence[int],
    strides: int | Sequence[int] = (1, 1),
    padding: str = "valid",
    data_format: str = "channels_last",
    dilation_rate: int | Sequence[int] = (1, 1),
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
    reuse: Any = None,
) -> _tf.Tensor:
    """Slide ``depth_multiplier`` filters over each channel of images, then mix the channels at each place.

    Other arguments are those of ``tf.layers.conv2d``.

    Returns:
      A tensor of the same layout with ``filters`` channels. Variables are ``separable_conv2d/depthwise_kernel``, ``[height, width,
      channels, depth_multiplier]``, ``pointwise_kernel`` and ``bias``.
    """
    return called(SeparableConv2D, locals())  # type: ignore[no-any-return]


def separable_conv1d(
    inputs: TensorLike,
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
    reuse: Any = None,
) -> _tf.Tensor:
    """The same for sequences ``[batch, width, channels]``; as :func:`separable_conv2d`."""
    return called(SeparableConv1D, locals())  # type: ignore[no-any-return]
