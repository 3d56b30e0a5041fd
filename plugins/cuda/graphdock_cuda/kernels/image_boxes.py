"""Boxes of images: cut out and resized, with gradients, and drawn. Gradients are gathered in the order of the boxes."""

from __future__ import annotations

import struct

import numpy as np
from graphdock.contracts import KernelDef, errors

from graphdock_cuda.compiled import Source, source
from graphdock_cuda.kernel import family
from graphdock_cuda.launch import Param, f32, i32, i64, raw
from graphdock_cuda.work import ErrorWord, Operand, Work, blocks

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)


def _crops(boxes: int, image: tuple[int, ...], wanted: tuple[int, ...]) -> Param:
    """``Crops`` of ``source/crop.cuh``."""
    return raw(struct.pack("<3q4i", boxes, image[0], image[3], *image[1:3], *wanted))


def _source(w: Work, x: Operand, part: str) -> Source:
    return source("block.cuh", "crop.cuh", part, TYPE=w.ctype(x), NEAR=str(int(w.attr("method") == "nearest")))


def _no_image(batch: int) -> ErrorWord:
    def make(index: int, box: int) -> errors.GraphdockError:
        return errors.InvalidArgumentError(
            f"box_ind[{box}] is no index of an image", expected=f"indices from 0 to {batch - 1}", got=str(index)
        )

    return ErrorWord(make)


def _numbers(w: Work, name: str, count: int, least: int) -> tuple[int, ...]:
    """The numbers of an input in host memory. Raises InvalidArgumentError for other than ``count``, or one below ``least``."""
    values = w.host(name)
    if values.shape != (count,) or values.min() < least:
        raise errors.InvalidArgumentError(
            f"{name} {np.asarray(values).tolist()} must be {'positive' if least else 'sizes'}",
            op=w.node.origin,
            site=w.node.site,
            expected=f"{count} numbers from {least}",
        )
    return tuple(values.tolist())


@kernel("CropAndResize")
def crop_and_resize(w: Work) -> None:
    """``(image, boxes, box_ind, crop_size) -> crops``."""
    x, boxes, indices, _ = w.inputs
    wanted = _numbers(w, "crop_size", 2, 1)
    if boxes.shape[0] and not (x.shape[1] and x.shape[2]):
        raise errors.InvalidArgumentError(
            f"image {list(x.shape)} has no pixels to sample", op=w.node.origin, site=w.node.site
        )
    y = w.output((boxes.shape[0], *wanted, x.shape[3]))
    if y.size:
        packed, beyond = _crops(boxes.shape[0], x.shape, wanted), f32(w.attr("extrapolation_value"))
        made = _source(w, x, "crop_forward.cuh")
        args = (x, boxes, indices, y, i64(y.size), beyond, packed, _no_image(x.shape[0]))
        w.launch(made, "crop", blocks(y.size), 256, *args)
    elif boxes.shape[0] and not x.shape[0]:
        raise errors.InvalidArgumentError("box_ind holds an index of no image", op=w.node.origin, site=w.node.site)


@kernel("CropAndResizeGradImage")
def crop_and_resize_grad_image(w: Work) -> None:
    """``(grads, boxes, box_ind, image_size) -> gradients of the images``."""
    g, boxes, indices, _ = w.inputs
    shape = _numbers(w, "image_size", 4, 0)
    for wrong, found in (
        (not (shape[1] and shape[2]), f"image_size {list(shape)} is the shape of no image"),
        (shape[3] != g.shape[3], f"grads {list(g.shape)} and image_size {list(shape)} differ in channels"),
    ):
        if wrong:
            raise errors.InvalidArgumentError(found, op=w.node.origin, site=w.node.site)
    dx = w.output(shape)
    if not g.size:
        w.fill(dx)
    elif dx.size:
        args = (g, boxes, indices, dx, i64(dx.size), _crops(boxes.shape[0], shape, g.shape[1:3]), _no_image(shape[0]))
        w.launch(_source(w, dx, "crop_back.cuh"), "crop_back", blocks(dx.size), 256, *args)


@kernel("CropAndResizeGradBoxes")
def crop_and_resize_grad_boxes(w: Work) -> None:
    """``(grads, image, boxes, box_ind) -> gradients of the boxes``."""
    g, x, boxes, indices = w.inputs
    out = w.output(boxes.shape)
    if out.size:
        args = (g, x, boxes, indices, out, _crops(boxes.shape[0], x.shape, g.shape[1:3]), _no_image(x.shape[0]))
        w.launch(_source(w, x, "crop_boxes.cuh"), "crop_boxes", min(boxes.shape[0], 1 << 20), 256, *args)


@kernel("DrawBoundingBoxes", "DrawBoundingBoxesV2")
def draw_bounding_boxes(w: Work) -> None:
    """``(images, boxes) -> output``, or ``(images, boxes, colors)``."""
    x, boxes, *rest = w.inputs
    y = w.output(x.shape)
    if not x.size:
        return
    _, height, width, channels = x.shape
    colors = rest[0] if rest else boxes
    count, wide = colors.shape if rest else (0, 0)
    sizes = (
        i64(x.size // channels),
        i64(height),
        i64(width),
        i32(channels),
        i64(boxes.shape[1]),
        i64(count),
        i64(wide),
    )
    made = source("draw_boxes.cuh", TYPE=w.ctype(x))
    w.launch(made, "draw_boxes", blocks(x.size // channels), 256, x, boxes, colors, y, *sizes)
