"""raw_rnn against dynamic_rnn, which is the same loop with its inputs and lengths given."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import InvalidArgumentError

INPUTS = np.random.RandomState(0).randn(3, 5, 4)
LENGTHS = [5, 0, 2]


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def test_the_loop_of_dynamic_rnn():
    """Outputs, states, counts of one's own and gradients; the variables have the same names."""
    x, lengths = tf.placeholder(tf.float64, [None, None, 4]), tf.constant(LENGTHS)
    cell = tf.nn.rnn_cell.LSTMCell(3)
    steps = tf.transpose(x, [1, 0, 2])

    def loop_fn(time, output, state, count):
        if output is None:
            state, count = cell.zero_state(tf.shape(x)[0], tf.float64), tf.zeros([3], tf.int32)
        else:
            count = count + 1
        finished = time >= lengths
        fed = tf.cond(tf.reduce_all(finished), lambda: tf.zeros_like(steps[0]), lambda: tf.gather(steps, time))
        return finished, fed, state, output, count

    emitted, state, count = tf.nn.raw_rnn(cell, loop_fn)
    with tf.variable_scope("rnn", reuse=True):
        want, last = tf.nn.dynamic_rnn(cell, x, lengths, dtype=tf.float64, scope=tf.get_variable_scope())
    got = tf.transpose(emitted.stack(), [1, 0, 2])
    weights = tf.trainable_variables()
    assert [v.op.name for v in weights] == ["rnn/lstm_cell/kernel", "rnn/lstm_cell/bias"]
    both = [
        tf.gradients(tf.reduce_sum(y**2) + tf.reduce_sum(s.c), [x, *weights]) for y, s in ((got, state), (want, last))
    ]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        found, n = sess.run([[got, state, *both[0]], count], {x: INPUTS})
        expected = sess.run([want, last, *both[1]], {x: INPUTS})
        size, third, two = sess.run([emitted.size(), emitted.read(2), emitted.gather([0, 4])], {x: INPUTS})
        flat = sess.run(emitted.concat(), {x: INPUTS})
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-12)
    assert size == 5 and n.tolist() == [5] * 3 and flat.shape == (15, 3) and emitted.dtype == tf.float64
    np.testing.assert_array_equal(third, found[0][:, 2])
    np.testing.assert_array_equal(two, found[0][:, [0, 4]].swapaxes(0, 1))


def test_what_is_emitted_is_a_structure_of_ones_own():
    """The cell reads its own output; what has finished once stays so; nothing is emitted where all have finished at first."""
    cell = tf.nn.rnn_cell.BasicRNNCell(2)
    steps = tf.placeholder(tf.int32, [])

    def loop_fn(time, output, state, _):
        finished = tf.stack([time >= steps, tf.logical_or(tf.equal(time, 2), time >= steps), time >= steps])
        if output is None:
            return finished, tf.ones([3, 2]), tf.zeros([3, 2]), {"h": tf.zeros([2]), "n": tf.constant(0)}, None
        return finished, output, state, {"h": output, "n": tf.fill([3], time)}, None

    emitted, last, own = tf.nn.raw_rnn(cell, loop_fn)
    assert own is None and sorted(emitted) == ["h", "n"]
    fetched = [emitted["h"].stack(), emitted["n"].stack(), last]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        h, n, end = sess.run(fetched, {steps: 4})
        assert [a.shape for a in sess.run(fetched[:2], {steps: 0})] == [(0, 3, 2), (0, 3)]
        kernel, bias = sess.run(tf.trainable_variables())
    np.testing.assert_array_equal(n, [[1, 1, 1], [2, 2, 2], [3, 0, 3], [4, 0, 4]])
    np.testing.assert_array_equal(end, [h[3, 0], h[1, 1], h[3, 2]])
    assert (h[2:, 1] == 0).all()
    np.testing.assert_allclose(h[1], np.tanh(np.hstack([h[0], h[0]]) @ kernel + bias), rtol=1e-6)


def test_what_is_refused():
    cell = tf.nn.rnn_cell.BasicRNNCell(2)
    with pytest.raises(TypeError, match="loop_fn must be callable"):
        tf.nn.raw_rnn(cell, 3)
    with pytest.raises(TypeError, match="not an RNNCell"):
        tf.nn.raw_rnn(3, len)
    with pytest.raises(InvalidArgumentError, match="inputs and a state"):
        tf.nn.raw_rnn(cell, lambda *_: ([True], tf.ones([1, 2]), None, None, None))
    with pytest.raises(InvalidArgumentError, match="next_input=None"):
        tf.nn.raw_rnn(cell, lambda *_: ([True], None, tf.ones([1, 2]), None, None))

    def changing(time, output, state, own):
        state = tf.zeros([1, 2]) if output is None else (state, state)
        return [False], tf.ones([1, 2]), state, output, None

    with pytest.raises(InvalidArgumentError, match="a state that nests differently"):
        tf.nn.raw_rnn(cell, changing)
