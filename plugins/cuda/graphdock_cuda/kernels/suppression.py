"""Non-maximum suppression. How many boxes are taken is read from the GPU, as are the thresholds, which must be in range.

``CombinedNonMaxSuppression``, whose outputs are as long as its arguments in host memory say, reads nothing: its thresholds stay
where they are, and the GPU tells of one that is out of range.
"""

from __future__ import annotations

import struct

from graphdock.contracts import KernelDef, dtypes, errors

from graphdock_cuda.compiled import source
from graphdock_cuda.immediate import Run, dynamic_family
from graphdock_cuda.launch import Param, i32, i64, raw, u64
from graphdock_cuda.work import ErrorWord, Operand, blocks

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
dynamic = dynamic_family(KERNELS)

_BLOCK = 512


def _number(r: Run, name: str) -> float:
    return float(r.read(r.input(name)).reshape(()))


def _no_share(limit: float) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(f"iou_threshold is {limit}", expected="a number in [0, 1]")


def _no_share_of(bits: int, _: int) -> errors.GraphdockError:
    return _no_share(struct.unpack("<f", struct.pack("<i", bits))[0])


def _checked(r: Run, most: str, limit: float, sigma: float = 0.0) -> int:
    """Return how many boxes at most. Raises InvalidArgumentError for numbers that are out of range."""
    count = int(r.host(most))
    for wrong, found, expected in (
        (count < 0, f"{most} is {count}", "0 or more"),
        (not 0 <= limit <= 1, f"iou_threshold is {limit}", "a number in [0, 1]"),
        (not sigma >= 0, f"soft_nms_sigma is {sigma}", "0 or more"),
    ):
        if wrong:
            raise errors.InvalidArgumentError(found, expected=expected, op=r.node.origin, site=r.node.site)
    return count


class _Taken:
    """Boxes that are taken of some problems, on the GPU: indices, scores and counts."""

    def __init__(
        self,
        r: Run,
        boxes: Operand,
        scores: Operand,
        overlaps: Operand | None,
        dims: tuple[int, int, int, int],
        most: int,
        limit: float | Operand,
        least: float | Operand,
        sigma: float = 0.0,
    ) -> None:
        images, count, classes, kinds = dims
        self.most = min(most, count)
        problems, scale = images * classes, -0.5 / sigma if sigma > 0 else 0.0
        self.indices = r.scratch(dtypes.int32, (problems, self.most))
        self.scores = r.scratch(dtypes.float32, (problems, self.most))
        self.counts = r.scratch(dtypes.int32, (problems,))
        numbers = [0.0 if isinstance(n, Operand) else n for n in (limit, least)]
        self.packed: Param = raw(struct.pack("<3q2i3f4x", count, classes, kinds, self.most, sigma > 0, *numbers, scale))
        places = [n if isinstance(n, Operand) else u64(0) for n in (limit, least)]
        left = r.scratch(dtypes.float32, (problems, count))
        self.parts, self.types = ("block.cuh", "suppression.cuh"), {"TYPE": r.ctype(scores)}
        given = u64(0) if overlaps is None else overlaps
        outs = (left, self.indices, self.scores, self.counts)
        args = (boxes, scores, given, *outs, self.packed, *places, ErrorWord(_no_share_of))
        r.launch(source(*self.parts, **self.types), "suppress", problems, _BLOCK, *args)


def _single(
    r: Run, limit: float, least: float, sigma: float = 0.0, pad: bool = False, overlaps: Operand | None = None
) -> tuple[_Taken, int, int]:
    """One problem, and its first output. Returns also how many are taken, and how long the outputs are."""
    most = _checked(r, "max_output_size", limit if overlaps is None else 0.0, sigma)
    boxes, scores = r.inputs[0], r.inputs[1]
    taken = _Taken(r, boxes, scores, overlaps, (1, scores.size, 1, 1), most, limit, least, sigma)
    count = int(r.read(taken.counts)[0])
    out = r.output((most if pad else count,))
    r.fill(out)
    r.copy(out, taken.indices.reshaped(count))
    return taken, count, out.size


@dynamic("NonMaxSuppressionV2", "NonMaxSuppressionV3")
def suppress(r: Run) -> None:
    """``(boxes, scores, most, limit[, least]) -> indices``."""
    least = _number(r, "score_threshold") if r.has("score_threshold") else -float("inf")
    _single(r, _number(r, "iou_threshold"), least)


@dynamic("NonMaxSuppressionV4")
def suppress_v4(r: Run) -> None:
    """``-> indices, count``."""
    pad = bool(r.attr("pad_to_max_output_size"))
    taken, _, _ = _single(r, _number(r, "iou_threshold"), _number(r, "score_threshold"), pad=pad)
    r.copy(r.output((), 1), taken.counts)


@dynamic("NonMaxSuppressionV5")
def suppress_v5(r: Run) -> None:
    """``-> indices, scores, count``; scores are lowered with a sigma above 0."""
    limit, least, sigma = (_number(r, n) for n in ("iou_threshold", "score_threshold", "soft_nms_sigma"))
    taken, count, size = _single(r, limit, least, sigma, bool(r.attr("pad_to_max_output_size")))
    kept = r.output((size,), 1)
    r.fill(kept)
    if count:
        made = source(*taken.parts, **taken.types)
        r.launch(made, "suppress_scores", blocks(count), 256, taken.scores, kept, i64(count))
    r.copy(r.output((), 2), taken.counts)


@dynamic("NonMaxSuppressionWithOverlaps")
def suppress_overlaps(r: Run) -> None:
    """``(overlaps, scores, most, limit, least) -> indices``."""
    limit, least = _number(r, "overlap_threshold"), _number(r, "score_threshold")
    _single(r, limit, least, overlaps=r.inputs[0])


@dynamic("CombinedNonMaxSuppression")
def combined(r: Run) -> None:
    """``(boxes, scores, most per class, most, limit, least) -> boxes, scores, classes, counts``."""
    boxes, scores = r.inputs[:2]
    limit, least = r.input("iou_threshold"), r.input("score_threshold")
    each, total = _checked(r, "max_output_size_per_class", 0.0), _checked(r, "max_total_size", 0.0)
    images, count, classes = scores.shape
    rows = min(total, each * classes) if r.attr("pad_per_class") else total
    outs = [
        r.output(shape, i) for i, shape in enumerate(((images, rows, 4), (images, rows), (images, rows), (images,)))
    ]
    for out in outs:
        r.fill(out)
    if not (images and classes and count and each):
        return
    taken = _Taken(r, boxes, scores, None, (images, count, classes, boxes.shape[2]), each, limit, least)
    merge = source(*taken.parts, "suppression_merge.cuh", **taken.types)
    options = (i64(rows), i32(bool(r.attr("clip_boxes"))))
    found = (taken.indices, taken.scores, taken.counts)
    r.launch(merge, "suppress_merge", images, _BLOCK, boxes, *found, *outs, *options, taken.packed)
