"""Debug mode overwrites a buffer once it is dead, and nothing that lives."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest


@pytest.mark.parametrize("feed", [True, False])
@pytest.mark.parametrize("size", [[None], [3]], ids=str)
def test_a_second_gradient_of_a_cond_is_that_of_a_plain_step(size, feed):
    """A buffer that a branch captured but did not read was overwritten behind the branch, when its bytes had another owner."""
    with tf.Graph().as_default():
        x, which = tf.placeholder(tf.float64, size), tf.placeholder(tf.bool, [])
        y = tf.cond(which, lambda: tf.sin(x) * x, lambda: tf.cos(x) * x * x)
        (first,) = tf.gradients(tf.reduce_sum(y**2), x)
        (second,) = tf.gradients(tf.reduce_sum(first**2), x)
        found = []
        for debug in (False, True):
            with tf.Session(config=tf.SessionConfig(debug=debug)) as sess:
                found.append(sess.run([first, second], {x: [0.5, 0.25, 1.0], which: feed}))
    np.testing.assert_array_equal(found[1], found[0])
    v = np.array([0.5, 0.25, 1.0])
    y, by = (
        (np.sin(v) * v, np.cos(v) * v + np.sin(v)) if feed else (np.cos(v) * v**2, 2 * v * np.cos(v) - v**2 * np.sin(v))
    )
    np.testing.assert_allclose(found[0][0], 2 * y * by)
