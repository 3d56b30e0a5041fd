"""Images made much larger and much smaller, with their gradients, beside the cpu's."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import graphdock as tf
import numpy as np
import pytest

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("dims", [(1, 4), (3, 1), (1, 1)])
def test_an_area_of_one_pixel_with_aligned_corners(run: Callable[..., Any], dims: tuple[int, int]) -> None:
    x = np.random.default_rng(1).standard_normal((2, *dims, 3)).astype(np.float32)

    def made(a: Any) -> Any:
        y = tf.image.resize_area(a, (3, 5), align_corners=True)
        return [y, *tf.gradients(y * y, [a])]

    for mine, theirs in zip(run(made, x), run(made, x, backend="cpu"), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("size", [(3, 40), (37, 5)])
@pytest.mark.parametrize(
    ("method", "attrs"),
    [
        *itertools.product(
            ["bilinear", "bicubic", "nearest_neighbor"], [{}, {"align_corners": True}, {"half_pixel_centers": True}]
        ),
        *itertools.product(["area"], [{}, {"align_corners": True}]),
    ],
)
def test_gradients(run: Callable[..., Any], method: str, attrs: dict[str, bool], size: Any) -> None:
    x = np.random.default_rng(1).standard_normal((2, 13, 17, 3)).astype(np.float32)

    def made(a: Any) -> Any:
        y = getattr(tf.image, f"resize_{method}")(a, size, **attrs)
        return [y, *tf.gradients(y * y, [a])]

    for mine, theirs in zip(run(made, x), run(made, x, backend="cpu"), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-3, atol=1e-3)
