"""Optimizers behind a decay of the weights move as the formulas say that TensorFlow 1 documents, written out in NumPy."""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import InvalidArgumentError

START = np.array([[1.0, -2.0], [0.5, 4.0], [3.0, -1.0]])
SLOPE = np.array([[0.5, 1.0], [-1.0, 0.25], [2.0, -0.5]])


def moved(optimizer: Any, steps: int = 3, rows: Any = None, **given: Any) -> np.ndarray:
    with tf.Graph().as_default():
        w = tf.Variable(START, name="w")
        loss = tf.reduce_sum(tf.gather(w, rows) * SLOPE[rows]) if rows else tf.reduce_sum(w * SLOPE)
        train = optimizer.minimize(loss, **{k: v(w) for k, v in given.items()})
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(steps):
                sess.run(train)
            return np.asarray(sess.run(w))


def adam(decay: float, steps: int = 3, rate: float = 0.1) -> np.ndarray:
    w, m, v = START.copy(), np.zeros_like(START), np.zeros_like(START)
    for t in range(1, steps + 1):
        w = w - decay * w
        m, v = 0.9 * m + 0.1 * SLOPE, 0.999 * v + 0.001 * SLOPE**2
        w -= rate * np.sqrt(1 - 0.999**t) / (1 - 0.9**t) * m / (np.sqrt(v) + 1e-8)
    return w


def test_adam_w_takes_the_same_share_whatever_the_learning_rate() -> None:
    for rate in (0.1, 0.0):
        np.testing.assert_allclose(moved(tf.contrib.opt.AdamWOptimizer(0.05, rate)), adam(0.05, rate=rate), rtol=1e-9)


def test_only_the_variables_of_the_list_decay() -> None:
    kept = moved(tf.contrib.opt.AdamWOptimizer(0.05, 0.1), decay_var_list=lambda w: [])
    np.testing.assert_allclose(kept, adam(0.0), rtol=1e-9)
    taken = moved(tf.contrib.opt.AdamWOptimizer(0.05, 0.1), decay_var_list=lambda w: [w])
    np.testing.assert_allclose(taken, adam(0.05), rtol=1e-9)


def test_momentum_w() -> None:
    w, a = START.copy(), np.zeros_like(START)
    for _ in range(3):
        w, a = w - 0.05 * w, 0.9 * a + SLOPE
        w -= 0.1 * a
    np.testing.assert_allclose(moved(tf.contrib.opt.MomentumWOptimizer(0.05, 0.1, 0.9)), w, rtol=1e-9)


def test_rows_of_a_sparse_gradient_decay_alone() -> None:
    extended = tf.contrib.opt.extend_with_decoupled_weight_decay(tf.train.GradientDescentOptimizer)
    want = START.copy()
    for _ in range(3):
        want[[0, 2]] -= 0.05 * want[[0, 2]]
        want[[0, 2]] -= 0.1 * SLOPE[[0, 2]]
    np.testing.assert_allclose(moved(extended(0.05, learning_rate=0.1), rows=[0, 2]), want, rtol=1e-9)
    once = START.copy()
    once[2] -= 0.05 * once[2] + 0.1 * 2 * SLOPE[2]  # a row that is named twice decays once
    np.testing.assert_allclose(moved(extended(0.05, learning_rate=0.1), 1, [2, 2]), once, rtol=1e-9)


def test_a_decay_that_is_no_number_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="weight_decay"):
        tf.contrib.opt.AdamWOptimizer("much", 0.1)
