"""Public functions of colours, contrast and value ranges: names, arguments and defaults are TensorFlow 1's.

Images whose dtype an op does not take are converted to float32 and back, integers by their largest value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import graphdock as _tf
import numpy as np
from graphdock import dtypes
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError
from graphdock.typing import DTypeLike, TensorLike

from graphdock_std.grad_support import static_shape
from graphdock_std.image.support import of_rank, with_channels, with_pixels

_GAMMA = "Gamma should be a non-negative real number."

#: What an op computes as it is.
_NATIVE = ("float16", "float32")

#: Luma weights of ITU-R BT.601, as TensorFlow rounds them.
_GRAY = (0.2989, 0.5870, 0.1140)
_YIQ = ((0.299, 0.59590059, 0.2115), (0.587, -0.27455667, -0.52273617), (0.114, -0.32134392, 0.31119955))
_FROM_YIQ = ((1.0, 1.0, 1.0), (0.95598634, -0.27201283, -1.10674021), (0.6208248, -0.64720424, 1.70423049))
_YUV = ((0.299, -0.14714119, 0.61497538), (0.587, -0.28886916, -0.51496512), (0.114, 0.43601035, -0.10001026))
_FROM_YUV = ((1.0, 1.0, 1.0), (0.0, -0.394642334, 2.03206185), (1.13988303, -0.58062185, 0.0))


def saturate_cast(value: TensorLike, dtype: DTypeLike, name: str | None = None) -> _ops.Tensor:
    """``value`` as ``dtype``, where what is out of its range becomes its nearest end instead of wrapping around."""
    kind = dtypes.as_dtype(dtype)
    with _ops.name_scope(name or "saturate_cast") as scope:
        value = _ops.convert_to_tensor(value, name="value")
        low, high = _end(value.dtype, kind, "min"), _end(value.dtype, kind, "max")
        if low is not None:
            value = _tf.maximum(value, _ops.constant(low, value.dtype))
        if high is not None:
            value = _tf.minimum(value, _ops.constant(high, value.dtype))
        return _ops.cast(value, kind, name=scope)


def _end(dtype: Any, kind: Any, which: str) -> Any:
    """One end of the range of ``kind`` as a number of ``dtype`` that does not lie beyond it; None where nothing does."""
    its, wanted = (_number(getattr(d, which)) for d in (dtype, kind))
    if (its >= wanted) if which == "min" else (its <= wanted):
        return its if dtype.is_floating and kind.is_integer else None  # infinities lie beyond
    near = np.array(float(wanted) if dtype.is_floating else wanted, dtype.np)
    if dtype.is_floating and abs(int(near) if kind.is_integer else float(near)) > abs(wanted):
        near = np.nextafter(near, np.zeros((), dtype.np))
    return near


def _number(limit: Any) -> Any:
    return int(limit) if isinstance(limit, (int, np.integer)) else float(limit)


def convert_image_dtype(
    image: TensorLike, dtype: DTypeLike, saturate: bool = False, name: str | None = None
) -> _ops.Tensor:
    """An image of another dtype: floating ones hold numbers in [0, 1), integer ones up to their largest value.

    Args:
      saturate: clip what would not fit (a float of 1.5, say) before it is cast.
    """
    kind = dtypes.as_dtype(dtype)
    image = _ops.convert_to_tensor(image, name="image")
    if image.dtype is kind:
        return _ops.identity(image, name=name)
    cast: Callable[..., Any] = saturate_cast if saturate else _ops.cast
    with _ops.name_scope(name or "convert_image") as scope:
        if image.dtype.is_integer and kind.is_integer:
            have, want = int(image.dtype.max) + 1, int(kind.max) + 1
            if have > want:
                return cast(_tf.floordiv(image, _ops.constant(have // want, image.dtype)), kind, name=scope)
            return _tf.multiply(cast(image, kind), _ops.constant(want // have, kind), name=scope)
        if image.dtype.is_floating and kind.is_floating:
            return _ops.cast(image, kind, name=scope)
        if image.dtype.is_integer:
            return _tf.multiply(_ops.cast(image, kind), _ops.constant(1.0 / int(image.dtype.max), kind), name=scope)
        return cast(image * _ops.constant(int(kind.max) + 0.5, image.dtype), kind, name=scope)


def _in_float(image: Any, change: Callable[[Any], Any], name: str, saturate: bool) -> Any:
    """``change`` of the image as a float, back in the image's dtype."""
    with _ops.name_scope(name):
        image = _ops.convert_to_tensor(image, name="image")
        wide = image if image.dtype.name in _NATIVE else convert_image_dtype(image, "float32")
        changed = change(wide)
        return changed if changed.dtype is image.dtype else convert_image_dtype(changed, image.dtype, saturate)


def adjust_brightness(image: TensorLike, delta: TensorLike) -> _ops.Tensor:
    """``image + delta``, where delta is in [0, 1) for integer images too: they are scaled, and clipped to their range."""
    return _in_float(
        image, lambda x: x + _ops.cast(_ops.convert_to_tensor(delta), x.dtype), "adjust_brightness", saturate=True
    )


def adjust_contrast(images: TensorLike, contrast_factor: TensorLike) -> _ops.Tensor:
    """``(x - mean) * contrast_factor + mean`` in each channel of images ``[...,H,W,C]``, whose mean is over H and W."""

    def change(x: Any) -> Any:
        return _ops.apply_op("AdjustContrastv2", images=x, contrast_factor=contrast_factor)

    return _in_float(images, change, "adjust_contrast", saturate=True)


def adjust_gamma(image: TensorLike, gamma: TensorLike = 1, gain: TensorLike = 1) -> _ops.Tensor:
    """``gain * image ** gamma`` of an image in [0, 1]; integers are scaled there and back.

    Raises:
      InvalidArgumentError: a negative gamma; in the step where it is a tensor.
    """
    if isinstance(gamma, (int, float)) and gamma < 0:
        raise InvalidArgumentError(_GAMMA, got=str(gamma))

    def change(x: Any) -> Any:
        power = gamma
        if isinstance(gamma, _tf.Tensor | _tf.Variable):
            valid = _tf.Assert(_tf.reduce_all(_tf.greater_equal(gamma, 0)), [_GAMMA, gamma])
            with _ops.control_dependencies([valid]):
                power = _ops.identity(gamma)
        return gain * x**power

    return _in_float(image, change, "adjust_gamma", saturate=True)


def adjust_hue(image: TensorLike, delta: TensorLike, name: str | None = None) -> _ops.Tensor:
    """RGB images ``[...,3]`` with ``delta``, in [-1, 1], added to their hue."""

    def change(x: Any) -> Any:
        return _ops.apply_op("AdjustHue", images=with_channels(x), delta=delta)

    return _in_float(image, change, name or "adjust_hue", saturate=False)


def adjust_saturation(image: TensorLike, saturation_factor: TensorLike, name: str | None = None) -> _ops.Tensor:
    """RGB images ``[...,3]`` with their saturation multiplied, and clipped to [0, 1]."""

    def change(x: Any) -> Any:
        return _ops.apply_op("AdjustSaturation", images=with_channels(x), scale=saturation_factor)

    return _in_float(image, change, name or "adjust_saturation", saturate=False)


def _draw(lower: float, upper: float, seed: int | None) -> Any:
    return _tf.random_uniform([], lower, upper, seed=seed)


def _range(lower: float, upper: float) -> None:
    if upper <= lower or lower < 0:
        raise InvalidArgumentError(
            "lower and upper are no range", expected="0 <= lower < upper", got=f"{lower}, {upper}"
        )


def random_brightness(image: TensorLike, max_delta: float, seed: int | None = None) -> _ops.Tensor:
    """:func:`adjust_brightness` by a number drawn from [-max_delta, max_delta). Raises InvalidArgumentError if it is negative."""
    if max_delta < 0:
        raise InvalidArgumentError("max_delta must not be negative", got=str(max_delta))
    return adjust_brightness(image, _draw(-max_delta, max_delta, seed))


def random_contrast(image: TensorLike, lower: float, upper: float, seed: int | None = None) -> _ops.Tensor:
    """:func:`adjust_contrast` by a factor drawn from [lower, upper). Raises InvalidArgumentError if that is no range."""
    _range(lower, upper)
    return adjust_contrast(image, _draw(lower, upper, seed))


def random_hue(image: TensorLike, max_delta: float, seed: int | None = None) -> _ops.Tensor:
    """:func:`adjust_hue` by a number drawn from [-max_delta, max_delta).

    Raises:
      InvalidArgumentError: max_delta is not in [0, 0.5].
    """
    if not 0 <= max_delta <= 0.5:
        raise InvalidArgumentError("max_delta must be in [0, 0.5]", got=str(max_delta))
    return adjust_hue(image, _draw(-max_delta, max_delta, seed))


def random_saturation(image: TensorLike, lower: float, upper: float, seed: int | None = None) -> _ops.Tensor:
    """:func:`adjust_saturation` by a factor drawn from [lower, upper). Raises InvalidArgumentError if that is no range."""
    _range(lower, upper)
    return adjust_saturation(image, _draw(lower, upper, seed))


def per_image_standardization(image: TensorLike) -> _ops.Tensor:
    """Images ``[...,H,W,C]`` of mean 0 and standard deviation 1, each by itself, as float32.

    The deviation is taken to be at least ``1 / sqrt(H * W * C)``, so that an even image becomes zeros.
    """
    with _ops.name_scope("per_image_standardization") as scope:
        image = with_pixels(of_rank(image, least=3))
        image = _ops.cast(image, "float32")
        axes = [-1, -2, -3]
        dims = static_shape(image)
        known = dims is not None and None not in dims[-3:]
        count = math.prod(dims[-3:]) if known else _tf.reduce_prod(_ops.shape(image)[-3:])  # type: ignore[index,arg-type]
        least = _tf.rsqrt(_ops.cast(count, image.dtype))
        mean = _tf.reduce_mean(image, axes, keepdims=True)
        deviation = _tf.reduce_std(image, axes, keepdims=True)
        return _tf.truediv(image - mean, _tf.maximum(deviation, least), name=scope)


def rgb_to_grayscale(images: TensorLike, name: str | None = None) -> _ops.Tensor:
    """RGB images ``[...,3]`` as ``[...,1]`` of the same dtype, by the weights 0.2989, 0.5870 and 0.1140."""
    with _ops.name_scope(name or "rgb_to_grayscale") as scope:
        images = with_channels(images)
        wide = convert_image_dtype(images, "float32")
        gray = _tf.reduce_sum(wide * _ops.constant(_GRAY, "float32"), -1, keepdims=True)
        return convert_image_dtype(gray, images.dtype, name=scope)


def grayscale_to_rgb(images: TensorLike, name: str | None = None) -> _ops.Tensor:
    """Images ``[...,1]`` as ``[...,3]``, three times the same. Raises ShapeError for another last dim."""
    with _ops.name_scope(name or "grayscale_to_rgb") as scope:
        images = with_channels(images, 1)
        return _tf.concat([images] * 3, -1, name=scope)


def _mixed(images: Any, matrix: Any, name: str) -> Any:
    with _ops.name_scope(name):
        images = with_channels(images)
        return _tf.tensordot(images, _ops.constant(matrix, images.dtype), [[-1], [0]])


def rgb_to_yiq(images: TensorLike) -> _ops.Tensor:
    """RGB images ``[...,3]`` in [0, 1] as luma and chrominance of NTSC. Raises ShapeError for another last dim."""
    return _mixed(images, _YIQ, "rgb_to_yiq")


def yiq_to_rgb(images: TensorLike) -> _ops.Tensor:
    """Return what :func:`rgb_to_yiq` made back as RGB."""
    return _mixed(images, _FROM_YIQ, "yiq_to_rgb")


def rgb_to_yuv(images: TensorLike) -> _ops.Tensor:
    """RGB images ``[...,3]`` in [0, 1] as luma and chrominance of PAL. Raises ShapeError for another last dim."""
    return _mixed(images, _YUV, "rgb_to_yuv")


def yuv_to_rgb(images: TensorLike) -> _ops.Tensor:
    """Return what :func:`rgb_to_yuv` made back as RGB."""
    return _mixed(images, _FROM_YUV, "yuv_to_rgb")
