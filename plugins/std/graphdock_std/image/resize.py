"""Public functions that give images another size: names, arguments and defaults are TensorFlow 1's."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
import numpy as np
from graphdock import ops as _ops
from graphdock.errors import DTypeError, InvalidArgumentError, ShapeError
from graphdock.typing import TensorLike

from graphdock_std.grad_support import static_shape
from graphdock_std.image.geometry import pad_to_bounding_box
from graphdock_std.image.support import batched, height_and_width


class ResizeMethod:
    """Ways in which :func:`resize_images` makes the pixels."""

    BILINEAR = 0
    NEAREST_NEIGHBOR = 1
    BICUBIC = 2
    AREA = 3


_OPS = {
    ResizeMethod.BILINEAR: "ResizeBilinear",
    ResizeMethod.NEAREST_NEIGHBOR: "ResizeNearestNeighbor",
    ResizeMethod.BICUBIC: "ResizeBicubic",
    ResizeMethod.AREA: "ResizeArea",
}


def _sampled(op: str, images: Any, size: Any, align: bool, half: bool, name: str | None) -> Any:
    options = {"align_corners": align, "half_pixel_centers": half}
    return _ops.apply_op(op, images=images, size=_size(size), name=name, **options)


def _size(size: Any) -> Any:
    """A size as the ops take it: int32."""
    if isinstance(size, _tf.Tensor | _tf.Variable):
        if not size.dtype.is_integer:
            raise DTypeError("size must be a vector of int32", got=size.dtype.name)
        return size if size.dtype.name == "int32" else _ops.cast(size, "int32")
    dims = getattr(size, "dims", size)
    if isinstance(dims, list | tuple) and any(isinstance(d, _tf.Tensor) for d in dims):
        return _tf.stack([_ops.convert_to_tensor(d, "int32") for d in dims])
    return np.array(dims, np.int32) if np.asarray(dims).dtype.kind in "iu" else _ops.convert_to_tensor(dims, "int32")


def resize_bilinear(
    images: TensorLike,
    size: TensorLike,
    align_corners: bool = False,
    name: str | None = None,
    half_pixel_centers: bool = False,
) -> _ops.Tensor:
    """Images ``[B,H,W,C]`` resized to ``size`` (height, width), as float32, by the op ResizeBilinear."""
    return _sampled("ResizeBilinear", images, size, align_corners, half_pixel_centers, name)


def resize_nearest_neighbor(
    images: TensorLike,
    size: TensorLike,
    align_corners: bool = False,
    name: str | None = None,
    half_pixel_centers: bool = False,
) -> _ops.Tensor:
    """Images ``[B,H,W,C]`` resized to ``size`` (height, width), of the same dtype, by the op ResizeNearestNeighbor."""
    return _sampled("ResizeNearestNeighbor", images, size, align_corners, half_pixel_centers, name)


def resize_bicubic(
    images: TensorLike,
    size: TensorLike,
    align_corners: bool = False,
    name: str | None = None,
    half_pixel_centers: bool = False,
) -> _ops.Tensor:
    """Images ``[B,H,W,C]`` resized to ``size`` (height, width), as float32, by the op ResizeBicubic."""
    return _sampled("ResizeBicubic", images, size, align_corners, half_pixel_centers, name)


def resize_images(
    images: TensorLike,
    size: TensorLike,
    method: int = ResizeMethod.BILINEAR,
    align_corners: bool = False,
    preserve_aspect_ratio: bool = False,
    name: str | None = None,
) -> _ops.Tensor:
    """Images of another size.

    Args:
      images: ``[B,H,W,C]`` or ``[H,W,C]``.
      size: new height and width: two ints, or an int32 vector.
      method: of :class:`ResizeMethod`; all but NEAREST_NEIGHBOR give float32.
      align_corners: whether the centres of the corner pixels coincide.
      preserve_aspect_ratio: take ``size`` as a box, and the largest size of the images' own proportions that fits into it.

    Returns:
      The images, as they are where their size is known to be ``size``: then in their own dtype.

    Raises:
      ShapeError: images are of no such rank, or size is no vector of two. DTypeError: size is a tensor of no integers.
      InvalidArgumentError: no such method.
    """
    with _ops.name_scope(name or "resize"):
        images, batch = batched(images)
        size = _size(size)
        dims = static_shape(size) if isinstance(size, _tf.Tensor | _tf.Variable) else size.shape
        if dims is not None and (len(dims) != 1 or dims[0] not in (2, None)):
            raise ShapeError("size must be a vector of new height and new width", got=f"shape {list(dims)}")
        if method not in _OPS:
            raise InvalidArgumentError("no such method of resizing", expected="one of ResizeMethod", got=str(method))
        if isinstance(size, np.ndarray) and tuple(size) == static_shape(images)[1:3]:  # type: ignore[index]
            resized = images
        else:
            size = _inside(size, height_and_width(images)) if preserve_aspect_ratio else size
            options = {} if method == ResizeMethod.AREA else {"half_pixel_centers": False}
            resized = _ops.apply_op(_OPS[method], images=images, size=size, align_corners=align_corners, **options)
        return resized if batch else _tf.squeeze(resized, [0])


def _inside(box: Any, current: list[Any]) -> Any:
    """The size of the proportions of ``current`` that fits into the box; known where both are."""
    if isinstance(box, np.ndarray) and all(isinstance(n, int) for n in current):
        scale = min(np.float32(b) / np.float32(n) for b, n in zip(box, current, strict=True))
        return np.array([np.rint(scale * np.float32(n)) for n in current], np.int32)
    sizes = _ops.cast(_tf.stack(current), "float32")
    scale = _tf.reduce_min(_ops.cast(box, "float32") / sizes)
    return _ops.cast(_tf.round(scale * sizes), "int32")


def resize_image_with_pad(
    image: TensorLike,
    target_height: TensorLike,
    target_width: TensorLike,
    method: int = ResizeMethod.BILINEAR,
    align_corners: bool = False,
) -> _ops.Tensor:
    """An image, or a batch, resized in its own proportions to fit into the target, with zeros evenly around it.

    Arguments as for :func:`resize_images`; ``target_height`` and ``target_width`` are ints or scalars.

    Raises:
      InvalidArgumentError: a target that is not positive.
    """
    with _ops.name_scope("resize_image_with_pad"):
        images, batch = batched(image)
        targets = [target_height, target_width]
        if any(isinstance(t, int) and t <= 0 for t in targets):
            raise InvalidArgumentError("target_height and target_width must be positive", got=str(targets))
        current = height_and_width(images)
        if all(isinstance(n, int) for n in (*targets, *current)):
            ratio = max(np.float64(n) / np.float64(t) for n, t in zip(current, targets, strict=True))
            exact: list[Any] = [n / ratio for n in current]
            size: Any = np.array([np.floor(n) for n in exact], np.int32)
            offsets: list[Any] = [max(0, int((t - n) // 2)) for t, n in zip(targets, exact, strict=True)]
        else:
            wanted, have = (_ops.cast(_tf.stack(v), "float64") for v in (targets, current))
            exact_sizes = have / _tf.reduce_max(have / wanted)
            size = _ops.cast(_tf.floor(exact_sizes), "int32")
            margins = _tf.maximum(0, _ops.cast(_tf.floor((wanted - exact_sizes) / 2), "int32"))
            offsets = [margins[0], margins[1]]
        resized = resize_images(images, size, method, align_corners)
        padded = pad_to_bounding_box(resized, *offsets, *targets)
        return padded if batch else _tf.squeeze(padded, [0])
