"""Oracles of non-maximum suppression: Python's numbers, and a list that is gone through by falling score."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np


def _overlap(a: Any, b: Any) -> float:
    """Intersection over union of two boxes."""
    (top_a, left_a, low_a, right_a), (top_b, left_b, low_b, right_b) = (
        (min(y1, y2), min(x1, x2), max(y1, y2), max(x1, x2)) for y1, x1, y2, x2 in (map(float, a), map(float, b))
    )
    first, second = (low_a - top_a) * (right_a - left_a), (low_b - top_b) * (right_b - left_b)
    if first <= 0 or second <= 0:
        return 0.0
    height, width = min(low_a, low_b) - max(top_a, top_b), min(right_a, right_b) - max(left_a, left_b)
    shared = max(height, 0.0) * max(width, 0.0)
    return shared / (first + second - shared)


def _taken(overlap: Callable[[int, int], float], scores: Any, most: int, limit: float, least: float) -> list[int]:
    order = sorted((i for i, s in enumerate(scores) if float(s) > least), key=lambda i: (-float(scores[i]), i))
    taken: list[int] = []
    for i in order:
        if len(taken) < most and all(overlap(i, j) <= limit for j in taken):
            taken.append(i)
    return taken


def suppress(
    boxes: Any, scores: Any, max_output_size: Any, iou_threshold: Any, score_threshold: Any = -math.inf, **_: Any
) -> np.ndarray:
    wide = np.asarray(boxes).astype(np.float64)
    taken = _taken(
        lambda i, j: _overlap(wide[i], wide[j]),
        scores,
        int(max_output_size),
        float(iou_threshold),
        float(score_threshold),
    )
    return np.array(taken, np.int32)


def _padded(values: np.ndarray, most: Any, pad: bool) -> np.ndarray:
    return np.concatenate([values, np.zeros(int(most) - len(values), values.dtype)]) if pad else values


def suppress_v4(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any,
    score_threshold: Any,
    pad_to_max_output_size: bool = False,
    **_: Any,
) -> tuple[np.ndarray, np.ndarray]:
    taken = suppress(boxes, scores, max_output_size, iou_threshold, score_threshold)
    return _padded(taken, max_output_size, pad_to_max_output_size), np.array(len(taken), np.int32)


def suppress_v5(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any,
    score_threshold: Any,
    soft_nms_sigma: Any,
    pad_to_max_output_size: bool = False,
    **_: Any,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every score is computed anew after each box that is taken."""
    sigma, limit, wide = float(soft_nms_sigma), float(iou_threshold), np.asarray(boxes).astype(np.float64)
    left = {i: float(s) for i, s in enumerate(scores) if float(s) > float(score_threshold)}
    taken: list[int] = []
    kept: list[float] = []
    while left and len(taken) < int(max_output_size):
        best = min(left, key=lambda i: (-left[i], i))
        taken.append(best)
        kept.append(left.pop(best))
        for i in list(left):
            iou = _overlap(wide[i], wide[best])
            if sigma > 0:
                left[i] *= math.exp(-0.5 / sigma * iou * iou)
            elif iou > limit:
                left[i] = -math.inf
            if left[i] <= float(score_threshold):
                del left[i]
    indices, values = np.array(taken, np.int32), np.array(kept).astype(scores.dtype)
    pad = pad_to_max_output_size
    return (
        _padded(indices, max_output_size, pad),
        _padded(values, max_output_size, pad),
        np.array(len(taken), np.int32),
    )


def suppress_overlaps(
    overlaps: Any, scores: Any, max_output_size: Any, overlap_threshold: Any, score_threshold: Any, **_: Any
) -> np.ndarray:
    taken = _taken(
        lambda i, j: float(overlaps[i, j]),
        scores,
        int(max_output_size),
        float(overlap_threshold),
        float(score_threshold),
    )
    return np.array(taken, np.int32)


def combined(
    boxes: Any,
    scores: Any,
    max_output_size_per_class: Any,
    max_total_size: Any,
    iou_threshold: Any,
    score_threshold: Any,
    pad_per_class: bool = False,
    clip_boxes: bool = True,
    **_: Any,
) -> tuple[np.ndarray, ...]:
    batch, _, classes = scores.shape
    rows = int(max_total_size)
    if pad_per_class:
        rows = min(rows, int(max_output_size_per_class) * classes)
    out = (
        np.zeros((batch, rows, 4), np.float32),
        np.zeros((batch, rows), np.float32),
        np.zeros((batch, rows), np.float32),
    )
    counts = []
    for b in range(batch):
        found = []
        for k in range(classes):
            its = boxes[b, :, k if boxes.shape[2] > 1 else 0]
            for i in suppress(its, scores[b, :, k], max_output_size_per_class, iou_threshold, score_threshold):
                found.append((-float(scores[b, i, k]), k, its[i]))
        found.sort(key=lambda f: f[:2])
        counts.append(min(len(found), rows))
        for row, (score, k, box) in enumerate(found[:rows]):
            out[0][b, row] = np.clip(box, 0, 1) if clip_boxes else box
            out[1][b, row], out[2][b, row] = -score, k
    return (*out, np.array(counts, np.int32))
