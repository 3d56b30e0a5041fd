"""What the way back keeps in every iteration gives the sum that it would carry, and costs less."""

from __future__ import annotations

from collections import Counter

import graphdock as tf
import numpy as np
import pytest


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


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


@pytest.mark.parametrize("turned", [(False, False), (False, True), (True, False), (True, True)])
def test_gradients_by_a_weight_are_one_product(turned):
    """Of every way to multiply by a weight, against the same steps unrolled."""
    x = tf.placeholder(tf.float64, [None, 2, 9])
    w = tf.placeholder(tf.float64, [9, 9])

    def step(h, row):
        a = tf.transpose(row + h) if turned[0] else row + h
        return tf.tanh(tf.matmul(a, w, *turned))

    def body(i, h):
        return i + 1, step(h, x[i])

    _, h = tf.while_loop(lambda i, _: i < tf.shape(x)[0], body, [0, tf.zeros([2, 9], tf.float64)])
    data = np.random.RandomState(0).randn(4, 2, 9), np.random.RandomState(1).randn(9, 9)
    unrolled = tf.zeros([2, 9], tf.float64)
    for i in range(4):
        unrolled = step(unrolled, tf.constant(data[0][i]))
    (grad,), (want,) = (tf.gradients(tf.reduce_sum(y**2), w) for y in (h, unrolled))
    feed = {x: data[0], w: data[1]}
    with tf.Session() as sess:
        a, b = sess.run([grad, want], feed)
        np.testing.assert_allclose(a, b, rtol=1e-10)
        assert (sess.run(grad, {**feed, x: data[0][:0]}) == 0).all()
        assert Counter(r.op for r in sess.explain(grad, feed).rows)["MatMul"] == 3, "one of them after the loop"


def test_a_small_weight_is_summed_as_it_was():
    x, w = tf.placeholder(tf.float64, [3, 50, 2]), tf.placeholder(tf.float64, [2, 2])
    _, h = tf.while_loop(
        lambda i, _: i < 3, lambda i, h: (i + 1, tf.matmul(x[i] + h, w)), [0, tf.zeros([50, 2], tf.float64)]
    )
    (grad,) = tf.gradients(h, w)
    with tf.Session() as sess:
        rows = sess.explain(grad, {x: np.zeros((3, 50, 2)), w: np.ones((2, 2))}).rows
    assert "HistoryStack" not in {r.op for r in rows}
