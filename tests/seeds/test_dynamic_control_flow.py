"""The slides' cond and while_loop."""

from __future__ import annotations

import graphdock as tf
import pytest


@pytest.mark.parametrize(("x_value", "y_value", "want"), [(1.0, 2.0, 4.0), (3.0, 2.0, 4.0), (5.0, -3.0, 9.0)])
def test_cond(x_value, y_value, want):
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [])
        y = tf.placeholder(tf.float32, [])
        z = tf.constant(3.0)
        result = tf.cond(x < y, lambda: tf.add(x, z), lambda: tf.square(y))
        with tf.Session() as sess:
            assert sess.run(result, {x: x_value, y: y_value}) == want


def test_while_loop():
    with tf.Graph().as_default():
        result = tf.while_loop(lambda i: i < 10, lambda i: tf.add(i, 1), [0])
        with tf.Session() as sess:
            assert sess.run(result) == 10
