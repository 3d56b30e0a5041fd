"""Histories that another device makes or reads: loops that have them are no regions."""

from __future__ import annotations

import graphdock as tf
import numpy as np


def test_a_history_that_is_made_on_another_device_is_not_read_as_a_whole(loops):
    made = loops()
    x = tf.placeholder(tf.float32, [3], name="x")
    with tf.device("cpu:1"):
        y = tf.while_loop(lambda i, _: i < 2, lambda i, t: (i + 1, t * t), [0, x])[1]
    with tf.device("cpu:0"):
        gradient = tf.gradients(y, x)[0]
    config = tf.SessionConfig(backends=["lab", "cpu"], device_count={"CPU": 2})
    with tf.Session(config=config, host=made.host) as sess:
        np.testing.assert_allclose(sess.run(gradient, {x: [1.0, 2.0, 3.0]}), [4.0, 32.0, 108.0])
        assert "on another device" in str(sess.explain(gradient, {x: np.zeros(3)}))
