"""TensorArrays in states: what a cell leaves in each step is the same in every kind of loop, and in a list of steps."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest

seq2seq = tf.contrib.seq2seq
MEMORY = np.random.RandomState(0).randn(2, 6, 5)
INPUTS = np.random.RandomState(1).randn(2, 4, 3)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def attending(**more):
    mechanisms = [seq2seq.LuongAttention(5, tf.constant(MEMORY), dtype=tf.float64) for _ in range(2)]
    return seq2seq.AttentionWrapper(tf.nn.rnn_cell.GRUCell(5), mechanisms, alignment_history=True, **more)


def test_every_loop_keeps_the_same_history():
    """Per mechanism [time, batch, rows]: of dynamic_rnn, static_rnn, raw_rnn and dynamic_decode, with their gradients."""
    x, cell = tf.constant(INPUTS), attending()
    steps, zeros = tf.unstack(x, axis=1), cell.zero_state(2, tf.float64)

    def loop_fn(time, output, state, _):
        return (
            tf.fill([2], time >= 4),
            tf.gather(x, tf.minimum(time, 3), axis=1),
            zeros if output is None else state,
            output,
            None,
        )

    with tf.variable_scope("rnn", reuse=tf.AUTO_REUSE) as scope:
        ends = [
            tf.nn.dynamic_rnn(cell, x, initial_state=zeros, scope=scope)[1],
            tf.nn.dynamic_rnn(cell, x, sequence_length=[4, 4], dtype=tf.float64, scope=scope)[1],
            tf.nn.static_rnn(cell, steps, dtype=tf.float64, sequence_length=[4, 4], scope=scope)[1],
            tf.nn.raw_rnn(cell, loop_fn, scope=scope)[1],
            seq2seq.dynamic_decode(
                seq2seq.BasicDecoder(cell, seq2seq.TrainingHelper(x, [4, 4]), zeros), impute_finished=True, scope=scope
            )[1],
        ]
    stacks = [[history.stack() for history in end.alignment_history] for end in ends]
    slopes = [tf.gradients([tf.reduce_sum(s**2) for s in stack], x)[0] for stack in stacks]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        found, dx, last = sess.run([stacks, slopes, ends[0].alignments])
    assert found[0][0].shape == (4, 2, 6)
    np.testing.assert_allclose(np.sum(found[0][1], -1), 1)
    np.testing.assert_array_equal(found[0][1][-1], last[1])
    for stack, slope in zip(found[1:], dx[1:], strict=True):
        np.testing.assert_allclose(stack, found[0], rtol=1e-12)
        np.testing.assert_allclose(slope, dx[0], rtol=1e-9, atol=1e-14)
    assert np.abs(dx[0][:, 0]).max() > 0


def test_a_loop_goes_on_where_another_ended():
    x, cell = tf.constant(INPUTS), tf.nn.rnn_cell.DropoutWrapper(attending(), state_keep_prob=1.0)
    with tf.variable_scope("rnn", reuse=tf.AUTO_REUSE) as scope:
        _, whole = tf.nn.dynamic_rnn(cell, x, dtype=tf.float64, scope=scope)
        _, half = tf.nn.dynamic_rnn(cell, x[:, :1], dtype=tf.float64, scope=scope)
        _, more = tf.nn.dynamic_rnn(cell, x[:, 1:], initial_state=half, scope=scope)
    one, both = (state.alignment_history[0] for state in (whole, more))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        got, want, none = sess.run(
            [both.stack(), one.stack(), cell.zero_state(2, tf.float64).alignment_history[0].stack()]
        )
    np.testing.assert_allclose(got, want, rtol=1e-12)
    assert none.shape == (0, 2, 6)


def test_dropped_states_leave_arrays_alone():
    cell = tf.nn.rnn_cell.DropoutWrapper(attending(), state_keep_prob=0.5, seed=1)
    _, state = tf.nn.dynamic_rnn(cell, tf.constant(INPUTS), dtype=tf.float64)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        np.testing.assert_allclose(sess.run(state.alignment_history[0].stack()).sum(-1), 1)


def test_a_cell_reads_what_earlier_steps_left():
    """Each step adds up the states of all steps before it; beside NumPy's cumulative sums."""

    class Reading(tf.nn.rnn_cell.RNNCell):
        state_size, output_size = (6, 6), 3

        def call(self, inputs, state):
            count, rows = state
            rows = rows.write(rows.size(), inputs)
            return tf.reduce_sum(rows.stack(), 0), (count + 1, rows)

    rows = tf.TensorArray(tf.float64, 0, dynamic_size=True, clear_after_read=False, element_shape=[2, 3])
    outputs, _ = tf.nn.dynamic_rnn(Reading(), tf.constant(INPUTS), initial_state=(tf.zeros([2, 6]), rows))
    with tf.Session() as sess:
        np.testing.assert_allclose(sess.run(outputs), np.cumsum(INPUTS, 1), rtol=1e-12)
