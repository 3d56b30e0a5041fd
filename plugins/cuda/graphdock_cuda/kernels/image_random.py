"""Images that draw: windows with noise around them, and boxes that hold enough of what is shown."""

from __future__ import annotations

import struct

import numpy as np
from graphdock.contracts import KernelDef, dtypes, errors

from graphdock_cuda.compiled import source
from graphdock_cuda.immediate import Run, dynamic_family
from graphdock_cuda.kernel import family
from graphdock_cuda.kernels.random import stream_of
from graphdock_cuda.launch import Param, i32, i64, raw
from graphdock_cuda.work import Work, blocks

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)
dynamic = dynamic_family(KERNELS)
#: Boxes of a launch; all parameters of a kernel must fit in 4 KiB.
_BOXES = 64


@kernel("ExtractGlimpse")
def extract_glimpse(w: Work) -> None:
    images, offsets = w.input("input"), w.input("offsets")
    wanted = [int(d) for d in w.host("size").reshape(-1)]
    if min(wanted) < 1:
        raise errors.InvalidArgumentError(f"size {wanted} must be positive")
    batch, rows, columns, channels = images.shape
    out = w.output((batch, *wanted, channels))
    if not out.size:
        return
    noise = 0 if w.attr("uniform_noise") else 2 if w.attr("noise") == "zero" else 1
    facts = w.scratch(dtypes.float32, (batch, 2))
    made = source("block.cuh", "philox.cuh", "glimpse.cuh", NOISE=str(noise))
    if noise != 2:
        w.launch(made, "measure", batch, 256, images, facts, i64(rows * columns * channels))
    sizes = (i64(rows), i64(columns), i64(channels), *(i64(d) for d in wanted))
    how = (i32(w.attr("normalized")), i32(w.attr("centered")))
    args = (*stream_of(w), images, offsets, facts, out, i64(out.size), *sizes, *how)
    w.launch(made, "glimpse", blocks(out.size), 256, *args)


@dynamic("SampleDistortedBoundingBoxV2")
def sample_distorted_bounding_box(r: Run) -> None:
    """``(image size, boxes, least cover) -> (begin, size, box)``. The GPU draws, and the host reads what it is asked for."""
    boxes = r.host("bounding_boxes").reshape(-1, 4)
    image = _image(r)
    _check_boxes(r, boxes)
    attempts = r.attr("max_attempts") if len(boxes) else 0
    found, drawn = r.scratch(dtypes.int64, 5), r.output((1, 1, 4), 2)
    made = source("block.cuh", "philox.cuh", "sample_box.cuh", MOST=str(_BOXES))
    for begin in range(0, max(len(boxes), 1), _BOXES):
        some = boxes[begin : begin + _BOXES]
        given = raw(some.astype(np.float32).tobytes().ljust(16 * _BOXES, b"\0"))
        args = (given, i64(len(some)), i64(attempts), i32(not begin), found, drawn)
        r.launch(made, "sample_box", 1, 128, *stream_of(r), image, *args)
    row, column, height, width, _ = r.read(found).tolist()
    r.host_output(np.array([row, column, 0]), 0)
    r.host_output(np.array([height, width, -1]), 1)


def _image(r: Run) -> Param:
    """``Image`` of ``source/sample_box.cuh``. Raises InvalidArgumentError."""
    ratios, areas = list(r.attr("aspect_ratio_range")), list(r.attr("area_range"))
    if len(ratios) != 2 or not 0 < ratios[0] <= ratios[1]:
        raise errors.InvalidArgumentError(f"aspect_ratio_range {ratios} is no range of positive numbers")
    if len(areas) != 2 or not 0 < areas[0] <= areas[1] <= 1:
        raise errors.InvalidArgumentError(f"area_range {areas} is no range in (0, 1]")
    size = r.host("image_size").tolist()
    height, width = size[:2]
    if height < 1 or width < 1:
        raise errors.InvalidArgumentError(f"image_size {size} must be positive")
    pixels = [area * height * width for area in areas]
    covered = float(r.host("min_object_covered"))
    return raw(struct.pack("<2q5d", height, width, ratios[0], ratios[1] - ratios[0], *pixels, covered))


def _check_boxes(r: Run, boxes: np.ndarray) -> None:
    if not len(boxes) and not r.attr("use_image_if_no_bounding_boxes"):
        raise errors.InvalidArgumentError(
            "there are no bounding_boxes", hint="use_image_if_no_bounding_boxes takes the image in their place"
        )
    if not ((boxes >= 0) & (boxes <= 1)).all() or (boxes[:, :2] > boxes[:, 2:]).any():
        raise errors.InvalidArgumentError(
            "bounding_boxes must be [y1, x1, y2, x2] in [0, 1], each end beyond its start", got=str(boxes.tolist())
        )
