"""Dilation and erosion, against their definition and each other."""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock_testing.gradient_check import check_gradients


def run(*tensors: Any) -> Any:
    with tf.Session() as sess:
        values = sess.run(list(tensors))
    return values if len(values) > 1 else values[0]


@pytest.fixture(autouse=True)
def graph() -> Any:
    with tf.Graph().as_default():
        yield


ONES = [1, 1, 1, 1]


def test_a_flat_dilation_is_a_maximum_pool() -> None:
    x = np.random.default_rng(0).normal(size=(2, 5, 6, 3))
    flat = np.zeros((3, 2, 3))
    a, b = run(
        tf.nn.dilation2d(x, flat, [1, 2, 1, 1], ONES, "SAME"), tf.nn.max_pool(x, [1, 3, 2, 1], [1, 2, 1, 1], "SAME")
    )
    np.testing.assert_array_equal(a, b)


def test_numbers_worked_out_by_hand() -> None:
    x = np.array([1.0, 0.0, 4.0, 2.0]).reshape(1, 1, 4, 1)
    w = np.array([0.0, 3.0]).reshape(1, 2, 1)
    grown = tf.nn.dilation2d(x, w, ONES, ONES, "VALID")
    spread = tf.nn.dilation2d(x, w, ONES, [1, 1, 2, 1], "VALID")
    shrunk = tf.nn.erosion2d(x, w, ONES, ONES, "VALID")
    values = [v.ravel().tolist() for v in run(grown, spread, shrunk)]
    assert values == [[3.0, 7.0, 5.0], [7.0, 5.0], [-2.0, -3.0, 1.0]]


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_gradients(padding: str) -> None:
    rng = np.random.default_rng(1)
    x, w = tf.placeholder(tf.float64, [2, 6, 5, 2]), tf.placeholder(tf.float64, [2, 3, 2])
    values = {x: rng.normal(size=(2, 6, 5, 2)), w: rng.normal(size=(2, 3, 2))}
    grown = tf.nn.dilation2d(x, w, [1, 1, 2, 1], [1, 2, 1, 1], padding)
    check_gradients([grown, *tf.gradients(grown**3, [x, w])], values, directions=1)
    check_gradients(tf.nn.erosion2d(x, w, [1, 2, 1, 1], ONES, padding), values, directions=1)


def test_errors() -> None:
    with pytest.raises(ValueError, match="input has 2 channels, but the filter takes 3"):
        tf.nn.dilation2d(tf.zeros([1, 4, 4, 2]), tf.zeros([2, 2, 3]), ONES, ONES, "SAME")
    with pytest.raises(ValueError, match="rates .* must be 1 for batch and channels"):
        tf.nn.dilation2d(tf.zeros([1, 4, 4, 2]), tf.zeros([2, 2, 2]), ONES, [1, 1, 1, 2], "SAME")
