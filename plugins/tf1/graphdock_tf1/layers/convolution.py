"""Convolutions with a kernel, a bias and an activation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import graphdock as _tf
from graphdock.errors import ShapeError
from graphdock.typing import TensorLike

from graphdock_tf1.layers.base import Layer
from graphdock_tf1.layers.functional import called, data_format_of, numbers, padding_of
from graphdock_tf1.layers.input_spec import InputSpec
from graphdock_tf1.layers.lookup import activation_of, initializer_of

__all__ = ["Conv", "Conv1D", "Conv2D", "Conv3D", "conv1d", "conv2d", "conv3d", "conv_length"]


def conv_length(size: int | None, window: int, padding: str, stride: int, dilation: int = 1) -> int | None:
    """How many places a window has along a dim; None where the dim is not known."""
    if size is None:
        return None
    over = size if padding in ("same", "causal") else size - (window - 1) * dilation
    return -(-over // stride)


class Conv(Layer):
    """What convolutions have in common. A subclass says of how many dims it is."""

    spatial: ClassVar[int]

    def __init__(
        self,
        filters: int,
        kernel_size: int | Sequence[int],
        strides: int | Sequence[int] = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: int | Sequence[int] = 1,
        activation: Callable[[Any], Any] | str | None = None,
        use_bias: bool = True,
        kernel_initializer: Any = None,
        bias_initializer: Any = "zeros",
        kernel_regularizer: Callable[[Any], Any] | None = None,
        bias_regularizer: Callable[[Any], Any] | None = None,
        activity_regularizer: Callable[[Any], Any] | None = None,
        kernel_constraint: Callable[[Any], Any] | None = None,
        bias_constraint: Callable[[Any], Any] | None = None,
        trainable: bool = True,
        name: str | None = None,
        **keywords: Any,
    ) -> None:
        super().__init__(trainable, name, activity_regularizer=activity_regularizer, **keywords)
        n = self.spatial
        self.filters = numbers(filters, 1, "filters")[0]
        self.kernel_size = numbers(kernel_size, n, "kernel_size")
        self.strides = numbers(strides, n, "strides")
        self.padding = padding_of(padding, *(["causal"] if n == 1 else []))
        self.dilation_rate = numbers(dilation_rate, n, "dilation_rate")
        self.data_format = data_format
        self._format = data_format_of(data_format, n + 2)
        self._channels = 1 if self._format.startswith("NC") else n + 1
        self.activation = activation_of(activation)
        self.use_bias = use_bias
        self.kernel_initializer = initializer_of(kernel_initializer)
        self.bias_initializer = initializer_of(bias_initializer)
        self.kernel_regularizer = kernel_regularizer
        self.bias_regularizer = bias_regularizer
        self.kernel_constraint = kernel_constraint
        self.bias_constraint = bias_constraint
        self.input_spec = InputSpec(ndim=n + 2)
        self.kernel: Any = None
        self.bias: Any = None

    def build(self, input_shape: Any) -> None:
        channels = self._known_channels(input_shape)
        self.kernel = self.add_weight(
            "kernel",
            self._kernel_shape(channels),
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )
        self._build_bias()

    def _known_channels(self, input_shape: Any) -> int:
        """The channels of the inputs, which are held to them from now on."""
        channels: int | None = _tf.TensorShape(input_shape)[self._channels].value
        if channels is None:
            raise ShapeError(
                f"the layer {self.name!r} must know the channels of its inputs",
                expected=f"a number for dim {self._channels}",
                got=str(input_shape),
            )
        self.input_spec = InputSpec(ndim=self.spatial + 2, axes={self._channels: channels})
        return channels

    def _kernel_shape(self, channels: int) -> list[int]:
        return [*self.kernel_size, channels, self.filters]

    def _build_bias(self) -> None:
        if self.use_bias:
            self.bias = self.add_weight(
                "bias",
                [self.filters],
                initializer=self.bias_initializer,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
            )
        self.built = True

    def call(self, inputs: Any) -> Any:
        convolve = (_tf.nn.conv1d, _tf.nn.conv2d, _tf.nn.conv3d)[self.spatial - 1]
        padding = self.padding
        if padding == "causal":
            inputs, padding = self._past(inputs), "valid"
        made = convolve(
            inputs,
            self.kernel,
            list(self.strides),
            padding.upper(),
            data_format=self._format,
            dilations=list(self.dilation_rate),
        )
        return self._finish(made)

    def _past(self, inputs: Any) -> Any:
        """Inputs with zeros before the first, so that no output sees what comes after it."""
        before = (self.kernel_size[0] - 1) * self.dilation_rate[0]
        pads = [[0, 0], [0, 0], [0, 0]]
        pads[3 - self._channels] = [before, 0]
        return _tf.pad(inputs, pads)

    def _finish(self, made: Any) -> Any:
        if self.use_bias:
            made = _tf.nn.bias_add(made, self.bias, data_format="NCHW" if self._channels == 1 else "NHWC")
        return made if self.activation is None else self.activation(made)

    def compute_output_shape(self, input_shape: Any) -> _tf.TensorShape:
        dims = _tf.TensorShape(input_shape).as_list()
        first = 2 if self._channels == 1 else 1
        made = [self._length(dims[first + i], i) for i in range(self.spatial)]
        return _tf.TensorShape([dims[0], self.filters, *made] if first == 2 else [dims[0], *made, self.filters])

    def _length(self, size: int | None, i: int) -> int | None:
        return conv_length(size, self.kernel_size[i], self.padding, self.strides[i], self.dilation_rate[i])


class Conv1D(Conv):
    """A convolution of sequences. Arguments are those of :func:`conv1d`."""

    spatial = 1


class Conv2D(Conv):
    """A convolution of images. Arguments are those of :func:`conv2d`."""

    spatial = 2


class Conv3D(Conv):
    """A convolution of volumes. Arguments are those of :func:`conv3d`."""

    spatial = 3


def conv2d(
    inputs: TensorLike,
    filters: int,
    kernel_size: int | Sequence[int],
    strides: int | Sequence[int] = (1, 1),
    padding: str = "valid",
    data_format: str = "channels_last",
    dilation_rate: int | Sequence[int] = (1, 1),
    activation: Callable[[Any], Any] | str | None = None,
    use_bias: bool = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = "zeros",
    kernel_regularizer: Callable[[Any], Any] | None = None,
    bias_regularizer: Callable[[Any], Any] | None = None,
    activity_regularizer: Callable[[Any], Any] | None = None,
    kernel_constraint: Callable[[Any], Any] | None = None,
    bias_constraint: Callable[[Any], Any] | None = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
) -> _tf.Tensor:
    """Slide filters over images, with variables ``conv2d/kernel`` and ``conv2d/bias``.

    Args:
      inputs: floating tensor ``[batch, height, width, channels]``, or ``[batch, channels, height, width]`` with
        ``data_format="channels_first"``.
      filters: number of channels of the result.
      kernel_size, strides, dilation_rate: one number, or one per spatial dim.
      padding: ``"valid"`` or ``"same"``, in any letters.
      activation, use_bias, trainable, name, reuse and the initializers, regularizers and constraints: as of ``tf.layers.dense``.

    Returns:
      A tensor of the same layout.

    Raises:
      ShapeError: another rank, or the number of channels is not known. InvalidArgumentError: a number, padding or data_format that
        fits no convolution.
    """
    return called(Conv2D, locals())  # type: ignore[no-any-return]


def conv1d(
    inputs: TensorLike,
    filters: int,
    kernel_size: int | Sequence[int],
    strides: int | Sequence[int] = 1,
    padding: str = "valid",
    data_format: str = "channels_last",
    dilation_rate: int | Sequence[int] = 1,
    activation: Callable[[Any], Any] | str | None = None,
    use_bias: bool = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = "zeros",
    kernel_regularizer: Callable[[Any], Any] | None = None,
    bias_regularizer: Callable[[Any], Any] | None = None,
    activity_regularizer: Callable[[Any], Any] | None = None,
    kernel_constraint: Callable[[Any], Any] | None = None,
    bias_constraint: Callable[[Any], Any] | None = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
) -> _tf.Tensor:
    """Slide filters over sequences ``[batch, width, channels]``; as :func:`conv2d`, and ``padding="causal"`` for zeros before."""
    return called(Conv1D, locals())  # type: ignore[no-any-return]


def conv3d(
    inputs: TensorLike,
    filters: int,
    kernel_size: int | Sequence[int],
    strides: int | Sequence[int] = (1, 1, 1),
    padding: str = "valid",
    data_format: str = "channels_last",
    dilation_rate: int | Sequence[int] = (1, 1, 1),
    activation: Callable[[Any], Any] | str | None = None,
    use_bias: bool = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = "zeros",
    kernel_regularizer: Callable[[Any], Any] | None = None,
    bias_regularizer: Callable[[Any], Any] | None = None,
    activity_regularizer: Callable[[Any], Any] | None = None,
    kernel_constraint: Callable[[Any], Any] | None = None,
    bias_constraint: Callable[[Any], Any] | None = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
) -> _tf.Tensor:
    """Slide filters over volumes ``[batch, depth, height, width, channels]``; as :func:`conv2d`."""
    return called(Conv3D, locals())  # type: ignore[no-any-return]
