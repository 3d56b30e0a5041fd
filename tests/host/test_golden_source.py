"""The generated source of five small programs, word for word. Run with UPDATE_GOLDEN=1 to accept a change."""

from __future__ import annotations

import os
from pathlib import Path

import graphdock as tf
import pytest

GOLDEN = Path(__file__).parents[1] / "golden"


def softmax_regression():
    x = tf.placeholder(tf.float32, [10, 784])
    y = tf.placeholder(tf.float32, [10, 10])
    w = tf.Variable(tf.zeros([784, 10]))
    b = tf.Variable(tf.zeros([10]))
    loss = tf.nn.softmax_cross_entropy_with_logits(logits=tf.matmul(x, w) + b, labels=y)
    return tf.train.AdagradOptimizer(0.01).minimize(loss)


def conditional():
    x = tf.placeholder(tf.float32, [])
    y = tf.placeholder(tf.float32, [])
    return tf.cond(x < y, lambda: tf.add(x, 3.0), lambda: tf.square(y))


def loop():
    x = tf.placeholder(tf.float32, [4])
    return tf.while_loop(lambda i, v, u: i < 10, lambda i, v, u: (i + 1, v * 0.5 + x, v), [0, x, x])


def views():
    x = tf.placeholder(tf.float32, [4, 6])
    h = tf.sqrt(x)
    return [tf.reshape(h[1:3], [2, 2, 3]) + 1.0, tf.transpose(h)]


def update_in_order():
    w = tf.Variable(tf.zeros([3]))
    before = w.read_value()
    with tf.control_dependencies([before]):
        after = tf.assign_add(w, tf.ones([3]))
    return [before * 2.0, after]


@pytest.mark.parametrize("build", [softmax_regression, conditional, loop, views, update_in_order])
def test_source(build):
    with tf.Graph().as_default():
        fetches = build()
        with tf.Session(config=tf.SessionConfig(debug=False)) as sess:
            source = sess.explain(fetches).source
    path = GOLDEN / f"{build.__name__}.py.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(source)
    assert source == path.read_text()
