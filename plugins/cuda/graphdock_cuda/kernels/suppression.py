"""Non-maximum suppression: one block takes the best of an image's boxes, puts out what it overlaps, and so on."""

from __future__ import annotations

import struct

from graphdock.contracts import KernelDef, dtypes, errors

from graphdock_cuda.compiled import Source, source
from graphdock_cuda.immediate import Run, dynamic_family
from graphdock_cuda.kernel import family
from graphdock_cuda.launch import Param, i32, i64, u64
from graphdock_cuda.work import ErrorWord, Operand, Work, blocks

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)
dynamic = dynamic_family(KERNELS)

_NOTHING = u64(0)


def _bad(name: str, expected: str) -> ErrorWord:
    """What is raised of a threshold, of which the bits of a double are noted."""

    def make(bits: int, _: int) -> errors.InvalidArgumentError:
        (value,) = struct.unpack("<d", struct.pack("<q", bits))
        return errors.InvalidArgumentError(f"{name} is {value}", expected=expected)

    return ErrorWord(make)


def _most(w: Work, name: str) -> int:
    count = int(w.host(name))
    if count < 0:
        raise errors.InvalidArgumentError(
            f"{name} is {count}", op=w.node.origin, site=w.node.site, expected="0 or more"
        )
    return count


def _usable(w: Work, code: Source) -> Operand:
    """Whether the thresholds are some; else their error is noted."""
    usable = w.scratch(dtypes.uint32, 1)
    sigma: Operand | Param = w.input("soft_nms_sigma") if w.has("soft_nms_sigma") else _NOTHING
    w.launch(
        code, "check_thresholds", 1, 1, w.input("iou_threshold"), sigma, usable,
        _bad("iou_threshold", "a number in [0, 1]"), _bad("soft_nms_sigma", "0 or more"),
    )  # fmt: skip
    return usable


def _suppressed(
    w: Work, code: Source, boxes: Operand | None, scores: Operand, most: int, groups: tuple[int, int], kinds: int
) -> tuple[Operand, Operand, Operand]:
    """Places and scores of what is taken of each group (images and classes), and how many those are."""
    images, classes = groups
    n = scores.size // max(images * classes, 1)
    left = w.scratch(dtypes.float32, images * classes * n)
    taken, kept = (w.scratch(d, images * classes * most) for d in (dtypes.int32, dtypes.float32))
    counts = w.scratch(dtypes.int32, images * classes)

    def given(name: str) -> Operand | Param:
        return w.input(name) if w.has(name) else _NOTHING

    limit = w.input("overlap_threshold" if boxes is None else "iou_threshold")
    usable: Operand | Param = _NOTHING if boxes is None else _usable(w, code)
    w.launch(
        code, "suppress", images * classes, 1024 if n > 512 else 128, scores if boxes is None else boxes,
        given("overlaps"), scores, limit, given("score_threshold"), given("soft_nms_sigma"), usable, left, taken, kept,
        counts, i32(n), i32(most), i32(classes), i32(kinds),
    )  # fmt: skip
    return taken, kept, counts


@dynamic(
    "NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionV4", "NonMaxSuppressionV5",
    "NonMaxSuppressionWithOverlaps",
)  # fmt: skip
def suppress(r: Run) -> None:
    """V2 to V5, which differ in their inputs, and in how many outputs there are: places, of V5 scores, from V4 on a number."""
    scores, most = r.input("scores"), _most(r, "max_output_size")
    boxes = r.input("boxes") if r.has("boxes") else None
    n = scores.size
    limit = r.input("overlap_threshold" if boxes is None else "iou_threshold")
    code = source("block.cuh", "suppression.cuh", BOX=r.ctype(scores), LIMIT=r.ctype(limit))
    taken, kept, counts = _suppressed(r, code, boxes, scores, min(most, n), (1, 1), 1)
    counted = r.output_count > 1
    (found,) = r.read(counts)
    rows = most if counted and r.attr("pad_to_max_output_size") else int(found)
    places = r.output((rows,))
    selected = r.output((rows,), 1) if r.output_count == 3 else _NOTHING
    valid = r.output((), r.output_count - 1) if counted else _NOTHING
    r.launch(code, "write_taken", blocks(rows), 256, taken, kept, counts, places, selected, valid, i64(rows))


@kernel("CombinedNonMaxSuppression")
def combined(w: Work) -> None:
    boxes, scores = w.input("boxes"), w.input("scores")
    most, total = _most(w, "max_output_size_per_class"), _most(w, "max_total_size")
    (batch, n, classes), kinds = scores.shape, boxes.shape[2]
    rows = min(total, most * classes) if w.attr("pad_per_class") else total
    outs = [w.output((batch, rows, *rest), i) for i, rest in enumerate(((4,), (), ()))]
    valid = w.output((batch,), 3)
    code = source("block.cuh", "suppression.cuh", BOX="float", LIMIT="float")
    most = min(most, n)
    if not most or not classes:
        _usable(w, code)
        for y in (*outs, valid):
            w.fill(y)
        return
    taken, kept, counts = _suppressed(w, code, boxes, scores, most, (batch, classes), kinds)
    w.launch(
        code, "combine", batch, 256, boxes, taken, kept, counts, *outs, valid, i32(n), i32(most), i32(classes),
        i32(kinds), i32(rows), i32(bool(w.attr("clip_boxes"))),
    )  # fmt: skip
