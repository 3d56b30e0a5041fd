"""Public functions that measure images: how they differ, and how they vary. Names and defaults are TensorFlow 1's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import graphdock as _tf
import numpy as np
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError, ShapeError
from graphdock.typing import TensorLike

from graphdock_std.grad_support import static_shape
from graphdock_std.image.color import convert_image_dtype
from graphdock_std.image.support import of_rank

#: Weights of the scales, from Wang, Simoncelli and Bovik, "Multi-scale structural similarity", 2003.
_SCALES = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)


def _pair(a: Any, b: Any, max_val: Any) -> tuple[Any, Any, Any]:
    """Two images and their range as float32. Raises ShapeError where they are known to differ in height, width or channels."""
    a, b = of_rank(a, least=3), of_rank(b, least=3)
    first, second = static_shape(a), static_shape(b)
    if first is not None and second is not None:
        for x, y in zip(first[-3:], second[-3:], strict=True):
            if None not in (x, y) and x != y:
                raise ShapeError("two images differ in height, width or channels", got=f"{a.shape} and {b.shape}")
    top = convert_image_dtype(_ops.cast(_ops.convert_to_tensor(max_val), a.dtype), "float32")
    return convert_image_dtype(a, "float32"), convert_image_dtype(b, "float32"), top


def psnr(a: TensorLike, b: TensorLike, max_val: TensorLike, name: str | None = None) -> _ops.Tensor:
    """Peak signal-to-noise ratio in decibels of images ``[...,H,W,C]``, one for each: ``10 log10(max_val**2 / mse)``.

    ``max_val`` is the difference between the largest and the least value that a pixel may have (255 for uint8).
    """
    with _ops.name_scope(name or "PSNR"):
        first, second, top = _pair(a, b, max_val)
        error = _tf.reduce_mean(_tf.squared_difference(first, second), [-3, -2, -1])
        return 20 / math.log(10) * _tf.log(top) - 10 / math.log(10) * _tf.log(error)


def _gaussian(size: int, sigma: float) -> list[float]:
    at = np.arange(size) - (size - 1) / 2
    weights = np.exp(-0.5 * (at / sigma) ** 2)
    return [float(w) for w in weights / weights.sum()]


def _filtered(images: Any, weights: Sequence[float]) -> Any:
    """Each channel of ``[N,H,W,C]`` convolved with the weights along H and along W, without a margin."""
    for axis in (1, 2):
        dims = static_shape(images)
        known = None if dims is None else dims[axis]
        left = (_ops.shape(images)[axis] if known is None else known) - len(weights) + 1
        total = None
        for k, weight in enumerate(weights):
            begin = [k if i == axis else 0 for i in range(4)]
            part = weight * _tf.slice(images, begin, _tf.stack([left if i == axis else -1 for i in range(4)]))
            total = part if total is None else total + part
        images = total
    return images


def _similarity(a: Any, b: Any, top: Any, weights: Sequence[float], k1: float, k2: float) -> tuple[Any, Any]:
    """Structural similarity and its contrast part, a map ``[...,h,w,C]`` each."""
    shape = _ops.shape(a + b)
    flat = [_tf.reshape(x + _tf.zeros_like(a + b), _tf.concat([[-1], shape[-3:]], 0)) for x in (a, b)]
    for x in flat:
        dims = static_shape(a)
        x.set_shape([None, *(dims[-3:] if dims is not None else (None,) * 3)])
    x, y = flat
    made = _filtered(_tf.concat([x, y, x * y, x * x + y * y], 0), weights)
    mean_x, mean_y, product, squares = _tf.split(made, 4)
    c1, c2 = (k1 * top) ** 2, (k2 * top) ** 2
    both, own = mean_x * mean_y * 2, mean_x * mean_x + mean_y * mean_y
    luminance = (both + c1) / (own + c1)
    contrast = (2 * product - both + c2) / (squares - own + c2)
    back = _tf.concat([shape[:-3], _ops.shape(contrast)[1:]], 0)
    return _tf.reshape(luminance * contrast, back), _tf.reshape(contrast, back)


def _large_enough(image: Any, filter_size: int) -> None:
    dims = static_shape(image)
    if dims is not None and any(d is not None and d < filter_size for d in dims[-3:-1]):
        raise ShapeError(f"the images are smaller than the filter of {filter_size}", got=f"shape {image.shape}")


def ssim(
    img1: TensorLike,
    img2: TensorLike,
    max_val: TensorLike,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> _ops.Tensor:
    """Structural similarity of images ``[...,H,W,C]``, one float32 for each: the mean over places and channels.

    Wang, Bovik, Sheikh and Simoncelli, "Image quality assessment", 2004, over a Gaussian window without a margin.

    Raises:
      ShapeError: the images differ in height, width or channels, or are smaller than the filter.
    """
    with _ops.name_scope("SSIM"):
        a, b, top = _pair(img1, img2, max_val)
        for image in (a, b):
            _large_enough(image, filter_size)
        value, _ = _similarity(a, b, top, _gaussian(filter_size, filter_sigma), k1, k2)
        return _tf.reduce_mean(_tf.reduce_mean(value, [-3, -2]), -1)


def ssim_multiscale(
    img1: TensorLike,
    img2: TensorLike,
    max_val: TensorLike,
    power_factors: Sequence[float] = _SCALES,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> _ops.Tensor:
    """Structural similarity over several scales, each half of the one before, of images ``[...,H,W,C]``.

    Wang, Simoncelli and Bovik, "Multi-scale structural similarity for image quality assessment", 2003; ``power_factors`` are
    the weights of the scales. An odd size gets its last row or column twice. Raises as :func:`ssim`, of every scale.
    """
    with _ops.name_scope("MS-SSIM"):
        a, b, top = _pair(img1, img2, max_val)
        weights, parts = _gaussian(filter_size, filter_sigma), []
        for scale in range(len(power_factors)):
            if scale:
                a, b = _halved(a), _halved(b)
            for image in (a, b):
                _large_enough(image, filter_size)
            value, contrast = _similarity(a, b, top, weights, k1, k2)
            last = scale == len(power_factors) - 1
            parts.append(_tf.nn.relu(_tf.reduce_mean(value if last else contrast, [-3, -2])))
        powers = _ops.constant(list(power_factors), "float32")
        return _tf.reduce_mean(_tf.reduce_prod(_tf.pow(_tf.stack(parts, -1), powers), -1), -1)


def _halved(image: Any) -> Any:
    """The mean of each two by two pixels."""
    for axis in (-3, -2):
        dims = static_shape(image)
        rank, size = len(dims), dims[axis]  # type: ignore[arg-type,index]
        if size is None:
            raise InvalidArgumentError("ssim_multiscale needs images of known height and width", got=str(image.shape))
        at = rank + axis
        if size % 2:
            image = _tf.concat([image, _part(image, at, size - 1, 1)], at)
        shape = [(_ops.shape(image)[i] if d is None else d) for i, d in enumerate(static_shape(image))]  # type: ignore[arg-type]
        split = [*shape[:at], (size + 1) // 2, 2, *shape[at + 1 :]]
        image = _tf.reduce_mean(_tf.reshape(image, _tf.stack(split)), at + 1)
    return image


def _part(image: Any, axis: int, begin: int, size: int) -> Any:
    rank = len(static_shape(image))  # type: ignore[arg-type]
    return _tf.slice(
        image, [begin if i == axis else 0 for i in range(rank)], [size if i == axis else -1 for i in range(rank)]
    )


def total_variation(images: TensorLike, name: str | None = None) -> _ops.Tensor:
    """Sum of the absolute differences of neighbouring pixels: a scalar for ``[H,W,C]``, one for each of ``[B,H,W,C]``.

    Raises:
      ShapeError: images of another rank, or of none that is known.
    """
    with _ops.name_scope(name or "total_variation"):
        images = of_rank(images, 3, 4)
        if images.shape.ndims is None:
            raise ShapeError("images have no known rank", expected="rank 3 or 4", hint="say which by set_shape")
        batch = images.shape.ndims == 4
        axes = [1, 2, 3] if batch else None
        lead = (slice(None),) if batch else ()
        down = images[(*lead, slice(1, None))] - images[(*lead, slice(None, -1))]
        along = images[(*lead, slice(None), slice(1, None))] - images[(*lead, slice(None), slice(None, -1))]
        return _tf.reduce_sum(_tf.abs(down), axes) + _tf.reduce_sum(_tf.abs(along), axes)


def image_gradients(image: TensorLike) -> tuple[_ops.Tensor, _ops.Tensor]:
    """Differences ``dy`` and ``dx`` of each pixel of ``[B,H,W,C]`` to the next one, zero at the last.

    Raises:
      ShapeError: an image of another rank.
    """
    image = of_rank(image, 4)
    with _ops.name_scope("image_gradients"):
        down, along = image[:, 1:] - image[:, :-1], image[:, :, 1:] - image[:, :, :-1]
        dy = _tf.pad(down, [[0, 0], [0, 1], [0, 0], [0, 0]])
        dx = _tf.pad(along, [[0, 0], [0, 0], [0, 1], [0, 0]])
        for made in (dy, dx):
            made.set_shape(image.shape)
        return dy, dx


def sobel_edges(image: TensorLike) -> _ops.Tensor:
    """Sobel's derivatives of images ``[B,H,W,C]``, as ``[B,H,W,C,2]``: down, then along; the margin mirrors.

    Raises:
      ShapeError: images of another rank.
    """
    image = of_rank(image, 4)
    with _ops.name_scope("sobel_edges"):
        x = _tf.pad(image, [[0, 0], [1, 1], [1, 1], [0, 0]], mode="REFLECT")
        down, along = x[:, 2:] - x[:, :-2], x[:, :, 2:] - x[:, :, :-2]
        dy = down[:, :, :-2] + 2 * down[:, :, 1:-1] + down[:, :, 2:]
        dx = along[:, :-2] + 2 * along[:, 1:-1] + along[:, 2:]
        edges = _tf.stack([dy, dx], -1)
        edges.set_shape([*(image.shape.dims or [None] * 4), 2])
        return edges
