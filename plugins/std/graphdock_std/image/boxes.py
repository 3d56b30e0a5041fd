"""Public functions of boxes in images: names, arguments and defaults are TensorFlow 1's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError
from graphdock.typing import TensorLike

from graphdock_std.random.functions import get_seed


def crop_and_resize(
    image: TensorLike,
    boxes: TensorLike,
    box_ind: TensorLike | None = None,
    crop_size: TensorLike | None = None,
    method: str = "bilinear",
    extrapolation_value: float = 0,
    name: str | None = None,
    box_indices: TensorLike | None = None,
) -> _ops.Tensor:
    """Boxes cut out of images ``[B,H,W,C]``, each resized to ``crop_size``: float32 ``[N,h,w,C]``, by the op CropAndResize.

    Args:
      boxes: ``[N,4]``, ``[y1, x1, y2, x2]`` in parts of the image less one pixel.
      box_ind: for each box the image that it is of; ``box_indices`` is its newer name.
      crop_size: height and width.
      method: ``"bilinear"`` or ``"nearest"``.

    Raises:
      InvalidArgumentError: box_ind or crop_size is missing.
    """
    indices = box_ind if box_indices is None else box_indices
    if indices is None or crop_size is None:
        raise InvalidArgumentError("crop_and_resize needs box_ind and crop_size")
    return _ops.apply_op(
        "CropAndResize",
        image=image,
        boxes=boxes,
        box_ind=indices,
        crop_size=crop_size,
        method=method,
        extrapolation_value=float(extrapolation_value),
        name=name,
    )


def draw_bounding_boxes(
    images: TensorLike, boxes: TensorLike, name: str | None = None, colors: TensorLike | None = None
) -> _ops.Tensor:
    """Images ``[B,H,W,C]`` with the outlines of boxes ``[B,N,4]``, in turn in ``colors`` ``[M,C]`` or in ten that differ."""
    if colors is None:
        return _ops.apply_op("DrawBoundingBoxes", images=images, boxes=boxes, name=name)
    return _ops.apply_op("DrawBoundingBoxesV2", images=images, boxes=boxes, colors=colors, name=name)


def non_max_suppression_with_scores(
    boxes: TensorLike,
    scores: TensorLike,
    max_output_size: TensorLike,
    iou_threshold: TensorLike = 0.5,
    score_threshold: TensorLike = -math.inf,
    soft_nms_sigma: TensorLike = 0.0,
    name: str | None = None,
) -> tuple[_ops.Tensor, _ops.Tensor]:
    """As :func:`non_max_suppression`, with the scores of the boxes; a sigma above 0 lowers scores of what overlaps instead."""
    indices, values, _ = _ops.apply_op(
        "NonMaxSuppressionV5",
        boxes=boxes,
        scores=scores,
        max_output_size=max_output_size,
        iou_threshold=iou_threshold,
        score_threshold=score_threshold,
        soft_nms_sigma=soft_nms_sigma,
        name=name,
    )
    return indices, values


class CombinedNonMaxSuppression(NamedTuple):
    """Result of :func:`combined_non_max_suppression`: rows per image, and how many of them hold something."""

    nmsed_boxes: Any
    nmsed_scores: Any
    nmsed_classes: Any
    valid_detections: Any


def combined_non_max_suppression(
    boxes: TensorLike,
    scores: TensorLike,
    max_output_size_per_class: TensorLike,
    max_total_size: TensorLike,
    iou_threshold: TensorLike = 0.5,
    score_threshold: TensorLike = -math.inf,
    pad_per_class: bool = False,
    clip_boxes: bool = True,
    name: str | None = None,
) -> CombinedNonMaxSuppression:
    """The best boxes of each image over all classes, by the op CombinedNonMaxSuppression.

    Args:
      boxes: ``[B,N,Q,4]``, Q is 1 or the number of classes.
      scores: ``[B,N,classes]``.
    """
    made = _ops.apply_op(
        "CombinedNonMaxSuppression",
        boxes=boxes,
        scores=scores,
        max_output_size_per_class=max_output_size_per_class,
        max_total_size=max_total_size,
        iou_threshold=iou_threshold,
        score_threshold=score_threshold,
        pad_per_class=pad_per_class,
        clip_boxes=clip_boxes,
        name=name,
    )
    return CombinedNonMaxSuppression(*made)


def _seeds(seed: int | None) -> dict[str, int]:
    first, second = get_seed(seed)
    return {"seed": first or 0, "seed2": second or 0}


def sample_distorted_bounding_box(
    image_size: TensorLike,
    bounding_boxes: TensorLike,
    seed: int | None = None,
    seed2: int | None = None,
    min_object_covered: TensorLike = 0.1,
    aspect_ratio_range: Sequence[float] | None = None,
    area_range: Sequence[float] | None = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
    name: str | None = None,
) -> tuple[_ops.Tensor, _ops.Tensor, _ops.Tensor]:
    """A box drawn at random out of an image, as ``(begin, size, bboxes)``: the first two are for ``tf.slice``.

    Args:
      image_size: ``[height, width, channels]``.
      bounding_boxes: ``[batch,N,4]``, ``[y1, x1, y2, x2]`` in [0, 1], what the image shows.
      seed: as for random_uniform; ``seed`` with ``seed2`` are the key itself.
      min_object_covered: how much of one of the boxes must be inside.
      aspect_ratio_range: of width by height; default 0.75 to 1.33.
      area_range: in parts of the image; default 0.05 to 1.
      max_attempts: how often to try before it is the whole image; default 100.
      use_image_if_no_bounding_boxes: take the image for the box where there is none, which is an error otherwise.
    """
    given = {
        "aspect_ratio_range": aspect_ratio_range,
        "area_range": area_range,
        "max_attempts": max_attempts,
        "use_image_if_no_bounding_boxes": use_image_if_no_bounding_boxes,
    }
    keys = _seeds(seed) if not seed2 else {"seed": seed or 0, "seed2": seed2}
    return _ops.apply_op(  # type: ignore[no-any-return]
        "SampleDistortedBoundingBoxV2",
        image_size=image_size,
        bounding_boxes=bounding_boxes,
        min_object_covered=min_object_covered,
        name=name,
        **keys,
        **{k: list(v) if isinstance(v, Sequence) else v for k, v in given.items() if v is not None},
    )


def extract_glimpse(
    input: TensorLike,
    size: TensorLike,
    offsets: TensorLike,
    centered: bool = True,
    normalized: bool = True,
    uniform_noise: bool = True,
    name: str | None = None,
) -> _ops.Tensor:
    """Windows of ``size`` (height, width) of images ``[B,H,W,C]``, one of each, with noise where they reach out; ExtractGlimpse.

    Args:
      offsets: ``[B,2]``, the middles of the windows.
      centered: count offsets from the middle of the image, in halves of it.
      normalized: offsets are parts of the image, not pixels.
      uniform_noise: evenly distributed noise, not normal numbers; its key follows ``tf.set_random_seed``.
    """
    return _ops.apply_op(
        "ExtractGlimpse",
        input=input,
        size=size,
        offsets=offsets,
        centered=centered,
        normalized=normalized,
        uniform_noise=uniform_noise,
        name=name,
        **_seeds(None),
    )
