"""What arrives at a tensor is summed, in the form in which it came; edge cases of formulas, as TensorFlow 1 has them."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest


def test_rows_stay_rows_and_join_whole_gradients(sess):
    p = tf.Variable(np.ones((4, 2), np.float32))
    rows = tf.gradients([tf.gather(p, [1, 1]), tf.gather(p, [3])], p)[0]
    assert isinstance(rows, tf.IndexedSlices)
    both = tf.gradients([tf.gather(p, [1, 1]), tf.reduce_sum(p, 1)], p)[0]
    assert isinstance(both, tf.Tensor)
    sess.run(p.initializer)
    np.testing.assert_array_equal(sess.run(tf.convert_to_tensor(rows))[:, 0], [0, 2, 0, 1])
    np.testing.assert_array_equal(sess.run(both)[:, 0], [1, 3, 1, 1])


def test_rows_may_arrive(sess):
    p = tf.Variable(np.ones((4, 2), np.float32))
    y = p * 3.0
    given = tf.IndexedSlices(tf.ones([1, 2]), tf.constant([2]), tf.constant([4, 2]))
    sess.run(p.initializer)
    np.testing.assert_array_equal(sess.run(tf.gradients(y, p, grad_ys=given)[0])[:, 0], [0, 0, 3, 0])
    with pytest.raises(TypeError, match="grad_ys"):
        tf.gradients(y, p, grad_ys=tf.IndexedSlices(tf.ones([1, 2], tf.float64), tf.constant([2])))


def test_second_derivatives_that_are_zero_are_zeros(sess):
    x = tf.constant([1.0, -1.0])
    slope = tf.gradients(tf.nn.relu(x), x)[0]
    assert sess.run(tf.gradients(slope, x)[0]).tolist() == [0.0, 0.0]
    assert sess.run(tf.gradients(tf.sign(x), x)[0]).tolist() == [0.0, 0.0]
    assert tf.gradients(tf.floor(x), x) == [None]
    assert sess.run(tf.gradients(tf.gradients(tf.abs(x), x)[0], x)[0]).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("dtype", "x", "y"), [("float16", [6.0, 2.0], [6.0, 3.0]), ("float32", [1e19, 2.0], [2.0, 3.0])]
)
def test_a_power_that_overflows_where_no_gradient_arrives(sess, dtype, x, y):
    x, y = tf.constant(x, dtype), tf.constant(y, dtype)
    to_x, to_y = sess.run(tf.gradients(x**y, [x, y], [tf.constant([0.0, 1.0], dtype)]))
    np.testing.assert_array_equal(to_x, [0, 12])
    np.testing.assert_allclose(to_y, [0, 8 * np.log(2)], rtol=1e-3)


def test_powers_at_their_edges(sess):
    """To x: zero where both are zero, and at infinity to the power of zero; to y: zero where x is not positive."""
    x = tf.constant([0.0, np.inf, -np.inf, 0.0, 0.0, -2.0, 2.0])
    y = tf.constant([0.0, 0.0, 0.0, 2.0, 1.0, 3.0, 0.0])
    to_x, to_y = sess.run(tf.gradients(tf.pow(x, y), [x, y]))
    np.testing.assert_array_equal(to_x, [0, 0, 0, 0, 1, 12, 0])
    np.testing.assert_allclose(to_y, [0, np.inf, 0, 0, 0, 0, np.log(2)], rtol=1e-6)
