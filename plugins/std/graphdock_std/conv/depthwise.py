"""Public functions of depthwise and separable convolutions. Names, argument names and defaults are TensorFlow 1's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError
from graphdock.typing import TensorLike

from graphdock_std.conv.convolution import Padding, conv2d
from graphdock_std.conv.window_args import channels_first, either, paddings, per_spatial_dim


def _native(
    op: str, inputs: Any, strides: Any, padding: Any, data_format: str, dilations: Any, name: str | None
) -> Any:
    window = {"strides": list(strides), "dilations": list(dilations), **paddings(padding, 4)}
    return _ops.apply_op(op, **inputs, **window, data_format=data_format, name=name)


def depthwise_conv2d_native(
    input: TensorLike,
    filter: TensorLike,
    strides: Sequence[int],
    padding: Padding,
    data_format: str = "NHWC",
    dilations: Sequence[int] = (1, 1, 1, 1),
    name: str | None = None,
) -> _ops.Tensor:
    """Slide a filter over each channel of images on its own.

    Args:
      input: floating tensor of images, as data_format says.
      filter: ``[height, width, channels, M]``, of the same dtype: M outputs for each channel.
      strides, dilations: a number for each dim.

    Returns:
      Images of ``channels * M`` channels, those of one input channel side by side.

    Raises:
      ShapeError: the channels differ, or a window is larger than the padded input.
    """
    inputs = {"input": input, "filter": filter}
    return _native("DepthwiseConv2dNative", inputs, strides, padding, data_format, dilations, name)


def depthwise_conv2d_native_backprop_input(
    input_sizes: TensorLike,
    filter: TensorLike,
    out_backprop: TensorLike,
    strides: Sequence[int],
    padding: Padding,
    data_format: str = "NHWC",
    dilations: Sequence[int] = (1, 1, 1, 1),
    name: str | None = None,
) -> _ops.Tensor:
    """Gradient of :func:`depthwise_conv2d_native` with respect to its input, whose shape is the int32 vector ``input_sizes``."""
    inputs = {"input_sizes": input_sizes, "filter": filter, "out_backprop": out_backprop}
    return _native("DepthwiseConv2dNativeBackpropInput", inputs, strides, padding, data_format, dilations, name)


def depthwise_conv2d_native_backprop_filter(
    input: TensorLike,
    filter_sizes: TensorLike,
    out_backprop: TensorLike,
    strides: Sequence[int],
    padding: Padding,
    data_format: str = "NHWC",
    dilations: Sequence[int] = (1, 1, 1, 1),
    name: str | None = None,
) -> _ops.Tensor:
    """Gradient of :func:`depthwise_conv2d_native` with respect to its filter, whose shape is the int32 vector ``filter_sizes``."""
    inputs = {"input": input, "filter_sizes": filter_sizes, "out_backprop": out_backprop}
    return _native("DepthwiseConv2dNativeBackpropFilter", inputs, strides, padding, data_format, dilations, name)


def _spread(
    rate: int | Sequence[int] | None, dilations: int | Sequence[int] | None, strides: Sequence[int], data_format: str
) -> list[int]:
    """The dilations of a depthwise convolution by its rate."""
    rates = per_spatial_dim(either("dilations", dilations, "rate", rate, required=False), 2, "rate")
    if max(rates) > 1 and any(s != 1 for s in strides):
        raise InvalidArgumentError("strides and rate cannot both be above 1", got=f"{list(strides)} and {rates}")
    return [1, 1, *rates] if channels_first(data_format) else [1, *rates, 1]


def depthwise_conv2d(
    input: TensorLike,
    filter: TensorLike,
    strides: Sequence[int],
    padding: Padding,
    rate: int | Sequence[int] | None = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: int | Sequence[int] | None = None,
) -> _ops.Tensor:
    """:func:`depthwise_conv2d_native` with dilations of ``rate``, a number per spatial dim; ``dilations`` is its newer name.

    Raises:
      InvalidArgumentError: both strides and rate are above 1.
    """
    data_format = data_format or "NHWC"
    with _tf.name_scope(name or "depthwise") as scope:
        spread = _spread(rate, dilations, strides, data_format)
        return depthwise_conv2d_native(input, filter, strides, padding, data_format, spread, scope)


def separable_conv2d(
    input: TensorLike,
    depthwise_filter: TensorLike,
    pointwise_filter: TensorLike,
    strides: Sequence[int],
    padding: Padding,
    rate: int | Sequence[int] | None = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: int | Sequence[int] | None = None,
) -> _ops.Tensor:
    """A depthwise convolution, then a 1x1 convolution that mixes its channels (Sifre, 2014; Chollet, 2017).

    Args:
      depthwise_filter: ``[height, width, channels, M]``.
      pointwise_filter: ``[1, 1, channels * M, outputs]``. The rest as of :func:`depthwise_conv2d`.

    Raises:
      InvalidArgumentError: the pointwise filter is not 1x1.
    """
    data_format = data_format or "NHWC"
    with _tf.name_scope(name or "separable_conv2d") as scope:
        pointwise_filter = _ops.convert_to_tensor(pointwise_filter)
        if not pointwise_filter.shape.is_compatible_with([1, 1, None, None]):
            raise InvalidArgumentError(
                "the pointwise filter must be 1x1", expected="[1,1,?,?]", got=str(pointwise_filter.shape)
            )
        spread = _spread(rate, dilations, strides, data_format)
        apart = depthwise_conv2d_native(
            input, depthwise_filter, strides, padding, data_format, spread, name="depthwise"
        )
        return conv2d(apart, pointwise_filter, 1, "VALID", True, data_format, name=scope)
