"""Invariants of loops are computed once, before the loop: the same numbers, and nothing that could fail."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def both(fetches, feed):
    """Ops of the plan's own level, and values, with the pass and without it."""
    found = []
    for on in (True, False):
        with tf.Session(config=tf.SessionConfig(passes={"invariants": on})) as sess:
            plan = sess.explain(fetches, feed).plan
            found.append(([node.op for node in plan.graph.nodes], sess.run(fetches, feed)))
    return found


def test_of_nested_loops_all_leave_that_can_with_their_gradients():
    x = tf.placeholder(tf.float32, [2, 2])

    def inner(a):
        turned = tf.matmul(x, tf.transpose(x))
        return tf.while_loop(
            lambda j, b: j < 2, lambda j, b: (j + 1, tf.tanh(b * tf.exp(x) + tf.matmul(turned, tf.sin(a)))), [0, a]
        )[1]

    _, y = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, inner(a)), [0, x])
    (ops, got), (plain, want) = both([y, *tf.gradients(y, x)], {x: [[0.1, -0.2], [0.3, 0.4]]})
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)
    assert {"Exp", "MatMul"} <= set(ops) and not {"Exp", "MatMul", "Sin"} & set(plain) and "Sin" not in ops


@pytest.mark.parametrize("count", [0, 2])
def test_a_loop_of_no_iteration_fails_at_nothing(count):
    x, n = tf.placeholder(tf.float32, [2, 2]), tf.placeholder(tf.int32, [])
    k = tf.placeholder(tf.int32, [])

    def body(i, a):
        return i + 1, a + tf.cast(7 // k, tf.float32) * tf.cholesky(x) + tf.exp(x)

    _, y = tf.while_loop(lambda i, a, n=n: i < n, body, [0, x])
    bad = {x: -np.eye(2), n: 0, k: 0}
    good = {x: np.eye(2), n: count, k: 2}
    for feed in (bad, good):
        (ops, got), (_, want) = both(y, feed)
        np.testing.assert_array_equal(got, want)
        assert "Exp" in ops and not {"Cholesky", "FloorDiv", "Cast"} & set(ops)


def test_draws_and_reads_of_what_the_loop_writes_stay():
    v = tf.Variable(1.0, name="v")
    x = tf.placeholder(tf.float32, [])

    def body(i, a):
        with tf.control_dependencies([tf.assign_add(v, x)]):
            return i + 1, a + tf.exp(v.read_value()) + tf.random_uniform([], seed=1) * tf.tanh(x)

    _, y = tf.while_loop(lambda i, a: i < 3, body, [0, x])
    values = []
    for on in (True, False):
        with tf.Session(config=tf.SessionConfig(passes={"invariants": on})) as sess:
            sess.run(tf.global_variables_initializer())
            values.append(sess.run([y, v], {x: 0.5}))
    assert values[0] == values[1]


def test_what_leaves_several_loops_under_one_name_is_told_apart():
    """An absolute scope, as cells open theirs, names nodes of several bodies alike."""
    x = tf.placeholder(tf.float32, [2])

    def body(i, a):
        with tf.name_scope("cell/"):
            return i + 1, a * tf.exp(x, name="rate")

    loops = [tf.while_loop(lambda i, a, last=n: i < last, body, [0, x])[1] for n in (2, 3)]
    with tf.Session(config=tf.SessionConfig(debug=True)) as sess:
        first, second = sess.run(loops, {x: [0.5, 1.0]})
    rate = np.exp(np.float32([0.5, 1.0]))
    np.testing.assert_allclose(first, [0.5, 1.0] * rate**2, rtol=1e-6)
    np.testing.assert_allclose(second, [0.5, 1.0] * rate**3, rtol=1e-6)
