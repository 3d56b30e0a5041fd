"""Public functions of transposed convolutions: the gradients of convolutions with respect to their input. Names, argument names and
defaults are TensorFlow 1's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError
from graphdock.typing import TensorLike

from graphdock_std.conv.convolution import Padding, conv2d_backprop_input, row_format
from graphdock_std.conv.window_args import either, per_dim, sliding
from graphdock_std.grad_support import static_shape


def conv2d_transpose(
    value: TensorLike | None = None,
    filter: TensorLike | None = None,
    output_shape: TensorLike | None = None,
    strides: int | Sequence[int] | None = None,
    padding: Padding = "SAME",
    data_format: str = "NHWC",
    name: str | None = None,
    input: TensorLike | None = None,
    filters: TensorLike | None = None,
    dilations: int | Sequence[int] | None = None,
) -> _ops.Tensor:
    """The transpose of :func:`conv2d`, called deconvolution by Zeiler and others (2010): its gradient with respect to the input.

    Args:
      value: floating tensor of images, as data_format says; ``input`` is its newer name.
      filter: ``[height, width, outputs, channels]``: the channels of ``value`` come last.
      output_shape: int32 vector: the shape of the result, which a convolution with these strides takes to that of ``value``.

    Raises:
      ShapeError: it does not.
    """
    value = either("input", input, "value", value)
    filter = either("filters", filters, "filter", filter)
    with _tf.name_scope(name or "conv2d_transpose") as scope:
        return conv2d_backprop_input(
            output_shape, filter, value, strides, padding, True, data_format, dilations or 1, scope
        )


def atrous_conv2d_transpose(
    value: TensorLike,
    filters: TensorLike,
    output_shape: TensorLike,
    rate: int,
    padding: Literal["SAME", "VALID"],
    name: str | None = None,
) -> _ops.Tensor:
    """The transpose of :func:`atrous_conv2d`; ``output_shape`` and ``filters`` as of :func:`conv2d_transpose`."""
    with _tf.name_scope(name or "atrous_conv2d_transpose") as scope:
        return conv2d_backprop_input(output_shape, filters, value, 1, padding, True, "NHWC", rate, scope)


def conv3d_transpose(
    value: TensorLike,
    filter: TensorLike | None = None,
    output_shape: TensorLike | None = None,
    strides: int | Sequence[int] | None = None,
    padding: Literal["SAME", "VALID"] = "SAME",
    data_format: str = "NDHWC",
    name: str | None = None,
    input: TensorLike | None = None,
    filters: TensorLike | None = None,
    dilations: int | Sequence[int] | None = None,
) -> _ops.Tensor:
    """The transpose of :func:`conv3d`; arguments as of :func:`conv2d_transpose`."""
    value = either("input", input, "value", value)
    with _tf.name_scope(name or "conv3d_transpose") as scope:
        return _ops.apply_op(
            "Conv3DBackpropInputV2",
            input_sizes=output_shape,
            filter=either("filters", filters, "filter", filter),
            out_backprop=value,
            **sliding(strides, padding, data_format, dilations, 5),
            name=scope,
        )


def conv1d_transpose(
    input: TensorLike,
    filters: TensorLike,
    output_shape: TensorLike,
    strides: int | Sequence[int],
    padding: Literal["SAME", "VALID"] = "SAME",
    data_format: str = "NWC",
    dilations: int | Sequence[int] | None = None,
    name: str | None = None,
) -> _ops.Tensor:
    """The transpose of :func:`conv1d`; filters ``[width, outputs, channels]``, ``output_shape`` of rank 1 and length 3."""
    with _tf.name_scope(name or "conv1d_transpose"):
        axis, image = row_format(data_format)
        steps, spread = (per_dim(v, 3, data_format, n) for v, n in ((strides, "strides"), (dilations, "dilations")))
        for numbers in (steps, spread):
            numbers.insert(axis, 1)
        sizes = _ops.convert_to_tensor(output_shape, _tf.int32)
        sizes = _tf.concat([sizes[:axis], [1], sizes[axis:]], 0)
        result = conv2d_backprop_input(
            sizes, _tf.expand_dims(filters, 0), _tf.expand_dims(input, axis), steps, padding, True, image, spread
        )
        return _tf.squeeze(result, [axis])


def conv_transpose(
    input: TensorLike,
    filters: TensorLike,
    output_shape: TensorLike,
    strides: int | Sequence[int],
    padding: Literal["SAME", "VALID"] = "SAME",
    data_format: str | None = None,
    dilations: int | Sequence[int] | None = None,
    name: str | None = None,
) -> _ops.Tensor:
    """The transpose of a convolution over 1, 2 or 3 spatial dims, whatever ``output_shape`` has.

    Raises:
      InvalidArgumentError: it has another number of elements, or an unknown one.
    """
    with _tf.name_scope(name or "conv_transpose") as scope:
        sizes = _ops.convert_to_tensor(output_shape, _tf.int32)
        rank = (static_shape(sizes) or (None,))[0]
        if rank == 3:
            return conv1d_transpose(input, filters, sizes, strides, padding, data_format or "NWC", dilations, scope)
        if rank == 4:
            return conv2d_transpose(
                input, filters, sizes, strides, padding, data_format or "NHWC", scope, dilations=dilations
            )
        if rank == 5:
            return conv3d_transpose(
                input, filters, sizes, strides, padding, data_format or "NDHWC", scope, dilations=dilations
            )
        raise InvalidArgumentError("output_shape must hold 3, 4 or 5 sizes", got=str(rank))
