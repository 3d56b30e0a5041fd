"""Convolutions with a kernel, a bias and an activation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Unpack

import graphdock as _tf
from graphdock.errors import ShapeError

from graphdock_tf1.layers.functional import data_format_of, layer_function, numbers, padding_of
from graphdock_tf1.layers.input_spec import InputSpec
from graphdock_tf1.layers.weighted import Weighted, WeightedKeywords


def conv_length(size: int | None, window: int, padding: str, stride: int, dilation: int = 1) -> int | None:
    """Return how many places a window has along a dim; None where the dim is not known."""
    if size is None:
        return None
    over = size if padding in ("same", "causal") else size - (window - 1) * dilation
    return -(-over // stride)


class Conv(Weighted):
    """Base of convolutions. A subclass says of how many dims it is."""

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
        **keywords: Unpack[WeightedKeywords],
    ) -> None:
        super().__init__(locals())
        n = self.spatial
        self.filters = numbers(filters, 1, "filters")[0]
        self.kernel_size = numbers(kernel_size, n, "kernel_size")
        self.strides = numbers(strides, n, "strides")
        self.padding = padding_of(padding, *(["causal"] if n == 1 else []))
        self.dilation_rate = numbers(dilation_rate, n, "dilation_rate")
        self.data_format = data_format
        self._format = data_format_of(data_format, n + 2)
        self._channels = 1 if self._format.startswith("NC") else n + 1
        self._bias_format = "NCHW" if self._channels == 1 else "NHWC"
        self.input_spec = InputSpec(ndim=n + 2)

    def build(self, input_shape: Any) -> None:
        channels = self._known_channels(input_shape)
        self.kernel = self._variable("kernel", self._kernel_shape(channels), "kernel")
        self._build_bias(self.filters)

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

    def compute_output_shape(self, input_shape: Any) -> _tf.TensorShape:
        dims = _tf.TensorShape(input_shape).as_list()
        first = 2 if self._channels == 1 else 1
        made = [self._length(dims[first + i], i) for i in range(self.spatial)]
        return _tf.TensorShape([dims[0], self.filters, *made] if first == 2 else [dims[0], *made, self.filters])

    def _length(self, size: int | None, i: int) -> int | None:
        return conv_length(size, self.kernel_size[i], self.padding, self.strides[i], self.dilation_rate[i])


class Conv1D(Conv):
    """Slide filters over sequences ``[batch, width, channels]``; as :class:`Conv2D`, and ``padding="causal"`` for zeros before."""

    spatial = 1


class Conv2D(Conv):
    """Slide filters over images, with variables ``conv2d/kernel`` and ``conv2d/bias``.

    Args:
      inputs: of a call, floating tensor ``[batch, height, width, channels]``, or ``[batch, channels, height, width]`` with
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

    spatial = 2


class Conv3D(Conv):
    """Slide filters over volumes ``[batch, depth, height, width, channels]``; as :class:`Conv2D`."""

    spatial = 3


conv1d = layer_function(Conv1D)
conv2d = layer_function(Conv2D, strides=(1, 1), dilation_rate=(1, 1))
conv3d = layer_function(Conv3D, strides=(1, 1, 1), dilation_rate=(1, 1, 1))
