"""Gradients at edges, in bodies and beside integers, and what bodies run, as TensorFlow 1 answers."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest

F = np.float32


@pytest.mark.parametrize(
    ("dtype", "x", "y", "answer"),
    [
        (tf.float16, 6.0, 6.0, (46656, np.inf)),
        (tf.float32, 1e19, 2.0, (2e19, np.inf)),
        (tf.float32, 0.0, 2.0, (0, 0)),
        (tf.float32, np.inf, 0.0, (0, np.inf)),
        (tf.float32, 2.0, 3.0, (12, 8 * np.log(2))),
    ],
)
def test_powers(session, dtype, x, y, answer):
    a, b = tf.constant(x, dtype), tf.constant(y, dtype)
    np.testing.assert_allclose(session.run(tf.gradients(a**b, [a, b])), answer, rtol=1e-3)


@pytest.mark.parametrize("exponent", [0, 0.0, np.zeros(3, F)])
def test_of_ones_at_infinity(session, exponent):
    x = tf.constant([np.inf, 2.0, -np.inf])
    assert session.run(tf.gradients(x**exponent, x)[0]).tolist() == [0, 0, 0]


def test_zeros_in_the_place_of_none(session):
    x = tf.constant([-1.0, 2.0])
    first = tf.gradients(tf.nn.relu(x), x)
    assert session.run(tf.gradients(first, x)[0]).tolist() == [0, 0]
    assert session.run(tf.gradients(tf.sign(x), x)[0]).tolist() == [0, 0]


def test_integers_have_none(session):
    v, count = tf.Variable(3.0), tf.Variable(1)
    ids = tf.constant([0])
    assert tf.gradients(tf.gather([v], ids), [v, ids])[1] is None and tf.gradients(count * 2, [count]) == [None]
    step = tf.train.GradientDescentOptimizer(0.5).minimize(v * tf.cast(count, tf.float32))
    session.run(tf.global_variables_initializer())
    session.run(step)
    assert session.run([v, count]) == [2.5, 1]


def test_in_a_body_along_a_path_outside_of_it(session):
    v = tf.Variable(3.0)
    square = v * v
    chosen = tf.cond(tf.constant(True), lambda: tf.gradients(square * 2.0, v)[0], lambda: 0.0)
    looped = tf.while_loop(lambda i, _: i < 2, lambda i, a: (i + 1, a + tf.gradients(square, v)[0]), [0, 0.0])[1]

    def train():
        with tf.control_dependencies([tf.train.GradientDescentOptimizer(0.1).minimize(square)]):
            return tf.constant(1.0)

    trained = tf.cond(tf.constant(True), train, lambda: tf.constant(0.0))
    session.run(tf.global_variables_initializer())
    assert session.run([chosen, looped]) == [12, 12]
    assert session.run(trained) == 1 and session.run(v) == pytest.approx(2.4)


def test_without_back_prop_none_flows():
    x = tf.constant(2.0)
    assert tf.gradients(tf.while_loop(lambda a: a < 9, lambda a: a * x, [x], back_prop=False), x) == [None]


def test_what_nothing_of_a_body_needs_does_not_run(session):
    v, p = tf.Variable(0.0), tf.placeholder(tf.float32, [])

    def body():
        tf.assign(v, 5.0)
        with tf.control_dependencies([p]):
            tf.constant(3.0)
        return tf.constant(1.0)

    chosen = tf.cond(tf.constant(True), body, lambda: tf.constant(2.0))
    session.run(tf.global_variables_initializer())
    assert session.run(chosen) == 1 and session.run(v) == 0


def test_static_shapes():
    x, keep = tf.placeholder(tf.float32, [2, 3]), tf.placeholder(tf.float32, [])
    looped = tf.while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, a * x), [0, x])[1]
    assert tf.gradients(looped, x)[0].shape == [2, 3] == tf.nn.dropout(x, keep).shape
    rows = tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0]), tf.constant([4, 2]))
    chosen = tf.cond(tf.constant(True), lambda: rows, lambda: rows)
    assert isinstance(chosen, tf.IndexedSlices) and chosen.values.shape == [1, 2] and chosen.dense_shape.shape == [2]


@pytest.mark.parametrize("keep", [0.001, 0.01, 0.999])
def test_dropout_of_bfloat16_keeps_its_share(session, keep):
    count = 400_000
    kept = session.run(tf.nn.dropout(tf.ones([count], tf.bfloat16), keep)).astype(F)
    spread = np.sqrt(keep * (1 - keep) / count)
    assert abs(np.mean(kept != 0) - keep) < 5 * spread
    assert abs(np.mean(kept) - 1) < 5 * spread / keep + 2**-8
