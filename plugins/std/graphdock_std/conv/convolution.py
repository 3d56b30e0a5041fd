"""Public functions of convolutions. Names, argument names and defaults are TensorFlow 1's.

A convolution here is a cross-correlation: the filter is not turned around. Dilations are an attribute of the ops, where TensorFlow
1 often moved space to the batch and back, with the same results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError
from graphdock.typing import TensorLike

from graphdock_std.conv.window_args import channels_first, either, per_dim, per_spatial_dim, sliding
from graphdock_std.grad_support import static_shape

#: SAME, VALID, or a pair of numbers for each dim of the input: zeros before and after.
Padding: TypeAlias = "Literal['SAME', 'VALID'] | Sequence[Sequence[int]] | None"


def conv2d(
    input: TensorLike,
    filter: TensorLike | None = None,
    strides: int | Sequence[int] | None = None,
    padding: Padding = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: int | Sequence[int] = (1, 1, 1, 1),
    name: str | None = None,
    filters: TensorLike | None = None,
) -> _ops.Tensor:
    """Slide filters over images.

    Args:
      input: floating tensor ``[batch, height, width, channels]``, or ``[batch, channels, height, width]`` with
        ``data_format="NCHW"``.
      filter: ``[height, width, channels, outputs]``, of the same dtype; ``filters`` is its newer name.
      strides: step of the window: one number, one per spatial dim, or one per dim.
      padding: ``"SAME"``: as many windows as steps fit, with zeros around; ``"VALID"``: no zeros; or a pair of numbers of zeros
        for each dim.
      use_cudnn_on_gpu: taken for TensorFlow's sake.
      dilations: distance of the filter's elements in the input; given like strides.

    Returns:
      The tensor of outputs, of the same layout and dtype. float16 and bfloat16 are accumulated in float32.

    Raises:
      ShapeError: the channels differ, or a window is larger than the padded input.
      InvalidArgumentError: strides, dilations or padding that fit no convolution.
    """
    filter = either("filters", filters, "filter", filter)
    return _ops.apply_op(
        "Conv2D",
        input=input,
        filter=filter,
        use_cudnn_on_gpu=use_cudnn_on_gpu,
        **sliding(strides, padding, data_format, dilations),
        name=name,
    )


def conv3d(
    input: TensorLike,
    filter: TensorLike | None = None,
    strides: int | Sequence[int] | None = None,
    padding: Literal["SAME", "VALID"] | None = None,
    data_format: str = "NDHWC",
    dilations: int | Sequence[int] = (1, 1, 1, 1, 1),
    name: str | None = None,
    filters: TensorLike | None = None,
) -> _ops.Tensor:
    """Slide filters ``[depth, height, width, channels, outputs]`` over volumes; arguments as of :func:`conv2d`."""
    return _ops.apply_op(
        "Conv3D",
        input=input,
        filter=either("filters", filters, "filter", filter),
        **sliding(strides, padding, data_format, dilations, 5),
        name=name,
    )


def row_format(data_format: str | None) -> tuple[int, str]:
    """The axis to add to a sequence to make it an image of one row, and that image's format.

    Raises:
      InvalidArgumentError: no such format.
    """
    if data_format not in (None, "NWC", "NHWC", "NCW", "NCHW"):
        raise InvalidArgumentError("no such data_format", expected="NWC or NCW", got=repr(data_format))
    return (2, "NCHW") if channels_first(data_format) else (1, "NHWC")


def conv1d(
    value: TensorLike | None = None,
    filters: TensorLike | None = None,
    stride: int | Sequence[int] | None = None,
    padding: Literal["SAME", "VALID"] | None = None,
    use_cudnn_on_gpu: bool | None = None,
    data_format: str | None = None,
    name: str | None = None,
    input: TensorLike | None = None,
    dilations: int | Sequence[int] | None = None,
) -> _ops.Tensor:
    """Slide filters ``[width, channels, outputs]`` over sequences.

    Args:
      value: floating tensor ``[batch, width, channels]``, or ``[batch, channels, width]`` with ``data_format="NCW"``;
        ``input`` is its newer name.
      stride, dilations: one number, or one per dim.
    """
    value = either("input", input, "value", value)
    with _tf.name_scope(name or "conv1d"):
        axis, image = row_format(data_format)
        steps, spread = (per_dim(v, 3, data_format, n) for v, n in ((stride, "stride"), (dilations, "dilations")))
        for numbers in (steps, spread):
            numbers.insert(axis, 1)
        result = conv2d(
            _tf.expand_dims(value, axis),
            _tf.expand_dims(filters, 0),
            steps,
            padding,
            use_cudnn_on_gpu is None or use_cudnn_on_gpu,
            image,
            spread,
        )
        return _tf.squeeze(result, [axis])


def convolution(
    input: TensorLike,
    filter: TensorLike,
    padding: Literal["SAME", "VALID"],
    strides: int | Sequence[int] | None = None,
    dilation_rate: int | Sequence[int] | None = None,
    name: str | None = None,
    data_format: str | None = None,
    filters: TensorLike | None = None,
    dilations: int | Sequence[int] | None = None,
) -> _ops.Tensor:
    """Convolution over 1, 2 or 3 spatial dims, whatever the filter has.

    Args:
      input: floating tensor ``[batch, *spatial, channels]``, or ``[batch, channels, *spatial]`` where ``data_format``
        begins with ``"NC"``.
      filter: ``[*window, channels, outputs]``.
      strides, dilation_rate: one number per spatial dim; at most one of the two is more than 1. ``dilations`` is the newer name.

    Raises:
      InvalidArgumentError: the rank of neither is known or has 1 to 3 spatial dims, or both strides and dilations are above 1.
    """
    filter = either("filters", filters, "filter", filter)
    dilation_rate = either("dilations", dilations, "dilation_rate", dilation_rate, required=False)
    with _tf.name_scope(name or "convolution") as scope:
        input, filter = _ops.convert_to_tensor(input), _ops.convert_to_tensor(filter)
        rank = len(static_shape(filter) or static_shape(input) or ())
        if rank not in (3, 4, 5):
            raise InvalidArgumentError(
                "convolution needs a filter or an input of known rank", expected="rank 3, 4 or 5"
            )
        steps = per_spatial_dim(strides, rank - 2, "strides")
        spread = per_spatial_dim(dilation_rate, rank - 2, "dilation_rate")
        if max(steps) > 1 and max(spread) > 1:
            raise InvalidArgumentError("strides and dilation_rate cannot both be above 1", got=f"{steps} and {spread}")
        if rank == 3:
            return conv1d(input, filter, steps, padding, data_format=data_format, dilations=spread, name=scope)
        if rank == 4:
            return conv2d(input, filter, steps, padding, True, data_format or "NHWC", spread, scope)
        return conv3d(input, filter, steps, padding, data_format or "NDHWC", spread, scope)


def atrous_conv2d(
    value: TensorLike, filters: TensorLike, rate: int, padding: Literal["SAME", "VALID"], name: str | None = None
) -> _ops.Tensor:
    """:func:`conv2d` of images ``[batch, height, width, channels]`` with dilations of ``rate`` (Chen and others, 2014)."""
    return convolution(value, filters, padding, dilation_rate=[rate, rate], name=name)


def conv2d_backprop_input(
    input_sizes: TensorLike,
    filter: TensorLike | None = None,
    out_backprop: TensorLike | None = None,
    strides: int | Sequence[int] | None = None,
    padding: Padding = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: int | Sequence[int] = (1, 1, 1, 1),
    name: str | None = None,
    filters: TensorLike | None = None,
) -> _ops.Tensor:
    """Gradient of :func:`conv2d` with respect to its input.

    Args:
      input_sizes: int32 vector: the shape of the input.
      out_backprop: gradients of the output. The rest as of :func:`conv2d`.

    Raises:
      ShapeError: out_backprop does not have the output's shape.
    """
    return _ops.apply_op(
        "Conv2DBackpropInput",
        input_sizes=input_sizes,
        filter=either("filters", filters, "filter", filter),
        out_backprop=out_backprop,
        use_cudnn_on_gpu=use_cudnn_on_gpu,
        **sliding(strides, padding, data_format, dilations),
        name=name,
    )


def conv2d_backprop_filter(
    input: TensorLike,
    filter_sizes: TensorLike,
    out_backprop: TensorLike,
    strides: int | Sequence[int],
    padding: Padding,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: int | Sequence[int] = (1, 1, 1, 1),
    name: str | None = None,
) -> _ops.Tensor:
    """Gradient of :func:`conv2d` with respect to its filter, whose shape is the int32 vector ``filter_sizes``."""
    return _ops.apply_op(
        "Conv2DBackpropFilter",
        input=input,
        filter_sizes=filter_sizes,
        out_backprop=out_backprop,
        use_cudnn_on_gpu=use_cudnn_on_gpu,
        **sliding(strides, padding, data_format, dilations),
        name=name,
    )


def conv3d_backprop_filter(
    input: TensorLike,
    filter_sizes: TensorLike,
    out_backprop: TensorLike,
    strides: Sequence[int],
    padding: Literal["SAME", "VALID"],
    data_format: str = "NDHWC",
    dilations: Sequence[int] = (1, 1, 1, 1, 1),
    name: str | None = None,
) -> _ops.Tensor:
    """Gradient of :func:`conv3d` with respect to its filter, whose shape is the int32 vector ``filter_sizes``."""
    return _ops.apply_op(
        "Conv3DBackpropFilterV2",
        input=input,
        filter_sizes=filter_sizes,
        out_backprop=out_backprop,
        strides=list(strides),
        padding=padding,
        data_format=data_format,
        dilations=list(dilations),
        name=name,
    )
