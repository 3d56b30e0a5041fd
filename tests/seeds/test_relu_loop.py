"""The Chicago slides' relu loop, its product mended so that the shapes fit."""

from __future__ import annotations

import graphdock as tf
import numpy as np


def test_a_hundred_steps():
    rng = np.random.default_rng(0)
    with tf.Graph().as_default():
        b = tf.Variable(tf.zeros([1000]))
        W = tf.Variable(tf.random_uniform([784, 1000], -1, 1))
        x = tf.placeholder(name="x")
        relu = tf.nn.relu(tf.matmul(x, W) + b)
        C = tf.reduce_sum(relu)
        s = tf.Session()
        s.run(tf.global_variables_initializer())
        w = s.run(W)
        assert -1 <= w.min() < -0.99 and 0.99 < w.max() < 1
        for step in range(0, 100):
            input = rng.normal(size=(1 + step % 10, 784))
            result = s.run(C, feed_dict={x: input})
            print(step, result)
            np.testing.assert_allclose(result, np.maximum(input @ w.astype(np.float64), 0).sum(), rtol=1e-4)
