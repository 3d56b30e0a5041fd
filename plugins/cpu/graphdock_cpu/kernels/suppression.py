"""Kernels of non-maximum suppression. A box that is taken strikes out what it overlaps, all at once; softly, it lowers scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from graphdock.contracts import Bound, BuildContext, KernelDef, errors

__all__ = ["KERNELS"]

#: Overlaps of box i with all boxes.
Overlaps = Callable[[int], Any]


def _overlaps(boxes: Any) -> Overlaps:
    """Intersection over union with a box, in float32."""
    wide = boxes.astype(np.float32)
    top, low = np.minimum(wide[:, 0], wide[:, 2]), np.maximum(wide[:, 0], wide[:, 2])
    left, right = np.minimum(wide[:, 1], wide[:, 3]), np.maximum(wide[:, 1], wide[:, 3])
    areas = (low - top) * (right - left)

    def overlaps(i: int) -> Any:
        height = np.minimum(low, low[i]) - np.maximum(top, top[i])
        width = np.minimum(right, right[i]) - np.maximum(left, left[i])
        shared = np.maximum(height, 0) * np.maximum(width, 0)
        union = areas + areas[i] - shared
        real = (areas > 0) & (areas[i] > 0)
        return np.divide(shared, union, out=np.zeros_like(shared), where=real)

    return overlaps


def _hard(overlaps: Overlaps, scores: Any, most: int, limit: float, least: float) -> Any:
    """Indices of what is taken."""
    order = np.argsort(-scores.astype(np.float32), kind="stable")
    alive = scores > least
    taken: list[int] = []
    for i in order.tolist():
        if len(taken) >= most:
            break
        if alive[i]:
            taken.append(i)
            alive &= ~(overlaps(i) > limit)
    return np.array(taken, np.int32)


def _soft(overlaps: Overlaps, scores: Any, most: int, least: float, sigma: float) -> tuple[Any, Any]:
    """Indices of what is taken, and its lowered scores."""
    left = np.where(scores > least, scores.astype(np.float32), -np.inf)
    taken: list[int] = []
    kept: list[float] = []
    scale = np.float32(-0.5 / sigma)
    while len(taken) < most and left.size:
        best = int(np.argmax(left))
        if left[best] == -np.inf:
            break
        taken.append(best)
        kept.append(float(left[best]))
        iou = overlaps(best)
        left = left * np.exp(scale * iou * iou)
        left[best] = -np.inf
        left[~(left > least)] = -np.inf
    return np.array(taken, np.int32), np.array(kept, np.float32)


def _checked(most: Any, limit: Any, sigma: Any = 0, name: str = "max_output_size") -> tuple[int, float]:
    if most < 0:
        raise errors.InvalidArgumentError(f"{name} is {int(most)}", expected="0 or more")
    if not 0 <= limit <= 1:
        raise errors.InvalidArgumentError(f"iou_threshold is {float(limit)}", expected="a number in [0, 1]")
    if not sigma >= 0:
        raise errors.InvalidArgumentError(f"soft_nms_sigma is {float(sigma)}", expected="0 or more")
    return int(most), float(limit)


def _suppress(ctx: BuildContext) -> Bound:
    """V2 and V3."""

    def compute(boxes: Any, scores: Any, most: Any, limit: Any, least: Any = -np.inf) -> Any:
        return _hard(_overlaps(boxes), scores, *_checked(most, limit), float(least))

    return Bound(compute)


def _padded(values: Any, most: int, pad: bool) -> Any:
    if not pad:
        return values
    out = np.zeros(most, values.dtype)
    out[: len(values)] = values
    return out


def _suppress_v4(ctx: BuildContext) -> Bound:
    pad = bool(ctx.attr("pad_to_max_output_size"))

    def compute(boxes: Any, scores: Any, most: Any, limit: Any, least: Any) -> Any:
        count, overlap = _checked(most, limit)
        taken = _hard(_overlaps(boxes), scores, count, overlap, float(least))
        return _padded(taken, count, pad), np.array(len(taken), np.int32)

    return Bound(compute)


def _suppress_v5(ctx: BuildContext) -> Bound:
    pad = bool(ctx.attr("pad_to_max_output_size"))

    def compute(boxes: Any, scores: Any, most: Any, limit: Any, least: Any, sigma: Any) -> Any:
        count, overlap = _checked(most, limit, sigma)
        if sigma > 0:
            taken, kept = _soft(_overlaps(boxes), scores, count, float(least), float(sigma))
            kept = kept.astype(scores.dtype)
        else:
            taken = _hard(_overlaps(boxes), scores, count, overlap, float(least))
            kept = scores[taken]
        return _padded(taken, count, pad), _padded(kept, count, pad), np.array(len(taken), np.int32)

    return Bound(compute)


def _suppress_overlaps(ctx: BuildContext) -> Bound:
    def compute(overlaps: Any, scores: Any, most: Any, limit: Any, least: Any) -> Any:
        count, _ = _checked(most, 0)
        return _hard(lambda i: overlaps[:, i], scores, count, float(limit), float(least))

    return Bound(compute)


def _combined(ctx: BuildContext) -> Bound:
    pad, clip = bool(ctx.attr("pad_per_class")), bool(ctx.attr("clip_boxes"))

    def compute(boxes: Any, scores: Any, each: Any, total: Any, limit: Any, least: Any) -> Any:
        count, overlap = _checked(each, limit, name="max_output_size_per_class")
        if total < 0:
            raise errors.InvalidArgumentError(f"max_total_size is {int(total)}", expected="0 or more")
        batch, _, classes = scores.shape
        rows = min(int(total), count * classes) if pad else int(total)
        made = np.zeros((batch, rows, 4), np.float32)
        values, labels = np.zeros((batch, rows), np.float32), np.zeros((batch, rows), np.float32)
        counts = np.zeros(batch, np.int32)
        for b in range(batch):
            taken = []
            for k in range(classes):
                its = np.ascontiguousarray(boxes[b, :, k if boxes.shape[2] != 1 else 0])
                taken.append(_hard(_overlaps(its), scores[b, :, k], count, overlap, float(least)))
            where = np.concatenate(taken) if taken else np.zeros(0, np.int32)
            label = np.repeat(np.arange(classes), np.array([len(t) for t in taken], np.intp))
            score = scores[b, where, label]
            order = np.argsort(-score, kind="stable")[:rows]
            n = counts[b] = len(order)
            chosen = boxes[b, where[order], label[order] if boxes.shape[2] != 1 else 0]
            made[b, :n] = np.clip(chosen, 0, 1) if clip else chosen
            values[b, :n], labels[b, :n] = score[order], label[order]
        return made, values, labels, counts

    return Bound(compute)


_MOST = {"host": ("max_output_size",), "modes": ("fresh",)}

KERNELS = [
    KernelDef("NonMaxSuppressionV2", "cpu", _suppress, **_MOST),
    KernelDef("NonMaxSuppressionV3", "cpu", _suppress, **_MOST),
    KernelDef("NonMaxSuppressionV4", "cpu", _suppress_v4, **_MOST),
    KernelDef("NonMaxSuppressionV5", "cpu", _suppress_v5, **_MOST),
    KernelDef("NonMaxSuppressionWithOverlaps", "cpu", _suppress_overlaps, **_MOST),
    KernelDef(
        "CombinedNonMaxSuppression",
        "cpu",
        _combined,
        host=("max_output_size_per_class", "max_total_size"),
        modes=("fresh",),
    ),
]
