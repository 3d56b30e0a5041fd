"""Dropout, residual connections and contrib's wrappers around cells."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import InvalidArgumentError

cells = tf.nn.rnn_cell


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


class Echo(cells.RNNCell):
    """Returns its inputs, and a state of ones."""

    state_size = cells.LSTMStateTuple(50, 50)
    output_size = 50

    def __call__(self, inputs, state, scope=None):
        return inputs, cells.LSTMStateTuple(tf.ones_like(inputs), tf.ones_like(inputs))


def run(cell, seed=1):
    tf.set_random_seed(seed)
    out, state = tf.nn.dynamic_rnn(cell, tf.ones([8, 6, 50]), dtype=tf.float32)
    with tf.Session() as sess:
        return sess.run([out, state])


def test_dropout_of_input_and_output_differs_by_step_and_keeps_the_mean():
    for keep in ({"input_keep_prob": 0.5}, {"output_keep_prob": tf.constant(0.5)}):
        out, state = run(cells.DropoutWrapper(Echo(), **keep))
        assert set(np.unique(out)) == {0.0, 2.0} and abs(out.mean() - 1) < 0.15
        assert (out[:, 0] != out[:, 1]).any() and (state.h == 1).all()


def test_dropout_of_the_state_leaves_the_memory():
    _, state = run(cells.DropoutWrapper(Echo(), state_keep_prob=0.5))
    assert (state.c == 1).all() and set(np.unique(state.h)) == {0.0, 2.0}
    everything = cells.DropoutWrapper(Echo(), state_keep_prob=0.5, dropout_state_filter_visitor=lambda s: True)
    assert set(np.unique(run(everything)[1].c)) == {0.0, 2.0}


def test_variational_dropout_is_the_same_in_all_steps_and_rows():
    cell = cells.DropoutWrapper(Echo(), 0.5, variational_recurrent=True, input_size=50, dtype=tf.float32)
    out, _ = run(cell)
    assert set(np.unique(out)) == {0.0, 2.0} and (out == out[:1, :1]).all()


def test_seeds_of_places_are_those_of_tensorflow():
    """``_gen_seed`` of TensorFlow 1.15 for seed 3: MD5 of the seed, the place and its number."""
    cell = cells.DropoutWrapper(Echo(), 0.5, seed=3)
    assert [cell._seed_of("input", 0), cell._seed_of("state", 1)] == [_md5("3input_0"), _md5("3state_1")]
    assert (run(cell)[0] == run(cells.DropoutWrapper(Echo(), 0.5, seed=3))[0]).mean() > 0.4


def _md5(text):
    import hashlib

    return int(hashlib.md5(text.encode()).hexdigest()[:8], 16) & 0x7FFFFFFF


def test_residual_and_device():
    cell = cells.ResidualWrapper(cells.DeviceWrapper(Echo(), "/cpu:0"))
    out, _ = run(cell)
    assert (out == 2).all()
    assert "CPU:0" in cell.wrapped_cell.zero_state(2, tf.float32).c.device
    own = cells.ResidualWrapper(Echo(), lambda x, y: x * 3.0)
    assert (run(own)[0] == 3).all()


def test_projections_and_embeddings_of_contrib():
    rnn = tf.contrib.rnn
    ids = tf.constant([[1, 2, 0], [3, 3, 1]])
    cell = rnn.EmbeddingWrapper(
        rnn.OutputProjectionWrapper(rnn.InputProjectionWrapper(rnn.GRUCell(5), 6, tf.tanh), 2), 4, 3
    )
    out, state = tf.nn.dynamic_rnn(cell, ids[:, :, None], dtype=tf.float32)
    assert (out.shape.as_list(), state.shape.as_list()) == ([2, 3, 2], [2, 5])
    around = "rnn/embedding_wrapper/"
    inside = around + "output_projection_wrapper/input_projection_wrapper/"
    assert {v.op.name: v.shape.as_list() for v in tf.global_variables()} == {
        around + "embedding": [4, 3],
        inside + "kernel": [3, 6],
        inside + "bias": [6],
        inside + "gru_cell/gates/kernel": [11, 10],
        inside + "gru_cell/gates/bias": [10],
        inside + "gru_cell/candidate/kernel": [11, 5],
        inside + "gru_cell/candidate/bias": [5],
        around + "output_projection_wrapper/kernel": [5, 2],
        around + "output_projection_wrapper/bias": [2],
    }


def test_attention_over_the_last_outputs():
    cell = tf.contrib.rnn.AttentionCellWrapper(cells.GRUCell(4), attn_length=3, attn_size=2, attn_vec_size=5)
    assert (cell.state_size, cell.output_size) == ((4, 2, 6), 2)
    out, (inner, attention, last) = tf.nn.dynamic_rnn(cell, tf.ones([2, 7, 3]), dtype=tf.float32)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        out, inner, attention, last = sess.run([out, inner, attention, last])
    np.testing.assert_allclose(last.reshape(2, 3, 2), out[:, -3:])  # what it remembers are its last outputs
    assert attention.shape == (2, 2)
    names = {v.op.name.removeprefix("rnn/attention_cell_wrapper/") for v in tf.global_variables()}
    assert {"kernel", "attention/attn_w", "attention/attn_v", "attention/kernel", "attn_output_projection/bias"} < names


def test_attention_whose_state_is_one_tensor_is_that_of_three():
    x, numbers = tf.constant(np.random.RandomState(0).randn(2, 7, 3), tf.float32), np.random.RandomState(1)
    wrapped = [
        tf.contrib.rnn.AttentionCellWrapper(cells.GRUCell(4), 3, 2, 5, state_is_tuple=tuples)
        for tuples in (True, False)
    ]
    assert wrapped[1].state_size == 4 + 2 + 6
    made = [tf.nn.dynamic_rnn(c, x, dtype=tf.float32, scope=f"rnn{i}") for i, c in enumerate(wrapped)]
    slopes = [tf.gradients(out, c.trainable_weights) for (out, _), c in zip(made, wrapped, strict=True)]
    with tf.Session() as sess:
        for pair in zip(wrapped[0].variables, wrapped[1].variables, strict=True):
            value = numbers.randn(*pair[0].shape.as_list())
            sess.run([tf.assign(v, value) for v in pair])
        (one, three), (other, flat), first, second = sess.run([*made, *slopes])
    np.testing.assert_allclose(other, one, rtol=1e-6)
    np.testing.assert_allclose(flat, np.concatenate(three, 1), rtol=1e-6)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: tf.contrib.rnn.AttentionCellWrapper(cells.LSTMCell(3), 2, state_is_tuple=False),
            "Cell returns tuple of states, but the flag state_is_tuple is not set",
        ),
        (lambda: cells.DropoutWrapper(Echo(), 1.5), "input_keep_prob must be between 0 and 1"),
        (lambda: cells.DropoutWrapper(Echo(), 0.5, variational_recurrent=True), "dtype must be provided"),
        (
            lambda: cells.DropoutWrapper(Echo(), 0.5, variational_recurrent=True, dtype=tf.float32),
            "input_size must be provided",
        ),
        (lambda: tf.contrib.rnn.AttentionCellWrapper(Echo(), 0), "greater than zero"),
        (lambda: tf.contrib.rnn.EmbeddingWrapper(Echo(), 0, 3), "above 0"),
    ],
)
def test_what_is_refused(make, words):
    with pytest.raises(InvalidArgumentError, match=words):
        make()
