"""Public functions of image files: names, arguments and defaults are TensorFlow 1's. They need the extra ``graphdock[images]``."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import dtypes
from graphdock import ops as _ops
from graphdock.errors import DTypeError, InvalidArgumentError
from graphdock.typing import DTypeLike, TensorLike

from graphdock_std.grad_support import static_shape
from graphdock_std.image.color import convert_image_dtype


def decode_image(
    contents: TensorLike,
    channels: int | None = None,
    dtype: DTypeLike = dtypes.uint8,
    name: str | None = None,
    expand_animations: bool = True,
) -> _ops.Tensor:
    """The pixels of a JPEG, PNG, GIF or BMP file, which is told by its contents.

    Args:
      contents: a scalar of strings, the file's bytes.
      channels: 1 for grey, 3 for RGB, 4 with opacity; 0 or None as the file has them.
      dtype: uint8, uint16 or float32; see :func:`convert_image_dtype`.
      expand_animations: give all frames of a GIF, ``[N,H,W,3]``; else its first one, and a tensor that is known to be ``[H,W,C]``.

    Raises:
      DTypeError: another dtype.
      InvalidArgumentError: contents are no such file; when the step runs.
      UnimplementedError: Pillow is not installed; when the step is planned.
    """
    kind = dtypes.as_dtype(dtype)
    if kind.name not in ("uint8", "uint16", "float32"):
        raise DTypeError("an image can't be decoded as this", expected="uint8, uint16 or float32", got=kind.name)
    with _ops.name_scope(name or "decode_image"):
        made = _ops.apply_op(
            "DecodeImage",
            contents=contents,
            channels=channels or 0,
            dtype=kind if kind.is_integer else dtypes.uint16,  # a PNG may have 16 bits
            expand_animations=expand_animations,
        )
        return convert_image_dtype(made, kind)


def adjust_jpeg_quality(
    image: TensorLike, jpeg_quality: TensorLike, dct_method: str = "", name: str | None = None
) -> _ops.Tensor:
    """An image ``[H,W,C]`` of 1 or 3 channels as it comes back from a JPEG file of this quality, 0 to 100 (an int or a scalar)."""
    with _ops.name_scope(name or "adjust_jpeg_quality"):
        image = _ops.convert_to_tensor(image, name="image")
        pixels = convert_image_dtype(image, dtypes.uint8, saturate=True)
        file = _ops.apply_op("EncodeJpegVariableQuality", images=pixels, quality=jpeg_quality)
        channels = (static_shape(pixels) or (None,))[-1]
        decoded: Any = _tf.image.decode_jpeg(file, channels=channels or 0, dct_method=dct_method)
        decoded.set_shape(pixels.shape)
        return convert_image_dtype(decoded, image.dtype)


def random_jpeg_quality(
    image: TensorLike, min_jpeg_quality: int, max_jpeg_quality: int, seed: int | None = None
) -> _ops.Tensor:
    """:func:`adjust_jpeg_quality` by a number drawn from [min_jpeg_quality, max_jpeg_quality).

    Raises:
      InvalidArgumentError: not ``0 <= min_jpeg_quality < max_jpeg_quality <= 100``.
    """
    if not 0 <= min_jpeg_quality < max_jpeg_quality <= 100:
        raise InvalidArgumentError(
            "min_jpeg_quality and max_jpeg_quality are no range",
            expected="0 <= min < max <= 100",
            got=f"{min_jpeg_quality}, {max_jpeg_quality}",
        )
    quality = _tf.random_uniform([], min_jpeg_quality, max_jpeg_quality, dtypes.int32, seed=seed)
    return adjust_jpeg_quality(image, quality)
