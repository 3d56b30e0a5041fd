"""Gradients inside of bodies along paths through the graphs around them; expected values as TensorFlow 1 gives them."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.gradients.backprop import enclosing_graph


def test_a_path_that_begins_outside_of_a_loop(sess):
    p = tf.constant(5.0)
    squared = tf.square(p)

    def body(i, x):
        return i + 1, x + tf.gradients(tf.constant([1.0, 2.0, 3.0]) * squared, p)[0]

    assert sess.run(tf.while_loop(lambda i, x: i < 10, body, [0, tf.constant(0.0)])[1]) == 600.0


def test_a_path_that_begins_outside_of_a_branch(sess):
    p = tf.constant(5.0)
    y = tf.square(p)
    found = tf.cond(tf.constant(True), lambda: tf.gradients(y * 2.0, p)[0], lambda: tf.constant(0.0))
    assert sess.run(found) == 20.0


def test_all_paths_are_added_up(sess):
    """Directly captured, through an operation outside, and through one in the middle of two bodies."""
    p = tf.placeholder(tf.float32, [])
    outside = tf.sin(p)

    def outer():
        middle = tf.exp(outside) * p
        return tf.cond(p > 0, lambda: tf.gradients(middle * outside * p, p)[0], lambda: tf.constant(-1.0))

    found = tf.cond(p < 9, outer, lambda: tf.constant(-2.0))
    x = 0.7
    s, e = np.sin(x), np.exp(np.sin(x))
    by_hand = np.cos(x) * e * x * s * x + e * s * x + e * x * np.cos(x) * x + e * x * s
    assert sess.run(found, {p: x}) == pytest.approx(by_hand, rel=1e-5)
    assert sess.run(found, {p: -1.0}) == -1.0 and sess.run(found, {p: 10.0}) == -2.0


def test_the_ys_may_be_outside_too(sess, graph):
    p = tf.constant(3.0)
    y = tf.square(p)
    before = len(graph.get_operations())
    inside = []

    def branch():
        inside.append(tf.gradients(y, p)[0])
        return inside[0]

    found = tf.cond(tf.constant(True), branch, lambda: tf.constant(0.0))
    assert sess.run(found) == 6.0
    assert inside[0].graph is not graph
    assert not any("_grad" in op.name for op in graph.get_operations()[before:])


def test_a_condition_and_a_loop_on_the_way_outside(sess):
    p = tf.placeholder(tf.float32, [])
    chosen = tf.cond(p > 0, lambda: p * p, lambda: p)
    _, looped = tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * p), [0, chosen])
    found = tf.cond(tf.constant(True), lambda: tf.gradients(looped * 2.0, p)[0], lambda: tf.constant(0.0))
    assert sess.run(found, {p: 2.0}) == pytest.approx(2 * 5 * 2.0**4)
    assert sess.run(found, {p: -2.0}) == pytest.approx(2 * 4 * (-2.0) ** 3)


def test_what_is_stopped_outside_is_a_constant(sess):
    p = tf.constant(2.0)
    a, b = tf.square(p), p * 3.0
    found = tf.cond(tf.constant(True), lambda: tf.gradients(a * b, p, stop_gradients=[a])[0], lambda: tf.constant(0.0))
    assert sess.run(found) == 12.0


def test_nothing_between_them_is_none():
    p, q, found = tf.constant(2.0), tf.constant(3.0), []

    def branch():
        found.extend(tf.gradients(q * 2.0, [p, q]))
        return tf.constant(0.0)

    tf.cond(tf.constant(True), branch, lambda: tf.constant(0.0))
    assert found[0] is None and found[1] is not None


def test_a_missing_gradient_outside_is_told_and_adds_nothing(graph):
    p = tf.placeholder(tf.float32, [])
    tf.NotDifferentiable("Sin")
    broken = tf.py_func(lambda x: x, [p], tf.float32)
    found = []

    def branch():
        found.append(tf.gradients([broken * 2.0, tf.sin(p)], p)[0])
        return tf.constant(0.0)

    tf.cond(tf.constant(True), branch, lambda: tf.constant(0.0))
    assert found == [None]


def test_where_gradients_are_built(graph):
    x = tf.placeholder(tf.float32, [])
    assert enclosing_graph([x]) is graph
    seen = []
    tf.cond(tf.constant(True), lambda: [seen.append(enclosing_graph([x])), x][1], lambda: x)
    assert seen[0].name == "cond/then"
    with tf.Graph().as_default():
        other = tf.placeholder(tf.float32, [])
    with pytest.raises(ValueError, match="different graphs"):
        enclosing_graph([x, other])


@pytest.mark.parametrize("inside", ["the loss", "a product", "nothing"])
def test_minimize_in_a_branch(sess, inside):
    v = tf.Variable(3.0)
    square = tf.square(v)

    def branch():
        loss = {"the loss": lambda: tf.square(v), "a product": lambda: square * 2.0, "nothing": lambda: square}[
            inside
        ]()
        with tf.control_dependencies([tf.train.GradientDescentOptimizer(0.1).minimize(loss)]):
            return tf.constant(1.0)

    done = tf.cond(tf.placeholder_with_default(True, []), branch, lambda: tf.constant(0.0))
    sess.run(tf.global_variables_initializer())
    assert sess.run(done) == 1.0
    assert sess.run(v) == pytest.approx(1.8 if inside == "a product" else 2.4)


@pytest.mark.parametrize("make", [tf.train.AdamOptimizer, tf.train.AdagradOptimizer, tf.train.RMSPropOptimizer])
def test_minimize_in_a_loop_is_as_many_steps(sess, make):
    def trained(loop):
        v = tf.Variable([3.0, -1.0])
        optimizer = make(0.1)
        if loop:

            def body(i):
                with tf.control_dependencies([optimizer.minimize(tf.reduce_sum(tf.square(v)))]):
                    return i + 1

            step = tf.while_loop(lambda i: i < 3, body, [0])
        else:
            step = optimizer.minimize(tf.reduce_sum(tf.square(v)))
        sess.run(tf.global_variables_initializer())
        for _ in range(1 if loop else 3):
            sess.run(step)
        return sess.run(v)

    np.testing.assert_allclose(trained(True), trained(False), rtol=1e-6)
