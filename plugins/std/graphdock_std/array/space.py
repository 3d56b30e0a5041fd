"""Public functions that move pixels between space, channels and batch, and windows of images.

Names, argument names and defaults are TensorFlow 1's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import graphdock as _tf
from graphdock import dtypes
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError
from graphdock.typing import TensorLike

from graphdock_std.grad_support import static_shape


def _block(block_size: Any, block_shape: Any) -> Any:
    """The block of two spatial dims; ``block_shape`` is TensorFlow 1's later name of the number."""
    if (block_size is None) == (block_shape is None):
        raise InvalidArgumentError("block_size and block_shape are one argument under two names; give one of them")
    size = block_shape if block_size is None else block_size
    return [size, size] if isinstance(size, int) else size


def _images(input: TensorLike) -> _ops.Tensor:
    """Images of rank 4, also where their rank was not known.

    Raises:
      ShapeError: they have another rank.
    """
    images = _ops.convert_to_tensor(input)
    images.shape.assert_has_rank(4)
    return images if images.shape.rank else _tf.ensure_shape(images, [None] * 4)


def space_to_batch(
    input: TensorLike,
    paddings: TensorLike,
    block_size: int | None = None,
    name: str | None = None,
    block_shape: int | None = None,
) -> _ops.Tensor:
    """Squares of pixels, after a margin of zeros, laid out along the batch.

    Args:
      input: images of rank 4, channels last.
      paddings: ``[2, 2]``: margins above and below, left and right. The size with them is a multiple of the block's.
      block_size: the side of a square; ``block_shape`` is its other name.
    """
    block = _block(block_size, block_shape)
    return _ops.apply_op("SpaceToBatchND", input=_images(input), block_shape=block, paddings=paddings, name=name)


def batch_to_space(
    input: TensorLike,
    crops: TensorLike,
    block_size: int | None = None,
    name: str | None = None,
    block_shape: int | None = None,
) -> _ops.Tensor:
    """The inverse of :func:`space_to_batch`; ``crops`` is ``[2, 2]``: what is cut off above and below, left and right."""
    return _ops.apply_op(
        "BatchToSpaceND", input=_images(input), block_shape=_block(block_size, block_shape), crops=crops, name=name
    )


def required_space_to_batch_paddings(
    input_shape: TensorLike, block_shape: TensorLike, base_paddings: TensorLike | None = None, name: str | None = None
) -> tuple[_ops.Tensor, _ops.Tensor]:
    """The margins that make sizes multiples of a block's, and what to cut off afterwards.

    Args:
      input_shape: N sizes, int32.
      block_shape: N sizes; how many is known statically.
      base_paddings: ``[N, 2]`` least margins; default: zeros.

    Returns:
      ``(paddings, crops)``, int32 of shape ``[N, 2]``; constants where the arguments are. The margins after are enlarged, by
      less than a block; the crops are the enlargement.
    """
    with _tf.name_scope(name or "required_space_to_batch_paddings"):
        sizes, block = (_ops.convert_to_tensor(v, dtypes.int32) for v in (input_shape, block_shape))
        dims = static_shape(block)
        if dims is None or len(dims) != 1 or dims[0] is None:
            raise InvalidArgumentError("block_shape must be a vector of known length", got=str(block.shape))
        base = _ops.zeros_like(_tf.stack([block, block], 1)) if base_paddings is None else base_paddings
        base = _ops.convert_to_tensor(base, dtypes.int32)
        before, after = base[:, 0], base[:, 1]
        extra = _tf.floormod(block - _tf.floormod(sizes + before + after, block), block)
        paddings = _tf.stack([before, after + extra], 1, name="paddings")
        return paddings, _tf.stack([_ops.zeros_like(extra), extra], 1, name="crops")


def extract_image_patches(
    images: TensorLike,
    ksizes: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    rates: Sequence[int] | None = None,
    padding: Literal["SAME", "VALID"] | None = None,
    name: str | None = None,
    sizes: Sequence[int] | None = None,
) -> _ops.Tensor:
    """Windows of images, each laid out in the channels.

    Args:
      images: ``[batch, rows, columns, channels]``.
      ksizes: ``[1, rows, columns, 1]`` of a window; ``sizes`` is its other name.
      strides: distances of windows, as ``ksizes``.
      rates: distances of pixels in a window, as ``ksizes``.
      padding: ``"VALID"`` for windows that fit, ``"SAME"`` for one per stride with zeros around the image.

    Returns:
      ``[batch, windows down, windows across, rows * columns * channels]``.
    """
    if (ksizes is None) == (sizes is None):
        raise InvalidArgumentError("ksizes and sizes are one argument under two names; give one of them")
    if strides is None or rates is None or padding is None:
        raise InvalidArgumentError("extract_image_patches needs strides, rates and padding")
    return extract_patches(images, ksizes if sizes is None else sizes, strides, rates, padding, name)


def extract_patches(
    images: TensorLike,
    sizes: Sequence[int] | None,
    strides: Sequence[int],
    rates: Sequence[int],
    padding: Literal["SAME", "VALID"],
    name: str | None = None,
) -> _ops.Tensor:
    """:func:`extract_image_patches` with all arguments required."""
    return _ops.apply_op(
        "ExtractImagePatches", images=images, ksizes=sizes, strides=strides, rates=rates, padding=padding, name=name
    )


def patches_grad(op: Any, grad: Any) -> Any:
    """Each pixel's sum over the windows that it is in."""
    attrs = {a: op.get_attr(a) for a in ("ksizes", "strides", "rates", "padding")}
    (images,) = op.inputs
    made = _ops.apply_op("ExtractImagePatchesGrad", images_shape=_ops.shape(images), patches_grad=grad, **attrs)
    made.set_shape(images.shape)
    return made
