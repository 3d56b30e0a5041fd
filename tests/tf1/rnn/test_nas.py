"""NASCell computes its tree, by NumPy, and is a cell as others are."""

import graphdock as tf
import numpy as np
import pytest


def numpys(x, c, h, kernel, recurrent, bias):
    sigmoid = lambda v: 1 / (1 + np.exp(-v))  # noqa: E731
    i, m = np.split(x @ kernel, 8, 1), np.split(h @ recurrent + bias, 8, 1)
    one = np.tanh(sigmoid(i[0] + m[0]) * np.maximum(i[1] + m[1], 0))
    two = np.tanh(sigmoid(i[2] + m[2]) + np.maximum(i[3] * m[3], 0))
    three = np.tanh(np.tanh(i[4] + m[4]) * sigmoid(i[5] + m[5]))
    four = sigmoid(np.tanh(i[6] + m[6]) + sigmoid(i[7] + m[7]))
    c = np.tanh(one + c) * two
    return c, np.tanh(c * np.tanh(three + four))


@pytest.mark.parametrize("proj", [None, 2])
def test_two_steps(proj):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 4, 3)).astype(np.float32)
    cell = tf.contrib.rnn.NASCell(5, proj, use_bias=True)
    outputs, state = tf.nn.static_rnn(cell, list(x), dtype=tf.float32)
    names = [v.op.name for v in tf.global_variables()]
    assert names[:3] == [f"rnn/nas_cell/{name}" for name in ("recurrent_kernel", "kernel", "bias")]
    with tf.Session() as sess:
        for v in tf.global_variables():
            v.load(rng.normal(size=v.shape.as_list()).astype(np.float32), sess)
        recurrent, kernel, bias, *projection = sess.run(tf.global_variables())
        got, last = sess.run([outputs, state])
    c, h = np.zeros((4, 5)), np.zeros((4, proj or 5))
    for step in range(2):
        c, h = numpys(x[step], c, h, kernel, recurrent, bias)
        h = h @ projection[0] if projection else h
        np.testing.assert_allclose(got[step], h, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(last.c, c, rtol=1e-4, atol=1e-5)
