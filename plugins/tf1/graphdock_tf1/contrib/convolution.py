"""Convolutions of contrib: SAME and ReLU by default, variables ``weights`` and ``biases``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError
from graphdock.typing import TensorLike

from graphdock_tf1.contrib.arg_scope import add_arg_scope
from graphdock_tf1.contrib.initializers import xavier_initializer
from graphdock_tf1.contrib.support import channels_word, collections_of, finished, getter, weighted
from graphdock_tf1.contrib.variables import model_variable
from graphdock_tf1.layers.convolution import Conv1D, Conv2D, Conv3D
from graphdock_tf1.layers.functional import numbers
from graphdock_tf1.layers.separable import SeparableConv2D
from graphdock_tf1.layers.transposed import Conv2DTranspose, Conv3DTranspose
from graphdock_tf1.signatures import like


def _convolved(kind: Any, given: Mapping[str, Any], default: str, names: Mapping[str, str], **more: Any) -> Any:
    """The output of a layer of that class, with the arguments of a function of contrib."""
    return weighted(
        kind,
        given,
        default,
        names,
        filters=given["num_outputs"],
        kernel_size=given["kernel_size"],
        strides=given["stride"],
        padding=given["padding"],
        data_format=channels_word(given["data_format"]),
        **more,
    )


def _with_kernel(kind: Any, given: Mapping[str, Any], default: str, **more: Any) -> Any:
    """The output of a layer with one kernel."""
    more["kernel_initializer"], more["kernel_regularizer"] = given["weights_initializer"], given["weights_regularizer"]
    return _convolved(kind, given, default, {"kernel": "weights", "bias": "biases"}, **more)


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
    return _with_kernel((Conv1D, Conv2D, Conv3D)[rank - 3], locals(), "Conv", dilation_rate=rate)  # type: ignore[no-any-return]


#: What a scope says of ``convolution`` is not said of these.
_unscoped = convolution.__wrapped__  # type: ignore[attr-defined]


@add_arg_scope
@like(convolution)
def convolution1d(**given: Any) -> _tf.Tensor:
    """``convolution`` of sequences, with its arguments."""
    return _unscoped(**{**given, "conv_dims": 1})  # type: ignore[no-any-return]


@add_arg_scope
@like(convolution)
def convolution2d(**given: Any) -> _tf.Tensor:
    """``convolution`` of images, with its arguments."""
    return _unscoped(**{**given, "conv_dims": 2})  # type: ignore[no-any-return]


@add_arg_scope
@like(convolution)
def convolution3d(**given: Any) -> _tf.Tensor:
    """``convolution`` of volumes, with its arguments."""
    return _unscoped(**{**given, "conv_dims": 3})  # type: ignore[no-any-return]


@add_arg_scope
@like(convolution, without=("rate", "conv_dims"), data_format="NHWC")
def convolution2d_transpose(**given: Any) -> _tf.Tensor:
    """The transpose of a convolution of images, in the scope ``Conv2d_transpose``; arguments as of ``convolution``."""
    return _with_kernel(Conv2DTranspose, given, "Conv2d_transpose")  # type: ignore[no-any-return]


@add_arg_scope
@like(convolution, without=("rate", "conv_dims"), data_format="NDHWC")
def convolution3d_transpose(**given: Any) -> _tf.Tensor:
    """The transpose of a convolution of volumes, in the scope ``Conv3d_transpose``; arguments as of ``convolution``."""
    return _with_kernel(Conv3DTranspose, given, "Conv3d_transpose")  # type: ignore[no-any-return]


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
    names = {"depthwise_kernel": "depthwise_weights", "pointwise_kernel": "pointwise_weights", "bias": "biases"}
    if num_outputs is not None:
        return _convolved(  # type: ignore[no-any-return]
            SeparableConv2D,
            locals(),
            "SeparableConv2d",
            names,
            dilation_rate=rate,
            depth_multiplier=depth_multiplier,
            depthwise_initializer=weights_initializer,
            pointwise_initializer=weights_initializer if pointwise_initializer is None else pointwise_initializer,
            depthwise_regularizer=weights_regularizer,
            pointwise_regularizer=weights_regularizer,
        )
    with _tf.variable_scope(scope, "SeparableConv2d", [inputs], reuse=reuse, custom_getter=getter(names)) as sc:
        inputs = _ops.convert_to_tensor(inputs)
        first = channels_word(data_format) == "channels_first"
        channels = inputs.shape[1 if first else 3].value
        kept = collections_of(variables_collections, "weights")
        shape = [*numbers(kernel_size, 2, "kernel_size"), channels, depth_multiplier]
        weights = model_variable(
            "depthwise_weights", shape, inputs.dtype, weights_initializer, weights_regularizer, trainable, kept
        )
        steps, rates = numbers(stride, 2, "stride"), numbers(rate, 2, "rate")
        strides = [1, 1, *steps] if first else [1, *steps, 1]
        outputs = _tf.nn.depthwise_conv2d(inputs, weights, strides, padding, rate=list(rates), data_format=data_format)
        if normalizer_fn is None and biases_initializer is not None:
            kept = collections_of(variables_collections, "biases")
            size = [channels * depth_multiplier]
            biases = model_variable(
                "biases", size, inputs.dtype, biases_initializer, biases_regularizer, trainable, kept
            )
            outputs = _tf.nn.bias_add(outputs, biases, data_format=data_format)
        return finished(outputs, normalizer_fn, normalizer_params, activation_fn, outputs_collections, sc.name)  # type: ignore[no-any-return]


@add_arg_scope
@like(convolution, without=("num_outputs", "data_format", "rate", "conv_dims"))
def convolution2d_in_plane(**given: Any) -> _tf.Tensor:
    """One filter over each channel of images by itself, with variables ``ConvInPlane/weights [h, w, 1, 1]`` and ``biases``.

    Args: those of ``convolution``; channels are last.
    """
    kept = given["variables_collections"]
    with _tf.variable_scope(given["scope"], "ConvInPlane", [given["inputs"]], reuse=given["reuse"]) as sc:
        inputs = _ops.convert_to_tensor(given["inputs"])
        channels = inputs.shape[3].value
        made = [inputs.dtype, given["weights_initializer"], given["weights_regularizer"], given["trainable"]]
        shape = [*numbers(given["kernel_size"], 2, "kernel_size"), 1, 1]
        weights = model_variable("weights", shape, *made, collections_of(kept, "weights"))
        strides = [1, *numbers(given["stride"], 2, "stride"), 1]
        filters = _tf.tile(weights, [1, 1, channels, 1])
        outputs = _tf.nn.depthwise_conv2d(inputs, filters, strides, given["padding"])
        if given["normalizer_fn"] is None and given["biases_initializer"] is not None:
            made = [inputs.dtype, given["biases_initializer"], given["biases_regularizer"], given["trainable"]]
            outputs += model_variable("biases", [channels], *made, collections_of(kept, "biases"))
        normalizer = given["normalizer_fn"], given["normalizer_params"]
        return finished(outputs, *normalizer, given["activation_fn"], given["outputs_collections"], sc.name)  # type: ignore[no-any-return]
