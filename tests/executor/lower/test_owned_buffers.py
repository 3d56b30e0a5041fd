"""Values in histories lie in buffers of their own: written there at once where a kernel can, copied only where it must be."""

from __future__ import annotations

import re

import graphdock as tf
import numpy as np
import pytest


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def source(fetches, feed):
    with tf.Session() as sess:
        sess.run([v.initializer for v in tf.global_variables()])
        return sess.explain(fetches, feed).source


def forward(text):
    """The lines of the first loop's body."""
    after = text[text.index("while running:") :]
    return re.match(r"while running:\n((?: {8}.*\n)+)", after).group(1)


def test_a_kept_result_is_written_into_a_new_buffer_and_copied_nowhere():
    x = tf.placeholder(tf.float64, [3])
    _, y = tf.while_loop(lambda i, _: i < 5, lambda i, y: (i + 1, tf.tanh(y * x)), [0, x])
    body = forward(source(tf.gradients(y, x), {x: np.ones(3)}))
    assert body.count(" = z") == 1 and body.count(".append(") == 2, "the result; it is the next value too"
    assert "own_copy(" not in body and not re.search(r"\bd\d+\(", body), body


def test_a_loop_variable_that_is_not_kept_has_its_pair_of_buffers():
    x = tf.placeholder(tf.float64, [3])
    _, y, z = tf.while_loop(lambda i, *_: i < 5, lambda i, y, z: (i + 1, y + 1.0, z * tf.sin(z)), [0, x, x])
    body = forward(source([y, *tf.gradients(z, x)], {x: np.ones(3)}))
    assert re.search(r", (l\d+), (m\d+), .* = .*, \2, \1", body) or re.search(r"(l\d+), (m\d+) = \2, \1", body), body


@pytest.mark.parametrize("turned", ["reshape", "part"])
def test_a_view_is_kept_as_it_is_unless_it_would_keep_more(turned):
    x = tf.placeholder(tf.float64, [4])

    def body(i, y):
        z = tf.exp(y)
        view = tf.reshape(z, [2, 2]) if turned == "reshape" else z[:1]
        return i + 1, y * 0.5 + tf.reduce_sum(view * view)

    _, y = tf.while_loop(lambda i, _: i < 3, body, [0, x])
    text = forward(source(tf.gradients(y, x), {x: np.ones(4)}))
    kept = re.findall(r"append\((.*)\)\n", text)
    assert any("own_copy(" in k for k in kept) is (turned == "part"), text


def test_a_kept_read_of_a_variable_that_is_written_is_a_copy():
    v, x = tf.Variable(np.ones(3)), tf.placeholder(tf.float64, [3])

    def body(i, y):
        y = y * v.read_value()
        with tf.control_dependencies([y, v.assign_add(tf.ones([3], tf.float64))]):
            return i + 1, tf.identity(y)

    _, y = tf.while_loop(lambda i, _: i < 3, body, [0, x])
    (g,) = tf.gradients(y, x)
    with tf.Session() as sess:
        sess.run(v.initializer)
        assert sess.run(g, {x: np.ones(3)}).tolist() == [6.0] * 3


def test_numbers_that_steer_are_kept_as_they_are():
    x = tf.placeholder(tf.float64, [])

    def body(i, y):
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: tf.sin(y), lambda: y * y)

    _, y = tf.while_loop(lambda i, _: i < 4, body, [0, x])
    text = source(tf.gradients(y, x), {x: 1.0})
    assert re.search(r"append\(s\d+\)", text), "the predicate, a Python bool"
    assert not re.search(r"if .*\.item\(\)", text)
