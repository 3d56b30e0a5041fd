"""Loops within loops that keep histories, offered as one: their programs, and that whoever evaluates them gets what they give."""

from __future__ import annotations

import graphdock as tf
import numpy as np


def test_an_inner_history_is_a_buffer_that_the_outer_loop_keeps_and_whose_elements_an_inner_loop_reads(loops):
    made = loops()
    n, x = tf.placeholder(tf.int32, [], name="n"), tf.placeholder(tf.float32, [3], name="x")

    def outer(i, v, total):
        _, v, total = tf.while_loop(lambda j, *_: j < i, lambda j, t, s: (j + 1, t * t, s * t + t), [0, v, total])
        return i + 1, v * 1.5, total

    y = tf.while_loop(lambda i, *_: i < n, outer, [0, x, x])[2]
    gradient = tf.gradients(y, x)[0]
    with made.session() as sess:
        for count in (0, 1, 4):
            got = sess.run([y, gradient], {n: count, x: [1.0, 0.5, -1.0]})
            value, slope = np.array([1.0, 0.5, -1.0]), np.ones(3)
            total, rise = value, slope
            for i in range(count):
                for _ in range(i):
                    total, rise = total * value + value, rise * value + total * slope + slope
                    value, slope = value * value, slope * 2 * value
                value, slope = value * 1.5, slope * 1.5
            np.testing.assert_allclose(got[0], total, 1e-5)
            np.testing.assert_allclose(got[1], rise, 1e-5)
        assert sess.explain([y, gradient], {n: 1, x: np.zeros(3)}).kernels()["lab.reference"] == 2
    forward, backward = made.compiler.loops_built[:2]
    number = max(n for n, _ in forward.kept)
    assert forward.buffers[number].depth == 1 and forward.buffers[number].shape == (3,)
    (inner,) = [s for s in forward.body if type(s.program).__name__ == "LoopProgram"]
    assert number in inner.outputs[len(inner.program.results) :]
    assert "history of float32[3]" in str(forward)
    scan = backward.scans[0]
    assert {backward.buffers[s].depth for s in backward.scans} == {1}
    (inner,) = [s for s in backward.body if type(s.program).__name__ == "LoopProgram"]
    assert scan in inner.inputs and "history of float32[3], of a history" in str(backward)


def test_a_loop_over_the_rows_of_a_tensor_within_a_loop_has_steps_that_say_so(loops):
    made = loops()
    x, rows = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.float32, [3, 2])

    def outer(i, v):
        return i + 1, tf.reduce_sum(tf.scan(lambda h, row: h + row * row, rows, v), 0)

    y = tf.while_loop(lambda i, _: i < 2, outer, [0, x])[1]
    with made.session() as sess:
        fed = {x: [1.0, 2.0], rows: np.arange(6.0).reshape(3, 2)}
        value = np.array([1.0, 2.0])
        for _ in range(2):
            value = (value + np.cumsum(fed[rows] ** 2, 0)).sum(0)
        np.testing.assert_allclose(sess.run(y, fed), value)
    (program,) = made.compiler.loops_built
    steps = [s.program for s in program.body if type(s.program).__name__ == "LoopRows"]
    assert [(s.count, s.backwards) for s in steps] == [(3, True), (3, False)]
    assert "3 rows, the last one first" in str(program)


def product_in_loops(n, x, w, depth):
    """So many loops, one in the other, of products by one matrix."""

    def body(i, v):
        return i + 1, tf.tanh(tf.matmul(v, w)) if depth == 1 else product_in_loops(n - i, v, w, depth - 1)

    return tf.while_loop(lambda i, _: i < n, body, [0, x])[1]


def test_factors_that_inner_loops_keep_leave_an_outer_one_end_to_end(loops):
    """The gradient by a matrix is one product of all of them, however many there are."""
    made = loops()
    n, x, w = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [2, 4]), tf.placeholder(tf.float32, [4, 4])
    gradient = tf.gradients(tf.reduce_sum(product_in_loops(n, x, w, 2)), w)[0]
    fed = {x: np.linspace(-1, 1, 8).reshape(2, 4), w: np.linspace(-0.5, 0.7, 16).reshape(4, 4)}
    with made.session() as sess:
        assert sess.explain(gradient, {**fed, n: 2}).kernels()["lab.reference"] == 2
        got = [sess.run(gradient, {**fed, n: count}) for count in (3, 0, 2)]
    with tf.Session(config=tf.SessionConfig(backends=["cpu"])) as sess:
        for g, count in zip(got, (3, 0, 2), strict=True):
            np.testing.assert_allclose(g, sess.run(gradient, {**fed, n: count}), 1e-5, 1e-6)
    backward = made.compiler.loops_built[1]
    assert [shape for _, shape in backward.kept] == [(None, 4), (None, 4)]
    assert "as [None, 4]" in str(backward)


def test_a_loop_whose_inner_one_would_keep_tensors_of_unknown_rows_says_so(loops):
    made = loops()
    n, x, w = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [2, 4]), tf.placeholder(tf.float32, [4, 4])
    gradient = tf.gradients(tf.reduce_sum(product_in_loops(n, x, w, 3)), w)[0]
    with made.session() as sess:
        fed = {x: np.ones((2, 4)), w: np.eye(4), n: 2}
        text = str(sess.explain(gradient, fed))
        assert "of a number of rows that is not known" in text or "rows of a number or shape that is not known" in text
        assert text.count("Loop, whole") == 2  # the forward one, and the one within of the gradient
        assert sess.run(gradient, fed).shape == (4, 4)
