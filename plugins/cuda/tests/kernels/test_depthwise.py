"""Depthwise convolutions with more channels than a warp has lanes and more positions than a part, beside the cpu's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphdock as tf
import numpy as np
import pytest


@pytest.mark.parametrize(
    ("x", "w", "attrs"),
    [
        ((2, 21, 23, 19), (3, 3, 19, 2), {"strides": [1, 2, 2, 1], "padding": "SAME"}),
        ((2, 5, 21, 23), (3, 2, 5, 3), {"strides": [1, 1, 1, 1], "padding": "VALID", "data_format": "NCHW"}),
    ],
)
def test_gradients(run: Callable[..., Any], x: Any, w: Any, attrs: dict[str, Any]) -> None:
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal(s).astype(np.float32) for s in (x, w)]

    def made(a: Any, b: Any) -> Any:
        y = tf.nn.depthwise_conv2d_native(a, b, **attrs)
        return [y, *tf.gradients(y * y, [a, b])]

    for mine, theirs in zip(run(made, *arrays), run(made, *arrays, backend="cpu"), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-3, atol=1e-3)
