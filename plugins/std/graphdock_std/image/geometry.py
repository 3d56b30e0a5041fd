"""Public functions that move pixels: crops, margins, flips and turns. Names, arguments and defaults are TensorFlow 1's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError
from graphdock.typing import TensorLike

from graphdock_std.grad_support import static_shape
from graphdock_std.image.support import batched, height_and_width, of_rank, with_pixels

#: Largest int32: offsets of a random crop are drawn below it and taken modulo the room there is, as TensorFlow does.
_MOST = 2**31 - 1


def _least(name: str, value: Any, least: int) -> None:
    if isinstance(value, int) and value < least:
        raise InvalidArgumentError(f"{name} must be {'>= 0' if not least else '> 0'}", got=str(value))


def _set_size(image: Any, height: Any, width: Any, channels: Any) -> None:
    """Say what is known of the height and width of a batch."""
    sizes = [d if isinstance(d, int) else None for d in (height, width)]
    image.set_shape([None, *sizes, channels])


def crop_to_bounding_box(
    image: TensorLike,
    offset_height: TensorLike,
    offset_width: TensorLike,
    target_height: TensorLike,
    target_width: TensorLike,
) -> _ops.Tensor:
    """The box of an image ``[H,W,C]``, or of each of a batch, with its upper left corner at the offsets.

    Offsets and targets are ints or int32 scalars.

    Raises:
      InvalidArgumentError: a negative offset, a target that is not positive, a box that reaches out of the image; in the step
        where only that knows.
    """
    with _ops.name_scope("crop_to_bounding_box"):
        images, batch = batched(image, 3)
        images = with_pixels(images)
        pairs = [("height", offset_height, target_height), ("width", offset_width, target_width)]
        for (what, offset, target), size in zip(pairs, height_and_width(images), strict=True):
            _least(f"offset_{what}", offset, 0)
            _least(f"target_{what}", target, 1)
            if all(isinstance(v, int) for v in (offset, target, size)) and offset + target > size:
                raise InvalidArgumentError(
                    f"the box leaves the image: {what} must be >= target + offset",
                    got=f"{size}, target {target}, offset {offset}",
                )
        begin = _tf.stack([0, offset_height, offset_width, 0])
        cropped = _tf.slice(images, begin, _tf.stack([-1, target_height, target_width, -1]))
        _set_size(cropped, target_height, target_width, static_shape(images)[3])  # type: ignore[index]
        return cropped if batch else _tf.squeeze(cropped, [0])


def pad_to_bounding_box(
    image: TensorLike,
    offset_height: TensorLike,
    offset_width: TensorLike,
    target_height: TensorLike,
    target_width: TensorLike,
) -> _ops.Tensor:
    """An image ``[H,W,C]``, or each of a batch, on zeros of the target's size, its upper left corner at the offsets.

    Raises:
      InvalidArgumentError: a negative offset, or an image that does not fit; in the step where only that knows.
    """
    with _ops.name_scope("pad_to_bounding_box"):
        images, batch = batched(image, 3)
        images = with_pixels(images)
        margins = []
        pairs = [("height", offset_height, target_height), ("width", offset_width, target_width)]
        for (what, offset, target), size in zip(pairs, height_and_width(images), strict=True):
            _least(f"offset_{what}", offset, 0)
            after = target - offset - size
            if isinstance(after, int) and after < 0:
                raise InvalidArgumentError(
                    f"the image does not fit: {what} must be <= target - offset",
                    got=f"{size}, target {target}, offset {offset}",
                )
            margins += [offset, after]
        paddings = _tf.reshape(_tf.stack([0, 0, *margins, 0, 0]), [4, 2])
        padded = _tf.pad(images, paddings)
        _set_size(padded, target_height, target_width, static_shape(images)[3])  # type: ignore[index]
        return padded if batch else _tf.squeeze(padded, [0])


def resize_image_with_crop_or_pad(
    image: TensorLike, target_height: TensorLike, target_width: TensorLike
) -> _ops.Tensor:
    """The middle of an image ``[H,W,C]``, or of each of a batch, of the target's size, with zeros around where it is smaller.

    Raises:
      InvalidArgumentError: a target that is not positive.
    """
    with _ops.name_scope("resize_image_with_crop_or_pad"):
        images, batch = batched(image, 3)
        images = with_pixels(images)
        cuts, margins, sizes = [], [], []
        for what, target, size in zip(
            ("height", "width"), (target_height, target_width), height_and_width(images), strict=True
        ):
            _least(f"target_{what}", target, 1)
            if isinstance(target, int) and isinstance(size, int):
                cuts.append(max((size - target) // 2, 0))
                margins.append(max((target - size) // 2, 0))
                sizes.append(min(target, size))
            else:
                cuts.append(_tf.maximum((size - target) // 2, 0))
                margins.append(_tf.maximum((target - size) // 2, 0))
                sizes.append(_tf.minimum(target, size))
        cropped = crop_to_bounding_box(images, *cuts, *sizes)
        padded = pad_to_bounding_box(cropped, *margins, target_height, target_width)
        return padded if batch else _tf.squeeze(padded, [0])


def central_crop(image: TensorLike, central_fraction: float) -> _ops.Tensor:
    """The middle of an image ``[H,W,C]``, or of each of a batch: this fraction of its height and width.

    Raises:
      InvalidArgumentError: a fraction that is not in (0, 1].
    """
    if not 0.0 < central_fraction <= 1.0:
        raise InvalidArgumentError("central_fraction must be in (0, 1]", got=str(central_fraction))
    with _ops.name_scope("central_crop"):
        if central_fraction == 1.0:
            return _ops.convert_to_tensor(image, name="image")
        images, batch = batched(image)
        images = with_pixels(images)
        starts: list[Any] = []
        for size in height_and_width(images):
            if isinstance(size, int):
                starts.append(int((size - size * central_fraction) / 2))
            else:
                wide = _ops.cast(size, "float64")
                starts.append(_ops.cast((wide - wide * central_fraction) / 2, "int32"))
        sizes = [n - 2 * s for n, s in zip(height_and_width(images), starts, strict=True)]
        cropped = _tf.slice(images, _tf.stack([0, *starts, 0]), _tf.stack([-1, *sizes, -1]))
        _set_size(cropped, *sizes, static_shape(images)[3])  # type: ignore[index]
        return cropped if batch else _tf.squeeze(cropped, [0])


def _flip(image: Any, axis: int, name: str) -> Any:
    with _ops.name_scope(name):
        image = with_pixels(of_rank(image, 3, 4))
        flipped = _tf.reverse(image, _from_the_end(image, [axis]))
        flipped.set_shape(image.shape)
        return flipped


def _from_the_end(image: Any, axes: list[int]) -> Any:
    """Axes counted from the end, as they are counted from the start."""
    dims = static_shape(image)
    return [_tf.rank(image) + a if dims is None else len(dims) + a for a in axes]


def flip_left_right(image: TensorLike) -> _ops.Tensor:
    """The columns of an image ``[H,W,C]``, or of each of a batch, in the other order. Raises ShapeError for other ranks."""
    return _flip(image, -2, "flip_left_right")


def flip_up_down(image: TensorLike) -> _ops.Tensor:
    """The rows of an image ``[H,W,C]``, or of each of a batch, in the other order. Raises ShapeError for other ranks."""
    return _flip(image, -3, "flip_up_down")


def _random_flip(image: Any, flip: Callable[[Any], Any], seed: int | None, name: str) -> Any:
    """One draw for an image, one for each of a batch."""
    with _ops.name_scope(name):
        image = with_pixels(of_rank(image, 3, 4))
        dims = static_shape(image)
        if dims is not None and len(dims) == 3:
            draws = _tf.random_uniform([], 0, 1.0, seed=seed)
            flipped = _tf.cond(draws < 0.5, lambda: flip(image), lambda: image)
        else:
            count = _ops.shape(image)[:-3] if dims is None or dims[0] is None else dims[:1]
            draws = _tf.random_uniform(count, 0, 1.0, seed=seed)
            chosen = _ops.cast(draws < 0.5, image.dtype)[..., None, None, None]
            flipped = chosen * flip(image) + (1 - chosen) * image
        flipped.set_shape(image.shape)
        return flipped


def random_flip_left_right(image: TensorLike, seed: int | None = None) -> _ops.Tensor:
    """An image ``[H,W,C]``, or each of a batch, flipped left to right with probability one half; ``seed`` as for random_uniform."""
    return _random_flip(image, flip_left_right, seed, "random_flip_left_right")


def random_flip_up_down(image: TensorLike, seed: int | None = None) -> _ops.Tensor:
    """An image ``[H,W,C]``, or each of a batch, flipped upside down with probability one half; ``seed`` as for random_uniform."""
    return _random_flip(image, flip_up_down, seed, "random_flip_up_down")


def transpose_image(image: TensorLike, name: str | None = None) -> _ops.Tensor:
    """Rows and columns of an image ``[H,W,C]``, or of each of a batch, exchanged. Raises ShapeError for other ranks."""
    with _ops.name_scope(name or "transpose_image"):
        images, batch = batched(image, 4)
        images = with_pixels(images)
        turned = _tf.transpose(images, [0, 2, 1, 3])
        return turned if batch else _tf.squeeze(turned, [0])


def rot90(image: TensorLike, k: TensorLike = 1, name: str | None = None) -> _ops.Tensor:
    """An image ``[H,W,C]``, or each of a batch, turned counter-clockwise by ``k`` (an int or a scalar) times 90 degrees."""
    with _ops.name_scope(name or "rot90"):
        images, batch = batched(image, 4)
        images = with_pixels(images)
        turns = [
            lambda: images,
            lambda: _tf.reverse(_tf.transpose(images, [0, 2, 1, 3]), [1]),
            lambda: _tf.reverse(images, [1, 2]),
            lambda: _tf.transpose(_tf.reverse(images, [1]), [0, 2, 1, 3]),
        ]
        if isinstance(k, int):
            turned = turns[k % 4]()
        else:
            times = _tf.floormod(_ops.convert_to_tensor(k, "int32"), 4)
            cases = [(_tf.equal(times, i), turn) for i, turn in enumerate(turns[1:], 1)]
            turned = _tf.case(cases, default=turns[0], exclusive=True)
            turned.set_shape([static_shape(images)[0], None, None, static_shape(images)[3]])  # type: ignore[index]
        return turned if batch else _tf.squeeze(turned, [0])


def random_crop(value: TensorLike, size: TensorLike, seed: int | None = None, name: str | None = None) -> _ops.Tensor:
    """A slice of this size at a place drawn evenly among all where it fits.

    Args:
      value: any tensor.
      size: one size for each dim, a vector.
      seed: as for random_uniform.

    Raises:
      InvalidArgumentError: ``value`` is smaller than ``size``; in the step where only that knows.
    """
    with _ops.name_scope(name or "random_crop") as scope:
        value = _ops.convert_to_tensor(value, name="value")
        size = _ops.convert_to_tensor(size, "int32", name="size")
        shape = _ops.shape(value)
        fits = _tf.Assert(_tf.reduce_all(shape >= size), ["need value.shape >= size, got", shape, size])
        with _ops.control_dependencies([fits]):
            room = shape - size + 1
        draws = _tf.random_uniform(_ops.shape(shape), 0, _MOST, "int32", seed=seed)
        return _tf.slice(value, _tf.floormod(draws, room), size, name=scope)
