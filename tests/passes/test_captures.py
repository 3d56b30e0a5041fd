"""What bodies capture: constants are copied in, and what no body reads is not computed for it."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def bodies(sess, fetches, feed=None):
    """The plan's nested graphs by the op that holds them."""
    plan = sess.explain(fetches, feed).plan
    return [(node, body) for g in plan.graph.all_graphs() for node in g.nodes for body in node.bodies]


def test_constants_move_into_the_bodies_that_use_them():
    p, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float32, [])
    two, three = tf.constant(2.0), tf.constant(3.0)
    y = tf.cond(p, lambda: x * two, lambda: x * three)
    with tf.Session() as sess:
        found = bodies(sess, y)
        assert all(len(body.inputs) == 1 for _, body in found), "x alone is captured"
        assert sess.run([y], {p: True, x: 5.0}) == [10.0] and sess.run(y, {p: False, x: 5.0}) == 15.0
    with tf.Session(config=tf.SessionConfig(passes={"captures": False})) as sess:
        assert all(len(body.inputs) == 3 for _, body in bodies(sess, y))
        assert sess.run(y, {p: True, x: 5.0}) == 10.0


def test_a_capture_that_folding_made_unread_is_dropped():
    n = tf.placeholder(tf.int32, [])
    unread = tf.exp(tf.placeholder_with_default(np.float32(1), []))
    (_, total) = tf.while_loop(
        lambda i, t: i < n, lambda i, t: (i + 1, t + tf.cast(tf.shape(tf.fill([3], unread))[0], tf.float32)), [0, 0.0]
    )
    with tf.Session() as sess:
        assert sess.run(total, {n: 4}) == 12.0


def test_a_constant_in_nested_bodies_reaches_the_innermost():
    x, c = tf.placeholder(tf.float32, []), tf.constant(4.0)
    y = tf.cond(x > 0.0, lambda: tf.cond(x > 1.0, lambda: x * c, lambda: x + c), lambda: x)
    with tf.Session() as sess:
        assert [sess.run(y, {x: v}) for v in (2.0, 0.5, -1.0)] == [8.0, 4.5, -1.0]
