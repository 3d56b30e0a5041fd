"""Convolutions of contrib: SAME and ReLU by default, variables ``weights`` and ``biases``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError
from graphdock.typing import TensorLike

from graphdock_tf1.contrib.arg_scope import add_arg_scope
from graphdock_tf1.contrib.initializers import xavier_initializer
from graphdock_tf1.contrib.support import channels_word, collect_variable, collections_of, finished, getter
from graphdock_tf1.contrib.variables import model_variable
from graphdock_tf1.layers.convolution import Conv1D, Conv2D, Conv3D
from graphdock_tf1.layers.functional import numbers
from graphdock_tf1.layers.separable import SeparableConv2D
from graphdock_tf1.layers.transposed import Conv2DTranspose, Conv3DTranspose

__all__ = [
    "convolution",
    "convolution1d",
    "convolution2d",
    "convolution2d_transpose",
    "convolution3d",
    "convolution3d_transpose",
    "separable_convolution2d",
]

_NAMES = {"bias": "biases", "kernel": "weights"}


def _convolved(kind: Any, given: dict[str, Any], default: str, more: Mapping[str, Any]) -> Any:
    """The output of a layer of that class, with the arguments of a function of contrib."""
    g = given
    names = getter(_NAMES)
    with _tf.variable_scope(g["scope"], default, [g["inputs"]], reuse=g["reuse"], custom_getter=names) as sc:
        inputs = _ops.convert_to_tensor(g["inputs"])
        layer = kind(
            g["num_outputs"],
            g["kernel_size"],
            strides=g["stride"],
            padding=g["padding"],
            data_format=channels_word(g["data_format"]),
            use_bias=g["normalizer_fn"] is None and g["biases_initializer"] is not None,
            kernel_initializer=g["weights_initializer"],
            bias_initializer=g["biases_initializer"],
            kernel_regularizer=g["weights_regularizer"],
            bias_regularizer=g["biases_regularizer"],
            trainable=g["trainable"],
            name=sc.name,
            dtype=inputs.dtype,
            _scope=sc,
            _reuse=g["reuse"],
            **more,
        )
        outputs = layer(inputs)
        collect_variable(layer.kernel, g["variables_collections"], "weights")
        collect_variable(layer.bias, g["variables_collections"], "biases")
        return finished(
            outputs, g["normalizer_fn"], g["normalizer_params"], g["activation_fn"], g["outputs_collections"], sc.name
        )


@add_arg_scope
def convolution(
    inputs: TensorLike,
    num_outputs: int,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: str = "SAME",
    data_format: str | None = None,
    rate: int | Sequence[int] = 1,
    activation_fn: Callable[[Any], Any] | None = _tf.nn.relu,
    normalizer_fn: Callable[..., Any] | None = None,
    normalizer_params: Mapping[str, Any] | None = None,
    weights_initializer: Any = xavier_initializer(),
    weights_regularizer: Callable[[Any], Any] | None = None,
    biases_initializer: Any = _tf.zeros_initializer(),
    biases_regularizer: Callable[[Any], Any] | None = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
    conv_dims: int | None = None,
) -> _tf.Tensor:
    """Slide filters over sequences, images or volumes, with variables ``Conv/weights`` and ``Conv/biases``.

    Args:
      inputs: floating tensor of rank 3, 4 or 5; its channels are last, or dim 1 with ``data_format="NCHW"`` and its like.
      num_outputs: number of channels of the result.
      kernel_size, stride, rate: one number, or one per spatial dim.
      padding: ``"SAME"`` or ``"VALID"``.
      conv_dims: number of spatial dims that ``inputs`` must have.
      activation_fn and the others: as of ``tf.contrib.layers.fully_connected``.

    Raises:
      InvalidArgumentError: another rank.
    """
    rank = _ops.convert_to_tensor(inputs).shape.rank
    if rank not in (3, 4, 5) or (conv_dims is not None and rank != conv_dims + 2):
        wanted = "3, 4 or 5" if conv_dims is None else str(conv_dims + 2)
        raise InvalidArgumentError("a convolution of another rank", expected=f"rank {wanted}", got=str(rank))
    return _convolved((Conv1D, Conv2D, Conv3D)[rank - 3], locals(), "Conv", {"dilation_rate": rate})  # type: ignore[no-any-return]


def _of_dims(dims: int, name: str, doc: str) -> Callable[..., _tf.Tensor]:
    plain = convolution.__wrapped__  # what a scope says of convolution is not said of these

    def convolve(*args: Any, **keywords: Any) -> Any:
        return plain(*args, **{**keywords, "conv_dims": dims})

    convolve.__name__ = convolve.__qualname__ = name
    convolve.__doc__ = doc
    convolve.__signature__ = inspect.signature(plain)  # type: ignore[attr-defined]
    return add_arg_scope(convolve)


convolution1d = _of_dims(1, "convolution1d", "``convolution`` of sequences, with its arguments.")
convolution2d = _of_dims(2, "convolution2d", "``convolution`` of images, with its arguments.")
convolution3d = _of_dims(3, "convolution3d", "``convolution`` of volumes, with its arguments.")


@add_arg_scope
def convolution2d_transpose(
    inputs: TensorLike,
    num_outputs: int,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: str = "SAME",
    data_format: str | None = "NHWC",
    activation_fn: Callable[[Any], Any] | None = _tf.nn.relu,
    normalizer_fn: Callable[..., Any] | None = None,
    normalizer_params: Mapping[str, Any] | None = None,
    weights_initializer: Any = xavier_initializer(),
    weights_regularizer: Callable[[Any], Any] | None = None,
    biases_initializer: Any = _tf.zeros_initializer(),
    biases_regularizer: Callable[[Any], Any] | None = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> _tf.Tensor:
    """The transpose of a convolution of images, in the scope ``Conv2d_transpose``; arguments as of ``convolution``."""
    return _convolved(Conv2DTranspose, locals(), "Conv2d_transpose", {})  # type: ignore[no-any-return]


@add_arg_scope
def convolution3d_transpose(
    inputs: TensorLike,
    num_outputs: int,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: str = "SAME",
    data_format: str | None = "NDHWC",
    activation_fn: Callable[[Any], Any] | None = _tf.nn.relu,
    normalizer_fn: Callable[..., Any] | None = None,
    normalizer_params: Mapping[str, Any] | None = None,
    weights_initializer: Any = xavier_initializer(),
    weights_regularizer: Callable[[Any], Any] | None = None,
    biases_initializer: Any = _tf.zeros_initializer(),
    biases_regularizer: Callable[[Any], Any] | None = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> _tf.Tensor:
    """The transpose of a convolution of volumes, in the scope ``Conv3d_transpose``; arguments as of ``convolution``."""
    return _convolved(Conv3DTranspose, locals(), "Conv3d_transpose", {})  # type: ignore[no-any-return]


@add_arg_scope
def separable_convolution2d(
    inputs: TensorLike,
    num_outputs: int | None,
    kernel_size: int | Sequence[int],
    depth_multiplier: int = 1,
    stride: int | Sequence[int] = 1,
    padding: str = "SAME",
    data_format: str | None = "NHWC",
    rate: int | Sequence[int] = 1,
    activation_fn: Callable[[Any], Any] | None = _tf.nn.relu,
    normalizer_fn: Callable[..., Any] | None = None,
    normalizer_params: Mapping[str, Any] | None = None,
    weights_initializer: Any = xavier_initializer(),
    pointwise_initializer: Any = None,
    weights_regularizer: Callable[[Any], Any] | None = None,
    biases_initializer: Any = _tf.zeros_initializer(),
    biases_regularizer: Callable[[Any], Any] | None = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> _tf.Tensor:
    """A separable convolution of images, with variables ``SeparableConv2d/depthwise_weights`` and ``pointwise_weights``.

    Args:
      num_outputs: None: no mixture of the channels, only ``depth_multiplier`` filters over each.
      others: as of ``convolution``.
    """
    names = getter({"bias": "biases", "depthwise_kernel": "depthwise_weights", "pointwise_kernel": "pointwise_weights"})
    with _tf.variable_scope(scope, "SeparableConv2d", [inputs], reuse=reuse, custom_getter=names) as sc:
        inputs = _ops.convert_to_tensor(inputs)
        use_bias = normalizer_fn is None and biases_initializer is not None
        if num_outputs is not None:
            layer = SeparableConv2D(
                num_outputs,
                kernel_size,
                strides=stride,
                padding=padding,
                data_format=channels_word(data_format),
                dilation_rate=rate,
                depth_multiplier=depth_multiplier,
                use_bias=use_bias,
                depthwise_initializer=weights_initializer,
                pointwise_initializer=weights_initializer if pointwise_initializer is None else pointwise_initializer,
                bias_initializer=biases_initializer,
                depthwise_regularizer=weights_regularizer,
                pointwise_regularizer=weights_regularizer,
                bias_regularizer=biases_regularizer,
                trainable=trainable,
                name=sc.name,
                dtype=inputs.dtype,
                _scope=sc,
                _reuse=reuse,
            )
            outputs = layer(inputs)
            collect_variable(layer.depthwise_kernel, variables_collections, "weights")
            collect_variable(layer.pointwise_kernel, variables_collections, "weights")
            collect_variable(layer.bias, variables_collections, "biases")
        else:
            first = channels_word(data_format) == "channels_first"
            channels = inputs.shape[1 if first else 3].value
            kept = collections_of(variables_collections, "weights")
            shape = [*numbers(kernel_size, 2, "kernel_size"), channels, depth_multiplier]
            weights = model_variable(
                "depthwise_weights", shape, inputs.dtype, weights_initializer, weights_regularizer, trainable, kept
            )
            steps, rates = numbers(stride, 2, "stride"), numbers(rate, 2, "rate")
            strides = [1, 1, *steps] if first else [1, *steps, 1]
            outputs = _tf.nn.depthwise_conv2d(
                inputs, weights, strides, padding, rate=list(rates), data_format=data_format
            )
            if use_bias:
                kept = collections_of(variables_collections, "biases")
                size = [channels * depth_multiplier]
                biases = model_variable(
                    "biases", size, inputs.dtype, biases_initializer, biases_regularizer, trainable, kept
                )
                outputs = _tf.nn.bias_add(outputs, biases, data_format=data_format)
        return finished(outputs, normalizer_fn, normalizer_params, activation_fn, outputs_collections, sc.name)  # type: ignore[no-any-return]
