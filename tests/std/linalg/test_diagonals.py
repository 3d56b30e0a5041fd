"""Diagonals other than the main one; the numbers are TensorFlow 1.15's, whose diagonals begin at the left."""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock_testing.gradient_check import check_gradients


def run(value: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(value, feed)


@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 4), (4, 2)])
def test_one_diagonal_is_numpys(shape: tuple[int, ...]) -> None:
    x = np.arange(1, 1 + np.prod(shape)).reshape(shape)
    for k in range(1 - shape[-2], shape[-1]):
        part = np.diagonal(x, k, -2, -1)
        np.testing.assert_array_equal(run(tf.matrix_diag_part(x, k=k)), part)
        back = run(tf.linalg.diag(part, k=k, num_rows=shape[-2], num_cols=shape[-1]))
        mask = np.subtract.outer(-np.arange(shape[-2]), -np.arange(shape[-1])) == k
        np.testing.assert_array_equal(back, np.where(mask, x, 0))
        np.testing.assert_array_equal(run(tf.matrix_set_diag(x, -part, k=k)), np.where(mask, -x, x))


def test_bands() -> None:
    x = np.array([[1, 2, 3, 4], [5, 6, 7, 8], [9, 8, 7, 6]])
    band = [[2, 7, 6], [1, 6, 7], [5, 8, 9]]
    assert run(tf.linalg.diag_part(x, k=(-1, 1), padding_value=9)).tolist() == band
    kept = [[1, 2, 0, 0], [5, 6, 7, 0], [0, 8, 7, 6]]
    assert run(tf.linalg.diag(band, k=(-1, 1), num_cols=4)).tolist() == kept
    assert run(tf.linalg.set_diag(np.zeros((3, 4), int), band, k=(-1, 1))).tolist() == kept
    assert run(tf.linalg.diag([[1, 2], [3, 4]], k=(0, 1), num_rows=2, num_cols=3)).tolist() == [[3, 1, 0], [0, 4, 2]]


def test_sizes() -> None:
    assert run(tf.matrix_diag([1, 2], k=1)).tolist() == [[0, 1, 0], [0, 0, 2], [0, 0, 0]]
    assert run(tf.matrix_diag([1.0], k=-1, padding_value=5.0)).tolist() == [[5, 5], [1, 5]]
    fed = tf.placeholder(tf.float32, [None, 2, 2])
    assert run(tf.matrix_diag_part(fed, k=1), {fed: [[[1, 2], [3, 4]]] * 2}).tolist() == [[2], [2]]
    for wrong in ((1, 0), (0, 1, 2), "x"):
        with pytest.raises(ValueError):
            tf.matrix_diag_part(np.ones((2, 2)), k=wrong)
    for refused in (
        lambda: tf.matrix_diag_part(np.ones((2, 2)), k=2),
        lambda: tf.matrix_set_diag(np.ones((2, 2)), [1.0, 2], k=1),
    ):
        with pytest.raises(ValueError):
            refused()


def test_gradients() -> None:
    x = tf.placeholder(tf.float64, [3, 4])
    part = tf.matrix_diag_part(x, k=(-1, 1))
    y = tf.matrix_set_diag(tf.square(x), tf.sin(part), k=(-1, 1)) * tf.matrix_diag(part, k=(-1, 1), num_cols=4)
    check_gradients(y, {x: np.random.default_rng(0).normal(size=(3, 4))})
