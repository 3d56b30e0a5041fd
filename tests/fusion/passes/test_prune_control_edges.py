"""Waits that change nothing go; those that order effects stay."""

from __future__ import annotations

from collections import Counter

import graphdock as tf
import numpy as np
import pytest


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def ops(fetches, feed=None, **passes):
    """How often each op runs in a step."""
    with tf.Session(config=tf.SessionConfig(passes=passes)) as sess:
        return Counter(r.op for r in sess.explain(fetches, feed).rows)


def test_gated_gradients_are_merged_like_others():
    x, w = tf.placeholder(tf.float32, [2, 9]), tf.placeholder(tf.float32, [9, 9])
    loss = tf.reduce_sum(tf.matmul(tf.matmul(x, w), w))
    plain, gated = (tf.gradients(loss, [x, w], gate_gradients=gate) for gate in (False, True))
    assert ops(gated, gates=False) != ops(plain) and ops(gated) == ops(plain) and ops(plain)["MatMulSum"] == 1
    feed = {x: np.arange(18).reshape(2, 9), w: np.ones((9, 9))}
    with tf.Session() as sess:
        for a, b in zip(sess.run(plain, feed), sess.run(gated, feed), strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_wait_for_an_update_stays():
    v = tf.Variable(1.0)
    x = tf.placeholder(tf.float32, [])
    with tf.control_dependencies([v.assign_add(2.0)]):
        y = tf.identity(x) * 1.0
    with tf.control_dependencies([tf.group(tf.exp(x), v.assign_add(2.0))]):
        z = tf.identity(x)
    with tf.Session() as sess:
        sess.run(v.initializer)
        assert sess.run([y, z], {x: 3.0}) == [3.0, 3.0] and sess.run(v) == 5.0


def test_what_would_not_run_otherwise_is_waited_for():
    x = tf.placeholder(tf.float32, [2])
    i = tf.placeholder(tf.int32, [])
    with tf.control_dependencies([tf.gather(x, i)]):
        y = tf.identity(x)
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match="7"):
        sess.run(y, {x: [1, 2], i: 7})


def test_an_update_waits_for_what_only_computes():
    v = tf.Variable(1.0)
    x = tf.placeholder(tf.float32, [2])
    picked = tf.gather(x, tf.placeholder(tf.int32, [], name="i"))
    with tf.control_dependencies([picked]):
        update = v.assign_add(1.0)
    with tf.Session() as sess:
        sess.run(v.initializer)
        with pytest.raises(tf.errors.InvalidArgumentError):
            sess.run([picked, update.op], {x: [1, 2], "i:0": 7})
        assert sess.run(v) == 1.0
