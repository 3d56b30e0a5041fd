"""Common parts of the functions of images: ranks, sizes that are known or only a tensor, and the way back from a batch of one."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import ShapeError

from graphdock_std.grad_support import static_shape


def of_rank(image: Any, *ranks: int, least: int = 0) -> Any:
    """The image as a tensor. Raises ShapeError where its rank is known and is none of ``ranks``, or below ``least``."""
    image = _ops.convert_to_tensor(image, name="image")
    dims = static_shape(image)
    if dims is not None and (ranks and len(dims) not in ranks or len(dims) < least):
        wanted = " or ".join(map(str, ranks)) if ranks else f"{least} or more"
        raise ShapeError("image has another rank", expected=f"rank {wanted}", got=f"shape {image.shape}")
    return image


def with_pixels(image: Any) -> Any:
    """The image ``[...,H,W,C]`` as it is. Raises ShapeError where one of the three is known to be 0; else the step asserts it."""
    dims = static_shape(image)
    inner = (None,) * 3 if dims is None else dims[-3:]
    if 0 in inner:
        raise ShapeError(
            "image has no pixels", expected="height, width and channels above 0", got=f"shape {image.shape}"
        )
    if None not in inner:
        return image
    sizes = _ops.shape(image)[-3:]
    told = ["image has no pixels, its height, width and channels are", sizes]
    with _ops.control_dependencies([_tf.Assert(_tf.reduce_all(_tf.greater(sizes, 0)), told)]):
        return _ops.identity(image)


def with_channels(image: Any, channels: int = 3) -> Any:
    """The image as a tensor whose last dim is ``channels``.

    Raises:
      ShapeError: it is known to be another. One that turns out to be is an error of the step.
    """
    image = of_rank(image, least=1)
    dims = static_shape(image)
    if dims is not None and dims[-1] not in (None, channels):
        raise ShapeError(f"the last dim of image must be its {channels} channels", got=f"shape {image.shape}")
    if dims is None:
        sizes = _ops.shape(image)
        told = [f"the last dim of image must be its {channels} channels, but its shape is", sizes]
        with _ops.control_dependencies([_tf.Assert(_tf.equal(sizes[-1], channels), told)]):
            return _ops.identity(image)
    if dims[-1] is None:
        image = _ops.identity(image)
        image.set_shape([*dims[:-1], channels])
    return image


def batched(image: Any, unknown: int | None = None) -> tuple[Any, bool]:
    """The image as a batch ``[B,H,W,C]``, and whether it was one already.

    Args:
      unknown: the rank that an image of unknown rank is taken to have, 3 or 4.

    Raises:
      ShapeError: another rank than 3 and 4, or an unknown one.
    """
    image = _ops.convert_to_tensor(image, name="images")
    if static_shape(image) is None:
        if unknown is None:
            raise ShapeError("images have no known rank", expected="rank 3 or 4", hint="say which by set_shape")
        image = _ops.identity(image)
        image.set_shape([None] * unknown)
    of_rank(image, 3, 4)
    return (image, True) if image.shape.rank == 4 else (_tf.expand_dims(image, 0), False)


def height_and_width(image: Any) -> list[Any]:
    """Height and width of ``[...,H,W,C]``: ints where they are known, else scalars of the graph."""
    dims = static_shape(image)
    known = (None, None) if dims is None else dims[-3:-1]
    if None not in known:
        return list(known)
    shape = _ops.shape(image)
    rank = _tf.rank(image) if dims is None else len(dims)
    return [shape[rank - 3 + i] if d is None else d for i, d in enumerate(known)]
