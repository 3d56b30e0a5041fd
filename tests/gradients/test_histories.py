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


def test_rows_of_what_a_loop_captures_stay_rows():
    """A gather in a loop costs its rows on the way back, not the whole tensor; of a variable the gradient is IndexedSlices."""
    table = tf.get_variable("table", [50, 2], tf.float64, tf.constant_initializer(np.arange(100.0).reshape(50, 2)))
    ids = tf.placeholder(tf.int32, [None, 3])

    def body(i, total):
        return i + 1, total + tf.reduce_sum(tf.gather(table, ids[i]) ** 2)

    _, total = tf.while_loop(lambda i, _: i < tf.shape(ids)[0], body, [0, tf.constant(0.0, tf.float64)])
    (grad,) = tf.gradients(total, table)
    assert isinstance(grad, tf.IndexedSlices) and grad.shape.as_list() == [50, 2]
    again = tf.convert_to_tensor(tf.gradients(tf.reduce_sum(tf.convert_to_tensor(grad) ** 3), table)[0])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for given in ([[1, 2, 2], [7, 1, 0]], np.zeros((0, 3))):
            want = np.zeros((50, 2))
            np.add.at(want, np.asarray(given, int).reshape(-1), 1)
            value = np.arange(100.0).reshape(50, 2)
            found, dense, second = sess.run([grad, tf.convert_to_tensor(grad), again], {ids: given})
            assert found.values.shape == (len(given) * 3, 2)
            np.testing.assert_allclose(dense, 2 * value * want)
            np.testing.assert_allclose(second, 3 * (2 * value * want) ** 2 * 2 * want)
