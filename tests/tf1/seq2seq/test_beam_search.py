"""Beam search against all sequences that there are, a search in NumPy that keeps whole sequences, and greedy choice."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import InvalidArgumentError, ShapeError

seq2seq = tf.contrib.seq2seq
END = 0
MEMORY = np.random.RandomState(5).randn(2, 4, 3)
ROWS = [4, 2]


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def log_softmax(x):
    shifted = x - x.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


class Network:
    """A basic cell of 3 units that reads ids, perhaps attends to a memory, and gives logits; in graphdock and in NumPy."""

    def __init__(self, words: int, attends: bool = False, ends: float = 0.0) -> None:
        self.words, self.attends, self.ends = words, attends, ends
        self.table = tf.constant(np.random.RandomState(1).randn(words, 2))
        self.cell: Any = tf.nn.rnn_cell.BasicRNNCell(3)
        self.layer = tf.layers.Dense(words, name="words")

    def decoder(self, width, start, memory=None, **more):
        tiled = np.array(ROWS) if memory is None else seq2seq.tile_batch(tf.constant(ROWS), width)
        cell = self.cell
        if self.attends:
            mechanism = seq2seq.LuongAttention(
                3, seq2seq.tile_batch(tf.constant(MEMORY), width), tiled, scale=True, dtype=tf.float64
            )
            cell = seq2seq.AttentionWrapper(cell, mechanism, alignment_history=True)
        state = cell.zero_state(tf.size(start) * width, tf.float64)
        return seq2seq.BeamSearchDecoder(cell, self.table, start, END, state, width, self.layer, **more)

    def drawn(self, sess):
        for i, v in enumerate(tf.global_variables()):
            value = np.random.RandomState(i).randn(*v.shape.as_list()) * 1.2
            if v.op.name.endswith("words/bias"):
                value[END] += self.ends
            sess.run(tf.assign(v, value))
        self.v = {v.op.name.rpartition("decoder/")[2]: sess.run(v) for v in tf.global_variables()}
        self.rows = sess.run(self.table)

    def begin(self):
        return np.zeros(3), np.zeros(3)

    def step(self, state, word, entry):
        """``(log probabilities, state, alignments)``."""
        h, attention = state
        at = "attention_wrapper/basic_rnn_cell/" if self.attends else "basic_rnn_cell/"
        x = [self.rows[word], attention, h] if self.attends else [self.rows[word], h]
        h = out = np.tanh(np.hstack(x) @ self.v[at + "kernel"] + self.v[at + "bias"])
        weights = np.zeros(4)
        if self.attends:
            memory = MEMORY[entry, : ROWS[entry]]
            scores = (memory @ self.v["memory_layer/kernel"]) @ h
            scores = scores * self.v["attention_wrapper/luong_attention/attention_g"]
            weights[: ROWS[entry]] = np.exp(log_softmax(scores))
            out = attention = weights[: ROWS[entry]] @ memory
        return log_softmax(out @ self.v["words/kernel"] + self.v["words/bias"]), (h, attention), weights


@dataclass(frozen=True)
class Found:
    """A sequence of the search in NumPy."""

    ids: tuple[int, ...]
    log_prob: float
    state: Any
    seen: np.ndarray
    length: int = 0
    over: bool = False
    alignments: tuple[Any, ...] = ()
    score: float = 0.0


def searched(network, width, start, entry, steps, length_penalty=0.0, coverage_penalty=0.0):
    """The sequences of one batch entry, the best first."""
    beams = [Found((), 0.0, network.begin(), np.zeros(4))]
    for _ in range(steps):
        candidates = []
        for b in beams:
            log_probs, state, weights = network.step(b.state, b.ids[-1] if b.ids else start, entry)
            seen = b.seen if b.over else b.seen + weights
            for word in [END] if b.over else range(network.words):
                total = b.log_prob if b.over else b.log_prob + log_probs[word]
                rated = b.length + (not b.over and word != END)
                score = total / ((5 + rated) / 6) ** length_penalty
                if b.over:
                    score += coverage_penalty * np.log(np.minimum(np.where(seen == 0, 1, seen), 1)).sum()
                candidates.append(
                    Found(
                        (*b.ids, word),
                        total,
                        state,
                        seen,
                        b.length + (not b.over),
                        b.over or word == END,
                        b.alignments if b.over else (*b.alignments, weights),
                        score,
                    )
                )
        beams = sorted(candidates, key=lambda c: -c.score)[:width]
    return beams


@pytest.mark.parametrize("penalty", [0.0, 1.5])
def test_a_beam_of_all_sequences_finds_the_best_in_their_order(penalty):
    """Three words and three steps: 15 sequences, each enumerated."""
    network, start = Network(3), tf.constant([1, 2])
    outputs, state, _ = seq2seq.dynamic_decode(
        network.decoder(15, start, length_penalty_weight=penalty), maximum_iterations=3
    )
    with tf.Session() as sess:
        network.drawn(sess)
        got, last = sess.run([outputs, state])
    for entry, first in enumerate([1, 2]):
        rated = {}
        for ids in itertools.product(range(3), repeat=3):
            whole = ids[: ids.index(END) + 1] if END in ids else ids
            total, before, word = 0.0, network.begin(), first
            for following in whole:
                log_probs, before, _ = network.step(before, word, entry)
                total, word = total + log_probs[following], following
            # as TensorFlow has it, an end that the last step chooses is not counted
            length = len(whole) - (whole[-1] == END and len(whole) == 3)
            rated[whole] = total / ((5 + length) / 6) ** penalty, total
        best = sorted(rated, key=lambda ids: -rated[ids][0])
        assert len(best) == 15
        for k, ids in enumerate(best):
            assert got.predicted_ids[entry, :, k].tolist() == [*ids, *[END] * (3 - len(ids))]
        scores = got.beam_search_decoder_output.scores[entry, -1]
        np.testing.assert_allclose(scores, [rated[ids][0] for ids in best], rtol=1e-9)
        np.testing.assert_allclose(last.log_probs[entry], [rated[ids][1] for ids in best], rtol=1e-9)
        assert last.lengths[entry].tolist() == [len(ids) for ids in best]
        np.testing.assert_allclose(np.exp(last.log_probs[entry]).sum(), 1)


@pytest.mark.parametrize(("length_penalty", "coverage_penalty"), [(0.0, 0.0), (0.5, 0.05)])
def test_a_narrow_beam_with_attention(length_penalty, coverage_penalty):
    """Beams are reordered, end at different steps, and the history of alignments follows the sequences."""
    network = Network(5, attends=True, ends=1.5)
    start = tf.placeholder(tf.int32, [None])
    decoder = network.decoder(
        3, start, MEMORY, length_penalty_weight=length_penalty, coverage_penalty_weight=coverage_penalty
    )
    outputs, state, _ = seq2seq.dynamic_decode(decoder, maximum_iterations=6)
    assert outputs.predicted_ids.shape.as_list()[2] == 3
    with tf.Session() as sess:
        network.drawn(sess)
        steps = outputs.beam_search_decoder_output
        fetched = [outputs.predicted_ids, state, steps.parent_ids, steps.scores]
        got, last, parents, scores = sess.run(fetched, {start: [1, 2]})
    assert (parents[:, 1:] != np.arange(3)).any(), "the beams never changed places"
    lengths: set[int] = set()
    history = last.cell_state.alignment_history.reshape(-1, 2, 3, 4)
    for entry, first in enumerate([1, 2]):
        want = searched(network, 3, first, entry, got.shape[1], length_penalty, coverage_penalty)
        np.testing.assert_allclose(scores[entry, -1], [f.score for f in want], rtol=1e-9)
        lengths |= {f.length for f in want}
        for k, found in enumerate(want):
            ids = got[entry, :, k].tolist()
            assert ids == [*found.ids, *[END] * (len(ids) - len(found.ids))]
            np.testing.assert_allclose(last.log_probs[entry, k], found.log_prob, rtol=1e-9)
            assert (last.lengths[entry, k], last.finished[entry, k]) == (found.length, found.over)
            np.testing.assert_allclose(history[: found.length, entry, k], found.alignments, rtol=1e-8)
            if coverage_penalty:
                np.testing.assert_allclose(last.accumulated_attention_probs[entry, k], found.seen, rtol=1e-8)
    assert len(lengths) > 1, "all ended together"


def test_a_beam_of_one_is_the_greedy_choice():
    network = Network(6)
    start = tf.constant([1, 2, 3, 4, 5])
    beams, _, _ = seq2seq.dynamic_decode(network.decoder(1, start), maximum_iterations=8)
    helper = seq2seq.GreedyEmbeddingHelper(network.table, start, END)
    plain = seq2seq.BasicDecoder(network.cell, helper, network.cell.zero_state(5, tf.float64), network.layer)
    with tf.variable_scope("decoder", reuse=True) as scope:
        greedy, _, _ = seq2seq.dynamic_decode(plain, maximum_iterations=8, scope=scope, impute_finished=True)
    with tf.Session() as sess:
        network.drawn(sess)
        best, ids = sess.run([beams.predicted_ids[:, :, 0], greedy.sample_id])
    np.testing.assert_array_equal(best, ids)
    assert len(np.unique(best)) > 2


def test_the_sequences_of_a_tree():
    """A tree of two entries, one of whose beams has ended, is read from its leaves; past the maximum there is the end."""
    ids = [[[1, 2, 3], [7, 8, 9]], [[4, 0, 6], [4, 5, 6]], [[7, 8, 9], [1, 2, 3]], [[1, 1, 1], [4, 4, 4]]]
    parents = [[[0, 0, 0], [0, 0, 0]], [[0, 1, 1], [2, 1, 0]], [[2, 1, 0], [1, 1, 2]], [[0, 1, 2], [0, 1, 2]]]
    first = [[2, 6, 7, 1], [2, 0, 0, 0], [1, 4, 9, 1]]
    lengths = tf.placeholder(tf.int64, [None])
    found = seq2seq.gather_tree(ids, parents, lengths, 0)
    with tf.Session() as sess:
        got = sess.run(found, {lengths: [4, 3]})
        np.testing.assert_array_equal(got[:, 0].T, first)
        np.testing.assert_array_equal(got[:, 1].T, [[8, 5, 1, 0], [8, 5, 2, 0], [7, 6, 3, 0]])
        got = sess.run(found, {lengths: [9, 2]})
        np.testing.assert_array_equal(got[:, 0].T, first)
        np.testing.assert_array_equal(got[:, 1].T, [[9, 4, 0, 0], [8, 5, 0, 0], [7, 6, 0, 0]])
        with pytest.raises(tf.errors.InvalidArgumentError):
            sess.run(seq2seq.gather_tree(ids, np.array(parents) + 3, [4, 4], 0))
    with pytest.raises(ShapeError, match="parent_ids must be"):
        seq2seq.gather_tree(ids, parents[0], [4, 4], 0)


def test_what_is_refused():
    network = Network(4)
    with pytest.raises(ShapeError, match="start_tokens must be a vector"):
        network.decoder(2, tf.constant(1))
    with pytest.raises(TypeError, match="not an RNNCell"):
        seq2seq.BeamSearchDecoder(3, network.table, [1], END, tf.zeros([2, 3]), 2)
    with pytest.raises(InvalidArgumentError, match="no cell is attentional"):
        network.decoder(2, tf.constant([1]), coverage_penalty_weight=0.2).initialize()
