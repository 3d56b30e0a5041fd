"""Decoders with attention against the same steps in NumPy, in training and in use; TensorFlow 1's names of variables."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import ShapeError

seq2seq = tf.contrib.seq2seq
MEMORY = np.random.RandomState(0).randn(3, 6, 5)
INPUTS = np.random.RandomState(1).randn(3, 4, 2)
LENGTHS, ROWS = [4, 2, 3], [6, 1, 4]


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def drawn(sess):
    for i, v in enumerate(tf.global_variables()):
        sess.run(tf.assign(v, np.random.RandomState(i).randn(*v.shape.as_list()) * 0.7))
    return {v.op.name: sess.run(v) for v in tf.global_variables()}


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class Attending:
    """A decoder with attention in NumPy: a basic cell of 5 units, layers of attention (4) and output (7)."""

    def __init__(self, v, kind):
        self.v, self.kind = v, kind
        mask = np.arange(6) < np.array(ROWS)[:, None]
        self.values = MEMORY * mask[:, :, None]
        self.keys, self.mask = self.values @ v["memory_layer/kernel"], mask
        self.h, self.attention = np.zeros((3, 5)), np.zeros((3, 4))

    def scores(self):
        v, at = self.v, "decoder/attention_wrapper/"
        if self.kind == "luong":
            return v[at + "luong_attention/attention_g"] * np.einsum("bk,brk->br", self.h, self.keys)
        at += "bahdanau_attention/"
        w = v[at + "attention_v"]
        w = v[at + "attention_g"] * w / np.sqrt((w * w).sum())
        total = self.keys + (self.h @ v[at + "query_layer/kernel"])[:, None] + v[at + "attention_b"]
        return (w * np.tanh(total)).sum(2)

    def step(self, x):
        v, at = self.v, "decoder/attention_wrapper/"
        cell = at + "basic_rnn_cell/"
        self.h = np.tanh(np.hstack([x, self.attention, self.h]) @ v[cell + "kernel"] + v[cell + "bias"])
        self.alignments = softmax(np.where(self.mask, self.scores(), -np.inf))
        context = np.einsum("br,brn->bn", self.alignments, self.values)
        self.attention = np.hstack([self.h, context]) @ v[at + "attention_layer/kernel"]
        return self.attention @ v["decoder/dense/kernel"] + v["decoder/dense/bias"]


def decoder(kind, helper, dtype=tf.float64, **more):
    memory = tf.constant(MEMORY, dtype)
    if kind == "luong":
        mechanism = seq2seq.LuongAttention(5, memory, ROWS, scale=True, dtype=dtype)
    else:
        mechanism = seq2seq.BahdanauAttention(5, memory, ROWS, normalize=True, dtype=dtype)
    cell = seq2seq.AttentionWrapper(tf.nn.rnn_cell.BasicRNNCell(5), mechanism, attention_layer_size=4)
    batch = helper.batch_size
    return seq2seq.BasicDecoder(cell, helper, cell.zero_state(batch, dtype), tf.layers.Dense(7), **more)


@pytest.mark.parametrize("kind", ["luong", "bahdanau"])
@pytest.mark.parametrize("impute", [False, True])
@pytest.mark.sampled(2)
def test_training(kind, impute):
    x = tf.placeholder(tf.float64, [None, None, 2])
    helper = seq2seq.TrainingHelper(x, LENGTHS)
    outputs, state, lengths = seq2seq.dynamic_decode(decoder(kind, helper), impute_finished=impute)
    assert outputs.rnn_output.shape.as_list()[2] == 7
    (grad,) = tf.gradients(tf.reduce_sum(outputs.rnn_output**2), x)
    with tf.Session() as sess:
        numpy = Attending(drawn(sess), kind)
        got, sample, last, n, dx = sess.run([*outputs, state, lengths, grad], {x: INPUTS})

        def loss(given):
            return np.sum(sess.run(outputs.rnn_output, {x: given}) ** 2)

        nudge = np.zeros_like(INPUTS)
        nudge[0, 1, 1] = 1e-5
        slope = (loss(INPUTS + nudge) - loss(INPUTS - nudge)) / 2e-5
    live = np.arange(4) < np.array(LENGTHS)[:, None]
    steps = np.stack([numpy.step(INPUTS[:, t]) for t in range(4)], 1)
    np.testing.assert_allclose(got[live], steps[live], rtol=1e-9)
    assert (n == LENGTHS).all() and last.time == 4
    assert (sample[live] == got[live].argmax(-1)).all()
    if impute:
        assert (got[~live] == 0).all()
    np.testing.assert_allclose(last.alignments[0], numpy.alignments[0], rtol=1e-9)
    np.testing.assert_allclose(dx[0, 1, 1], slope, rtol=1e-6)


def test_names_of_variables():
    seq2seq.dynamic_decode(decoder("bahdanau", seq2seq.TrainingHelper(tf.constant(INPUTS), LENGTHS)))
    around = "decoder/attention_wrapper/"
    assert [v.op.name for v in tf.global_variables()] == [
        "memory_layer/kernel",
        around + "basic_rnn_cell/kernel",
        around + "basic_rnn_cell/bias",
        around + "bahdanau_attention/query_layer/kernel",
        around + "bahdanau_attention/attention_v",
        around + "bahdanau_attention/attention_g",
        around + "bahdanau_attention/attention_b",
        around + "attention_layer/kernel",
        "decoder/dense/kernel",
        "decoder/dense/bias",
    ]


@pytest.mark.parametrize("time_major", [False, True])
def test_greedy_use_reads_its_own_classes(time_major):
    table = tf.get_variable("table", [7, 2], tf.float64)
    helper = seq2seq.GreedyEmbeddingHelper(
        table, start_tokens=tf.placeholder_with_default([1, 2, 3], [None]), end_token=4
    )
    limit = tf.placeholder(tf.int32, [])
    outputs, _, lengths = seq2seq.dynamic_decode(decoder("luong", helper), time_major, maximum_iterations=limit)
    with tf.Session() as sess:
        numpy = Attending(drawn(sess), "luong")
        ids, n, v = *sess.run([outputs.sample_id, lengths], {limit: 9}), sess.run(table)
        for k in (0, 1):
            assert sess.run(outputs.rnn_output, {limit: k}).shape[0 if time_major else 1] == k
    ids = ids.T if time_major else ids
    read, over, want = np.array([1, 2, 3]), np.zeros(3, bool), np.zeros(3, int)
    for t in range(ids.shape[1]):
        read = numpy.step(v[read]).argmax(-1)
        assert (ids[:, t] == read).all()
        want[~over] = t + 1
        over |= read == 4
    assert (n == want).all() and (over.all() or ids.shape[1] == 9)


def test_draws_and_scheduled_draws():
    table = tf.constant(np.eye(7)[:, :2], tf.float32)
    cold = seq2seq.SampleEmbeddingHelper(table, [1, 2, 3], 4, softmax_temperature=1e-6, seed=1)
    logits = tf.random_uniform([3, 7], seed=2)
    with tf.Session() as sess:
        drawn_, best = sess.run([cold.sample(0, logits, ()), tf.argmax(logits, 1)])
        assert (drawn_ == best).all(), "a cold distribution has one class"
    x = tf.constant(INPUTS, tf.float32)
    for probability, mine in ((0.0, False), (1.0, True)):
        helper = seq2seq.ScheduledEmbeddingTrainingHelper(x, LENGTHS, table, probability, seed=3)
        ids = helper.sample(0, logits, ())
        _, read, _ = helper.next_inputs(tf.constant(0), logits, (), ids)
        with tf.Session() as sess:
            ids, read, rows = sess.run([ids, read, table])
        assert (ids >= 0).all() == mine and (ids == -1).all() != mine
        np.testing.assert_allclose(read, rows[ids] if mine else INPUTS[:, 1], rtol=1e-6)


def test_several_memories_and_a_state_that_is_given():
    mechanisms = [seq2seq.LuongAttention(5, tf.constant(MEMORY, tf.float32)) for _ in range(2)]
    start = tf.ones([3, 5])
    cell = seq2seq.AttentionWrapper(tf.nn.rnn_cell.GRUCell(5), mechanisms, [3, 2], initial_cell_state=start)
    state = cell.zero_state(3, tf.float32)
    assert cell.output_size == 5 and len(state.alignments) == 2
    assert state.clone(cell_state=start * 2.0).cell_state is not state.cell_state
    out, after = cell(tf.ones([3, 2]), state)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert (sess.run(state.cell_state) == 1).all() and sess.run(after.time) == 1
        np.testing.assert_allclose(np.sum(sess.run(after.alignments), -1), 1, rtol=1e-5)
    assert out.shape.as_list() == [3, 5]


def test_a_helper_and_a_decoder_of_ones_own():
    helper = seq2seq.CustomHelper(
        lambda: (tf.zeros([2], tf.bool), tf.ones([2, 3])),
        lambda time, outputs, state: tf.cast(outputs[:, 0], tf.int32),
        lambda time, outputs, state, sample_ids: (tf.fill([2], time >= 2), outputs[:, :3], state),
    )
    cell = tf.nn.rnn_cell.BasicRNNCell(3, activation=lambda x: x + 1.0)
    made = seq2seq.BasicDecoder(cell, _started(helper), cell.zero_state(2, tf.float32))
    outputs, _, lengths = seq2seq.dynamic_decode(made)
    with tf.Session() as sess:
        for v in tf.global_variables():
            sess.run(tf.assign(v, tf.zeros_like(v)))
        got, n = sess.run([outputs, lengths])
    assert got.rnn_output.shape == (2, 3, 3) and (got.sample_id == 1).all() and n.tolist() == [3, 3]


def _started(helper):
    helper.initialize()
    return helper


def test_tile_batch():
    x = tf.placeholder(tf.float32, [None, 2])
    many = seq2seq.tile_batch((x, [tf.constant([1, 2])]), 3)
    with tf.Session() as sess:
        got = sess.run(many, {x: [[1, 2], [3, 4]]})
    np.testing.assert_array_equal(got[0], np.repeat([[1, 2], [3, 4]], 3, 0))
    assert got[1][0].tolist() == [1, 1, 1, 2, 2, 2] and many[1][0].shape.as_list() == [6]


def test_what_a_class_of_ones_own_lacks_is_named():
    class Half(seq2seq.Decoder):
        batch_size = output_size = output_dtype = 1

        def initialize(self, name=None):
            return (), (), ()

    with pytest.raises(TypeError, match="abstract method '?step"):
        Half()
    with pytest.raises(TypeError, match=r"abstract methods? .*next_inputs.*sample"):
        type("Mine", (seq2seq.Helper,), {"batch_size": 1, "initialize": len})()
    with pytest.raises(TypeError, match="abstract method '?__call__"):
        seq2seq.AttentionMechanism(tf.ones([2, 3, 4]))


def test_what_is_refused():
    helper = seq2seq.TrainingHelper(tf.constant(INPUTS), LENGTHS)
    cell = tf.nn.rnn_cell.GRUCell(5)
    with pytest.raises(TypeError, match="helper must be a Helper"):
        seq2seq.BasicDecoder(cell, 3, cell.zero_state(3, tf.float64))
    with pytest.raises(TypeError, match="Expected decoder"):
        seq2seq.dynamic_decode(cell)
    with pytest.raises(ShapeError, match="must be a scalar"):
        seq2seq.dynamic_decode(
            seq2seq.BasicDecoder(cell, helper, cell.zero_state(3, tf.float64)), maximum_iterations=[3]
        )
    mechanism = seq2seq.LuongAttention(4, tf.constant(MEMORY, tf.float32))
    with pytest.raises(ShapeError, match="not as deep"):
        mechanism(tf.ones([3, 5]), state=None)
