"""Convolutions of more than a tile, in both layouts, beside the cpu's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphdock as tf
import numpy as np
import pytest

pytestmark = pytest.mark.slow


def assert_agree(run: Callable[..., Any], function: Any, *arrays: np.ndarray) -> None:
    """Both backends give near results, and the GPU the same bits again."""
    got = run(function, *arrays)
    for mine, theirs in zip(got, run(function, *arrays, backend="cpu"), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-3, atol=2e-4)
    for mine, again in zip(got, run(function, *arrays), strict=True):
        np.testing.assert_array_equal(mine, again)


def _of(convolution: Callable[..., Any]) -> Callable[..., Any]:
    """The convolution and both of its gradients."""

    def made(x: Any, w: Any) -> Any:
        y = convolution(x, w)
        return [y, *tf.gradients(y * y, [x, w])]

    return made


@pytest.mark.parametrize(
    ("x", "w", "attrs"),
    [
        ((2, 19, 17, 5), (3, 3, 5, 37), {"strides": [1, 2, 2, 1], "padding": "SAME"}),
        ((3, 9, 40, 4), (2, 5, 4, 3), {"strides": [1, 1, 3, 1], "padding": "VALID", "dilations": [1, 3, 2, 1]}),
        ((2, 6, 20, 11), (3, 3, 6, 40), {"strides": [1, 1, 1, 2], "padding": "SAME", "data_format": "NCHW"}),
        ((8, 16, 16, 3), (1, 1, 3, 7), {"strides": [1, 1, 1, 1], "padding": "VALID"}),
        ((1, 4, 4, 40), (3, 3, 40, 70), {"strides": [1, 1, 1, 1], "padding": "SAME"}),
    ],
)
@pytest.mark.sampled(2)
def test_images(run: Callable[..., Any], x: Any, w: Any, attrs: dict[str, Any]) -> None:
    rng = np.random.default_rng(1)
    arrays = (rng.standard_normal(s).astype(np.float32) for s in (x, w))
    assert_agree(run, _of(lambda a, b: tf.nn.conv2d(a, b, **attrs)), *arrays)


def test_volumes(run: Callable[..., Any]) -> None:
    rng = np.random.default_rng(2)
    arrays = (rng.standard_normal(s).astype(np.float32) for s in ((2, 6, 7, 9, 3), (2, 3, 2, 3, 20)))
    assert_agree(run, _of(lambda a, b: tf.nn.conv3d(a, b, [1, 2, 1, 1, 1], "SAME")), *arrays)


def test_shapes_known_in_the_step(run: Callable[..., Any]) -> None:
    rng = np.random.default_rng(3)
    arrays = [rng.standard_normal(s).astype(np.float32) for s in ((2, 6, 7, 3), (3, 3, 3, 4))]

    def made(x: Any, w: Any) -> Any:
        x = tf.placeholder_with_default(x, [None, None, None, 3])
        y = tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME")
        return [y, *tf.gradients(y, [x, w])]

    assert_agree(run, made, *arrays)
