"""The gradients of unstacking and stacking: a sum over all loops that read, and rows for the loop that kept."""

import graphdock as tf
import numpy as np
from graphdock import ops

X = np.arange(6.0).reshape(3, 2) + 1


def test_a_gradient_that_arrives_from_two_loops_is_summed():
    x = tf.placeholder(tf.float64, [None, 2])
    first, second = (
        ops.scan_loop(lambda v, r, n=n: (v, [r[0] ** n]), [0], [x], element_shapes=lambda _: [[2]])[1][0]
        for n in (2, 3)
    )
    (grad,) = tf.gradients([tf.reduce_sum(first), tf.reduce_sum(second)], x)
    with tf.Session() as sess:
        np.testing.assert_allclose(sess.run(grad, {x: X}), 2 * X + 3 * X**2)


def test_sparse_gradients_of_what_was_kept():
    x = tf.constant(X)
    _, (kept,) = ops.scan_loop(lambda v, r: (v, [r[0] * r[0]]), [0], [x])
    (grad,) = tf.gradients(tf.gather(kept, [2, 2, 0]), x)
    with tf.Session() as sess:
        np.testing.assert_allclose(sess.run(grad), 2 * X * [[1], [0], [2]])


def test_no_gradient_flows_through_what_is_not_floating():
    x = tf.constant(X)
    _, (kept,) = ops.scan_loop(lambda v, r: (v, [tf.argmax(r[0])]), [0], [x])
    assert tf.gradients(tf.cast(kept, tf.float64), x) == [None]
