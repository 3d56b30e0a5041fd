"""Non-maximum suppression of more boxes than a block has threads, and of equal scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from graphdock.errors import InvalidArgumentError
from graphdock_std.reference import suppression

Computed = Callable[..., list[np.ndarray]]


def _boxes(count: int) -> np.ndarray:
    corners = np.random.default_rng(count).random((count, 2)) * 4
    return np.concatenate([corners, corners + 0.5], 1).astype(np.float32)


def test_many_boxes(computed: Computed) -> None:
    boxes = _boxes(1500)
    scores = np.random.default_rng(1).integers(0, 40, 1500).astype(np.float32)  # many are equal
    arrays: dict[str, Any] = {"boxes": boxes, "scores": scores, "max_output_size": np.int32(60)}
    arrays |= {"iou_threshold": np.float32(0.3), "score_threshold": np.float32(5)}
    (taken,) = computed("NonMaxSuppressionV3", arrays)
    np.testing.assert_array_equal(taken, suppression.suppress(**arrays))


def test_many_boxes_softly(computed: Computed) -> None:
    arrays: dict[str, Any] = {"boxes": _boxes(400), "scores": np.random.default_rng(1).random(400).astype(np.float32)}
    arrays |= {"max_output_size": np.int32(50), "iou_threshold": np.float32(1), "score_threshold": np.float32(0.2)}
    arrays["soft_nms_sigma"] = np.float32(0.5)
    got = computed("NonMaxSuppressionV5", arrays)
    want = suppression.suppress_v5(**arrays)
    np.testing.assert_array_equal(got[0], want[0])
    np.testing.assert_allclose(got[1], want[1], rtol=1e-5)


def test_many_classes(computed: Computed) -> None:
    rng = np.random.default_rng(3)
    arrays: dict[str, Any] = {"boxes": _boxes(200).reshape(2, 100, 1, 4), "scores": rng.random((2, 100, 7))}
    arrays["scores"] = arrays["scores"].astype(np.float32)
    arrays |= {"max_output_size_per_class": np.int32(20), "max_total_size": np.int32(90)}
    arrays |= {"iou_threshold": np.float32(0.2), "score_threshold": np.float32(0.3)}
    got = computed("CombinedNonMaxSuppression", arrays, clip_boxes=True)
    for a, b in zip(got, suppression.combined(**arrays, clip_boxes=True), strict=True):
        np.testing.assert_allclose(a, b)


@pytest.mark.parametrize("bad", [-0.5, np.nan])
def test_a_threshold_that_is_none_is_refused(computed: Computed, bad: float) -> None:
    arrays: dict[str, Any] = {"boxes": _boxes(3), "scores": np.ones(3, np.float32), "max_output_size": np.int32(2)}
    with pytest.raises(InvalidArgumentError, match=f"iou_threshold is {bad}"):
        computed("NonMaxSuppressionV2", {**arrays, "iou_threshold": np.float32(bad)})
