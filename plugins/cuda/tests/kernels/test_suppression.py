"""More boxes than a block has threads, with equal scores and boxes turned over, beside the cpu's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock.ops import apply_op


def _boxes(rng: Any, *shape: int) -> np.ndarray:
    corners = rng.uniform(0, 1, (*shape, 2)).astype(np.float32)
    sizes = rng.uniform(-0.2, 0.2, (*shape, 2)).astype(np.float32)
    return np.concatenate([corners, corners + sizes], -1)


@pytest.mark.parametrize("sigma", [0.0, 0.4])
def test_one_class(run: Callable[..., Any], sigma: float) -> None:
    rng = np.random.default_rng(1)
    boxes, scores = _boxes(rng, 1300), rng.integers(0, 50, 1300).astype(np.float32) / 50

    def made(b: Any, s: Any) -> Any:
        return list(
            apply_op(
                "NonMaxSuppressionV5",
                boxes=b,
                scores=s,
                max_output_size=40,
                iou_threshold=0.3,
                score_threshold=0.25,
                soft_nms_sigma=sigma,
            )
        )

    mine, theirs = (run(made, boxes, scores, backend=backend) for backend in ("cuda", "cpu"))
    np.testing.assert_array_equal(mine[0], theirs[0])
    np.testing.assert_allclose(mine[1], theirs[1], rtol=1e-5)
    assert mine[2] == theirs[2] == 40


@pytest.mark.parametrize("kinds", [1, 4])
def test_classes_of_images(run: Callable[..., Any], kinds: int) -> None:
    rng = np.random.default_rng(2)
    boxes, scores = _boxes(rng, 3, 60, kinds), rng.integers(0, 30, (3, 60, 4)).astype(np.float32) / 30

    def made(b: Any, s: Any) -> Any:
        return list(tf.image.combined_non_max_suppression(b, s, 9, 30, 0.2, 0.4))

    for mine, theirs in zip(run(made, boxes, scores), run(made, boxes, scores, backend="cpu"), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_a_threshold_that_is_no_share(run: Callable[..., Any]) -> None:
    boxes, scores = np.zeros((2, 4), np.float32), np.zeros(2, np.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="iou_threshold is 1.5"):
        run(lambda b, s: tf.image.non_max_suppression(b, s, 3, iou_threshold=1.5), boxes, scores)


@pytest.mark.parametrize("limit", [-0.25, 1.5, np.nan])
def test_a_threshold_of_classes_that_is_no_share(run: Callable[..., Any], limit: float) -> None:
    boxes, scores, given = np.zeros((1, 2, 1, 4), np.float32), np.zeros((1, 2, 3), np.float32), np.float32(limit)

    def made(b: Any, s: Any, t: Any) -> Any:
        return list(tf.image.combined_non_max_suppression(b, s, 2, 4, t, 0.1, name="boxes"))

    with pytest.raises(tf.errors.InvalidArgumentError, match=f"iou_threshold is {limit}") as raised:
        run(made, boxes, scores, given)
    assert raised.value.op.name == "boxes"
