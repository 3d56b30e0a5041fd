"""Transposed convolutions: from few places to many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import graphdock as _tf
from graphdock.errors import ArgumentTypeError

from graphdock_tf1.layers.convolution import Conv
from graphdock_tf1.layers.functional import layer_function


class _Transposed(Conv):
    """Base of transposed convolutions; the kernel's last dims are outputs and inputs."""

    def __init__(
        self,
        filters: int,
        kernel_size: int | Sequence[int],
        strides: int | Sequence[int] = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        *more: Any,
        **keywords: Any,
    ) -> None:
        if "dilation_rate" in keywords:
            raise ArgumentTypeError(f"{type(self).__name__} has no dilation_rate")
        super().__init__(filters, kernel_size, strides, padding, data_format, 1, *more, **keywords)

    def _kernel_shape(self, channels: int) -> list[int]:
        return [*self.kernel_size, self.filters, channels]

    def call(self, inputs: Any) -> Any:
        expand = _tf.nn.conv2d_transpose if self.spatial == 2 else _tf.nn.conv3d_transpose
        shape = self.compute_output_shape(inputs.shape)
        sizes = shape.as_list()
        if None in sizes:
            dims = _tf.shape(inputs)
            first = 2 if self._channels == 1 else 1
            for i, size in enumerate(sizes):
                if size is None:
                    sizes[i] = dims[0] if i == 0 else self._length(dims[i], i - first)
            sizes = _tf.stack(sizes)
        made = expand(inputs, self.kernel, sizes, list(self.strides), self.padding.upper(), data_format=self._format)
        made.set_shape(shape)
        return self._finish(made)

    def _length(self, size: Any, i: int) -> Any:
        if size is None:
            return None
        return size * self.strides[i] + (
            max(self.kernel_size[i] - self.strides[i], 0) if self.padding == "valid" else 0
        )


class Conv2DTranspose(_Transposed):
    """The transpose of a convolution of images, ``strides`` times as large; arguments are those of ``tf.layers.conv2d``.

    Returns:
      ``[batch, height * stride, width * stride, filters]`` with ``padding="same"``; with ``"valid"`` as much larger as the kernel
      is than the stride. Variables are ``conv2d_transpose/kernel``, ``[height, width, filters, channels]``, and ``bias``.
    """

    spatial = 2


class Conv3DTranspose(_Transposed):
    """The transpose of a convolution of volumes; as :class:`Conv2DTranspose`."""

    spatial = 3


conv2d_transpose = layer_function(Conv2DTranspose, Conv, without=("dilation_rate",), strides=(1, 1))
conv3d_transpose = layer_function(Conv3DTranspose, Conv, without=("dilation_rate",), strides=(1, 1, 1))
