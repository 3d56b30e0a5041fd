"""Gradients by index: many windows of one element, in the order of the windows, and indices outside of the input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock.ops import apply_op


def _spread(x: Any, dy: Any, argmax: Any) -> Any:
    return apply_op(
        "MaxPoolGradWithArgmax",
        input=x,
        grad=dy,
        argmax=argmax,
        ksize=[1, 2, 2, 1],
        strides=[1, 1, 1, 1],
        padding="SAME",
    )


def test_many_windows_of_one_element(run: Callable[..., Any]) -> None:
    rng = np.random.default_rng(1)
    x = np.zeros((2, 9, 11, 3), np.float32)
    dy, argmax = rng.standard_normal(x.shape).astype(np.float32), rng.integers(0, 297, x.shape)
    argmax[0, :5], argmax[1, :, :4] = 17, 40
    got = run(_spread, x, dy, argmax)
    want = np.zeros((2, 297))
    for image in range(2):
        np.add.at(want[image], argmax[image].ravel(), dy[image].ravel())
    np.testing.assert_allclose(got.reshape(2, 297), want, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(got, run(_spread, x, dy, argmax))


@pytest.mark.parametrize("index", [-1, 18])
def test_an_index_outside_of_the_input(run: Callable[..., Any], index: int) -> None:
    x, argmax = np.zeros((1, 3, 3, 2), np.float32), np.zeros((1, 3, 3, 2), np.int64)
    argmax[0, 1, 1, 1] = index
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"(?s)outside of the input.*0 to 17.*{index}"):
        run(_spread, x, x, argmax)
