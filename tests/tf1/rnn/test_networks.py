"""Networks over time: dynamic and static ones agree, past the end of a sequence nothing changes, sizes may be unknown."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import InvalidArgumentError, ShapeError

cells = tf.nn.rnn_cell
X = np.random.RandomState(0).randn(3, 5, 4)
LENGTHS = [2, 5, 0]


def flatten(values):
    return [v for item in values for v in flatten(item)] if isinstance(values, (list, tuple)) else [values]


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def drawn(sess):
    for i, v in enumerate(tf.global_variables()):
        sess.run(tf.assign(v, np.random.RandomState(i).randn(*v.shape.as_list()) * 0.5))


@pytest.mark.parametrize("lengths", [None, LENGTHS])
def test_dynamic_is_static_in_values_states_and_gradients(lengths):
    x = tf.placeholder(tf.float64, [3, 5, 4])
    cell = cells.MultiRNNCell([cells.LSTMCell(4, use_peepholes=True), cells.GRUCell(3)])
    outputs, state = tf.nn.dynamic_rnn(cell, x, lengths, dtype=tf.float64)
    with tf.variable_scope(tf.get_variable_scope(), reuse=True):
        steps, last = tf.nn.static_rnn(cell, tf.unstack(x, 5, 1), dtype=tf.float64, sequence_length=lengths)
    both = [(outputs, state), (tf.stack(steps, 1), last)]
    weights = [x, *tf.trainable_variables()]
    grads = [tf.gradients(tf.reduce_sum(tf.sin(y)) + tf.reduce_sum(s[0].c * s[1][:, :1]), weights) for y, s in both]
    with tf.Session() as sess:
        drawn(sess)
        first, second = sess.run(list(zip(both, grads, strict=True)), {x: X})
    for a, b in zip(flatten(first), flatten(second), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    if lengths:
        outputs = first[0][0]
        assert all((outputs[row, n:] == 0).all() and (outputs[row, :n] != 0).all() for row, n in enumerate(lengths))


@pytest.mark.parametrize("time_major", [False, True])
def test_sizes_that_only_the_step_knows(time_major):
    x = tf.placeholder(tf.float32, [None, None, 4])
    n = tf.placeholder(tf.int64, [None])
    outputs, state = tf.nn.dynamic_rnn(cells.BasicLSTMCell(2), x, n, dtype=tf.float32, time_major=time_major)
    assert (outputs.shape.as_list(), state.h.shape.as_list()) == ([None, None, 2], [None, 2])
    (grad,) = tf.gradients(tf.reduce_sum(outputs), x)
    with tf.Session() as sess:
        drawn(sess)
        for batch, time in ((3, 5), (1, 2), (2, 0)):
            data = np.swapaxes(X, 0, 1) if time_major else X
            data = data[:time, :batch] if time_major else data[:batch, :time]
            out, h, dx = sess.run([outputs, state.h, grad], {x: data, n: [time] * batch})
            assert out.shape[:2] == data.shape[:2] and dx.shape == data.shape
            last = np.zeros((batch, 2)) if not time else out[-1] if time_major else out[:, -1]
            np.testing.assert_array_equal(h, last)


def test_nested_inputs_states_and_outputs():
    class Cell(cells.RNNCell):
        state_size = {"sum": 4, "shape": tf.TensorShape([2, 2])}
        output_size = (4, [1])

        def __call__(self, inputs, state, scope=None):
            total = state["sum"] + inputs["a"] * inputs["b"][0]
            return (total, [total[:, :1]]), {"sum": total, "shape": state["shape"] + 1.0}

    x = tf.constant(X)
    (total, [first]), state = tf.nn.dynamic_rnn(Cell(), {"a": x, "b": [x]}, LENGTHS, dtype=tf.float64)
    with tf.Session() as sess:
        total, first, state = sess.run([total, first, state])
    want = np.cumsum(X * X, 1) * (np.arange(5) < np.array(LENGTHS)[:, None])[:, :, None]
    np.testing.assert_allclose(total, want)
    np.testing.assert_array_equal(first, total[:, :, :1])
    np.testing.assert_array_equal(state["shape"], np.ones((3, 2, 2)) * np.array(LENGTHS)[:, None, None])


def test_both_directions():
    x = tf.constant(X)
    cell = [cells.GRUCell(3, name=f"c{i}") for i in range(2)]
    (fw, bw), (last_fw, last_bw) = tf.nn.bidirectional_dynamic_rnn(*cell, x, LENGTHS, dtype=tf.float64)
    assert [v.op.name.split("/")[:3] for v in tf.global_variables()[::4]] == [
        ["bidirectional_rnn", "fw", "c0"],
        ["bidirectional_rnn", "bw", "c1"],
    ]
    turned = tf.reverse_sequence(x, LENGTHS, seq_axis=1, batch_axis=0)
    with tf.variable_scope("bidirectional_rnn/bw", reuse=True):
        alone, last = tf.nn.dynamic_rnn(cell[1], turned, LENGTHS, dtype=tf.float64, scope=tf.get_variable_scope())
    with tf.variable_scope(tf.get_variable_scope(), reuse=True):
        steps, *states = tf.nn.static_bidirectional_rnn(
            *cell, tf.unstack(x, 5, 1), dtype=tf.float64, sequence_length=LENGTHS
        )
    with tf.Session() as sess:
        drawn(sess)
        got = sess.run([tf.reverse_sequence(bw, LENGTHS, seq_axis=1, batch_axis=0), last_bw])
        for a, b in zip(got, sess.run([alone, last]), strict=True):
            np.testing.assert_allclose(a, b)
        got = sess.run([tf.stack(steps, 1), *states])
        for a, b in zip(got, sess.run([tf.concat([fw, bw], 2), last_fw, last_bw]), strict=True):
            np.testing.assert_allclose(a, b)


def test_stacked_in_both_directions():
    make = tf.contrib.rnn.stack_bidirectional_dynamic_rnn
    pairs = [[cells.GRUCell(n) for n in (3, 2)] for _ in range(2)]
    outputs, states_fw, states_bw = make(*pairs, tf.constant(X), dtype=tf.float64)
    assert outputs.shape.as_list() == [3, 5, 4] and [len(states_fw), len(states_bw)] == [2, 2]
    assert (
        tf.global_variables()[8].op.name == "stack_bidirectional_rnn/cell_1/bidirectional_rnn/fw/gru_cell/gates/kernel"
    )
    with pytest.raises(InvalidArgumentError, match="as many cells"):
        make(pairs[0], pairs[1][:1], tf.constant(X), dtype=tf.float64)


def test_a_state_that_is_kept_between_steps():
    class Saver:
        kept = {name: tf.Variable(tf.zeros([3, 2]), name=name, dtype=tf.float32) for name in "ch"}

        def state(self, name):
            return self.kept[name].value()

        def save_state(self, name, value):
            return self.kept[name].assign(value)

    x = tf.placeholder(tf.float32, [3, 4])
    outputs, _ = tf.nn.static_state_saving_rnn(cells.LSTMCell(2), [x, x], Saver(), ("c", "h"))
    with tf.variable_scope(tf.get_variable_scope(), reuse=True):
        whole, _ = tf.nn.static_rnn(cells.LSTMCell(2), [x] * 4, dtype=tf.float32)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        first, second = sess.run(outputs[-1], {x: X[:, 0]}), sess.run(outputs[-1], {x: X[:, 0]})
        np.testing.assert_allclose([first, second], [sess.run(whole[i], {x: X[:, 0]}) for i in (1, 3)], rtol=1e-6)


def test_draws_differ_by_step_and_gradients_see_them():
    x = tf.ones([4, 6, 8])
    cell = cells.DropoutWrapper(cells.BasicRNNCell(8, activation=tf.identity), input_keep_prob=0.5, seed=1)
    outputs, _ = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)
    (grad,) = tf.gradients(tf.reduce_sum(outputs[:, -1]), x)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        kept = sess.run(grad) != 0
    assert 0.3 < kept.mean() < 0.7 and (kept[:, 0] != kept[:, 1]).any()


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda x: tf.nn.dynamic_rnn(3, x, dtype=tf.float32), TypeError, "'cell' .* is not an RNNCell"),
        (lambda x: tf.nn.dynamic_rnn(cells.GRUCell(3), x), ValueError, "must give a dtype"),
        (lambda x: tf.nn.dynamic_rnn(cells.GRUCell(3), x[0, 0], dtype=tf.float32), ShapeError, "rank 2 or more"),
        (
            lambda x: tf.nn.dynamic_rnn(cells.GRUCell(3), x, [[1]], dtype=tf.float32),
            ShapeError,
            "vector of length batch",
        ),
        (lambda x: tf.nn.static_rnn(cells.GRUCell(3), x, dtype=tf.float32), TypeError, "must be a sequence"),
        (lambda x: tf.nn.static_rnn(cells.GRUCell(3), [], dtype=tf.float32), ValueError, "not be empty"),
        (
            lambda x: tf.nn.dynamic_rnn(cells.LSTMCell(3), x, initial_state=tf.zeros([3, 3])),
            ValueError,
            "nests differently",
        ),
        (lambda x: tf.nn.dynamic_rnn(cells.GRUCell(3), x, [1, 2], dtype=tf.float32), ShapeError, "2"),
        (
            lambda x: tf.nn.dynamic_rnn(cells.GRUCell(3), tf.placeholder(tf.float32, [2, 3, None]), dtype=tf.float32),
            ShapeError,
            "depth of its inputs",
        ),
    ],
)
def test_what_is_refused(make, error, words):
    with pytest.raises(error, match=words):
        make(tf.constant(X, tf.float32))


def _dynamic(cell, x, n):
    return tf.nn.dynamic_rnn(cell, x, n, dtype=tf.float64)


def _bidirectional(cell, x, n):
    return tf.nn.bidirectional_dynamic_rnn(cell, cells.LSTMCell(2), x, n, dtype=tf.float64)


def _static(cell, x, n):
    outputs, state = tf.nn.static_rnn(cell, tf.unstack(x, 5, 1), dtype=tf.float64, sequence_length=n)
    return tf.stack(outputs, 1), state


@pytest.mark.parametrize("padding", [np.nan, np.inf])
@pytest.mark.parametrize("network", [_dynamic, _bidirectional, _static])
@pytest.mark.sampled(2)
def test_what_stands_behind_the_longest_sequence_is_not_read(network, padding):
    """Values, and gradients of both orders, are those of zeros there. The cell was run on it, and 0 times NaN is no number."""
    x, n = tf.placeholder(tf.float64, [3, 5, 4]), tf.placeholder(tf.int32, [3])
    found = flatten(network(cells.MultiRNNCell([cells.GRUCell(3), cells.LSTMCell(2)]), x, n))
    wanted = [x, *tf.trainable_variables()]
    first = tf.gradients(tf.add_n([tf.reduce_sum(tf.sin(t)) for t in found]), wanted)
    second = tf.gradients(tf.add_n([tf.reduce_sum(g**2) for g in first]), wanted)
    inputs = [np.concatenate([X[:, :3], np.full((3, 2, 4), p)], 1) for p in (0.0, padding)]
    with tf.Session() as sess:
        drawn(sess)
        for lengths in ([3, 3, 3], [3, 1, 2]):
            for data in inputs:
                for row, length in zip(data[:, :3], lengths, strict=True):
                    row[length:] = 0.0
            plain, padded = (sess.run([found, first, second], {x: data, n: lengths}) for data in inputs)
            for a, b in zip(flatten(padded), flatten(plain), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize(("network", "least"), [(_dynamic, 1), (_static, 0)])
def test_a_cell_runs_as_often_as_the_longest_sequence_is_long(network, least):
    """TensorFlow's loop runs once for none; its written-out steps do not."""
    calls = []

    class Counted(cells.BasicRNNCell):
        def call(self, inputs, state):
            seen = tf.py_func(lambda v: calls.append(0) or v, [inputs], tf.float64)
            seen.set_shape(inputs.shape)
            return super().call(seen, state)

    n = tf.placeholder(tf.int64, [3])
    outputs, state = network(Counted(3), tf.constant(X), n)
    with tf.Session() as sess:
        drawn(sess)
        for lengths in ([2, 1, 0], [5, 1, 1], [0, 0, 0], [9, 1, 1]):
            calls.clear()
            found = sess.run([outputs, state], {n: lengths})
            assert len(calls) == min(max(*lengths, least), 5)
            assert (found[0][:, max(lengths) :] == 0).all()


def test_what_steps_left_in_arrays_is_of_those_that_ran():
    """An attention's history in the state: as long as the longest sequence."""
    memory = tf.constant(X)
    attention = tf.contrib.seq2seq.LuongAttention(3, memory, dtype=tf.float64)
    cell = tf.contrib.seq2seq.AttentionWrapper(cells.GRUCell(3), attention, alignment_history=True)
    n = tf.placeholder(tf.int32, [3])
    for network in (_dynamic, _static):
        with tf.variable_scope("net" + network.__name__):
            _, state = network(cell, tf.constant(X), n)
        with tf.Session() as sess:
            drawn(sess)
            history = sess.run(state.alignment_history.stack(), {n: [2, 1, 0]})
        assert history.shape == (2, 3, 5) and (history != 0).all()
