"""Boxes of images that are not there, at any box."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphdock as tf
import numpy as np
import pytest


@pytest.mark.parametrize("index", [-1, 2])
def test_a_box_of_no_image(run: Callable[..., Any], index: int) -> None:
    images, boxes = np.zeros((2, 4, 4, 1), np.float32), np.tile(np.float32([0, 0, 1, 1]), (3, 1))

    def crop(x: Any, b: Any, i: Any) -> Any:
        return tf.image.crop_and_resize(x, b, i, [2, 2])

    with pytest.raises(tf.errors.InvalidArgumentError, match=f"(?s)box_ind\\[1\\].*0 to 1.*got {index}"):
        run(crop, images, boxes, np.array([0, index, 1], np.int32))


def test_gradients_beside_the_cpu(run: Callable[..., Any]) -> None:
    rng = np.random.default_rng(1)
    images = rng.standard_normal((2, 9, 11, 3)).astype(np.float32)
    boxes = rng.uniform(-0.2, 1.2, (7, 4)).astype(np.float32)
    indices = rng.integers(0, 2, 7).astype(np.int32)

    def made(x: Any, b: Any, i: Any) -> Any:
        y = tf.image.crop_and_resize(x, b, i, [6, 7])
        return [y, *tf.gradients(y * y, [x, b])]

    arrays = (images, boxes, indices)
    for mine, theirs in zip(run(made, *arrays), run(made, *arrays, backend="cpu"), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-3, atol=2e-3)
