"""Windows of images larger than the samples of the spec: inside, across each border, and far outside; and boxes drawn, of many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock.ops import apply_op
from graphdock_std.reference.image_random import extract_glimpse, sample_distorted_bounding_box

Computed = Callable[..., list[np.ndarray]]


@pytest.mark.parametrize("noise", [{}, {"uniform_noise": False}, {"uniform_noise": False, "noise": "zero"}])
@pytest.mark.parametrize("centered", [False, True])
def test_windows(computed: Computed, noise: dict[str, object], centered: bool) -> None:
    images = np.random.default_rng(1).standard_normal((5, 21, 18, 3)).astype(np.float32)
    offsets = np.array([[0.2, 0.3], [-1, -1], [1, 0.9], [0, 7], [-1e30, 0.1]], np.float32)
    arrays = {"input": images, "size": np.array([9, 14], np.int32), "offsets": offsets}
    attrs = {"centered": centered, "seed": 3, "seed2": 4, **noise}
    (y,) = computed("ExtractGlimpse", arrays, **attrs)
    np.testing.assert_allclose(y, extract_glimpse(**arrays, **attrs, key=(3, 4), counter=(0, 0)), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("count", [1, 64, 65, 200])
def test_boxes(computed: Computed, count: int) -> None:
    """Small boxes of which one in many attempts holds one: each count of launches chooses the first such attempt of all."""
    corners = np.random.default_rng(count).uniform(0, 0.9, (count, 2))
    boxes = np.concatenate([corners, corners + 0.1], 1)[None].astype(np.float32)
    arrays = {"image_size": np.array([480, 640, 3]), "bounding_boxes": boxes, "min_object_covered": np.float32(0.9)}
    for seed in range(6):
        attrs = {"seed": seed, "seed2": 9, "area_range": [0.01, 0.03]}
        found, expected = (
            computed("SampleDistortedBoundingBoxV2", arrays, **attrs),
            sample_distorted_bounding_box(**arrays, **attrs, key=(seed, 9), counter=(0, 0)),
        )
        for mine, theirs in zip(found, expected, strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("steps", [1, 4])
def test_each_step_and_iteration_draws_a_box_of_its_own(on_both: Callable[..., Any], steps: int) -> None:
    def made(size: Any, boxes: Any, x: Any) -> list[Any]:
        def drawn() -> Any:
            attrs = {"seed": 3, "seed2": 4, "max_attempts": 20}
            return apply_op(
                "SampleDistortedBoundingBoxV2", image_size=size, bounding_boxes=boxes, min_object_covered=0.5, **attrs
            )

        def body(i: Any, total: Any) -> Any:
            return i + 1, total + drawn().bboxes

        _, total = tf.while_loop(lambda i, _: i < 3, body, [0, tf.zeros([1, 1, 4])])
        return [*drawn(), total, tf.nn.dropout(x, 0.5, seed=1)]

    boxes, x = np.array([[[0.1, 0.2, 0.6, 0.9]]], np.float32), np.ones(9, np.float32)
    for mine, theirs in on_both(made, np.array([300, 200, 3], np.int32), boxes, x, steps=steps):
        np.testing.assert_array_equal(mine, theirs)
