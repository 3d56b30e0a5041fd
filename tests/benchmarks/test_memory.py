"""Bytes of steps: what is planned is what is taken."""

from __future__ import annotations

import graphdock as tf
import numpy as np

from benchmarks.memory import PROGRAMS, peak


def test_planned_bytes_are_those_that_a_step_takes() -> None:
    x = h = tf.placeholder(tf.float32, [64, 128])
    for _ in range(4):
        h = tf.tanh(tf.matmul(h, tf.Variable(tf.ones([128, 128]))))
    loss = tf.reduce_mean(h)
    found = peak([loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss)], {x: np.ones([64, 128], np.float32)})
    assert abs(found.error) < 0.1 and found.planned > 4 * 64 * 128 * 4


def test_a_budget_is_kept_and_changes_no_loss() -> None:
    (program,) = PROGRAMS
    with tf.Graph().as_default():
        (within,) = program.builders["graphdock"]().values()
    with tf.Graph().as_default():
        (without,) = program.builders["graphdock/unbounded"]().values()
    assert within == without
