"""Conditional random fields beside sums over all tags."""

import itertools

import graphdock as tf
import numpy as np
from graphdock_tf1.contrib import crf

RNG = np.random.default_rng(0)
SCORES, TRANSITIONS = RNG.normal(size=(3, 5, 3)).astype(np.float32), RNG.normal(size=(3, 3)).astype(np.float32)
LENGTHS, TAGS = [5, 3, 1], RNG.integers(0, 3, (3, 5))


def score(row, tags):
    steps = sum(SCORES[row, at, tag] for at, tag in enumerate(tags))
    return steps + sum(TRANSITIONS[a, b] for a, b in itertools.pairwise(tags))


def every(row):
    return {tags: score(row, tags) for tags in itertools.product(range(3), repeat=LENGTHS[row])}


def test_scores_and_likelihoods():
    with tf.Session() as sess:
        found = sess.run(
            {
                "score": crf.crf_sequence_score(SCORES, TAGS, LENGTHS, TRANSITIONS),
                "norm": crf.crf_log_norm(SCORES, LENGTHS, TRANSITIONS),
                "likelihood": crf.crf_log_likelihood(SCORES, TAGS, LENGTHS, TRANSITIONS)[0],
                "none": crf.crf_log_norm(SCORES, [0, 0, 1], TRANSITIONS),
            }
        )
    for row, length in enumerate(LENGTHS):
        want = score(row, TAGS[row, :length])
        norm = np.log(np.sum(np.exp(list(every(row).values()))))
        np.testing.assert_allclose(found["score"][row], want, rtol=1e-5)
        np.testing.assert_allclose(found["norm"][row], norm, rtol=1e-5)
        np.testing.assert_allclose(found["likelihood"][row], want - norm, rtol=1e-4)
    assert found["none"].tolist()[:2] == [0, 0]


def test_the_best_tags():
    tags, best = tf.Session().run(crf.crf_decode(SCORES, TRANSITIONS, LENGTHS))
    for row, length in enumerate(LENGTHS):
        want = max(every(row), key=every(row).get)
        assert tuple(tags[row, :length]) == want and not tags[row, length:].any()
        outside, value = crf.viterbi_decode(SCORES[row, :length], TRANSITIONS)
        assert tuple(outside) == want
        np.testing.assert_allclose([best[row], value], every(row)[want], rtol=1e-5)


def test_transitions_are_a_variable_that_is_learned():
    x = tf.placeholder(tf.float32, [None, None, 3])
    loss, transitions = crf.crf_log_likelihood(x, TAGS, LENGTHS)
    assert transitions.op.name == "transitions"
    step = tf.train.GradientDescentOptimizer(0.5).minimize(-tf.reduce_mean(loss))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        before = sess.run(loss, {x: SCORES}).mean()
        for _ in range(20):
            sess.run(step, {x: SCORES})
        assert sess.run(loss, {x: SCORES}).mean() > before


def test_tags_that_cannot_be_count_nothing_for_those_that_are_chosen():
    """Scores of minus infinity forbid a tag, transitions of it a step; what stands behind an end is not read."""
    x, between = SCORES.astype(np.float64), TRANSITIONS.astype(np.float64)
    x[0, np.arange(5), (TAGS[0] + 1) % 3] = -np.inf
    x[1, 3:], x[2, 1:] = np.nan, np.nan
    finite = np.where(np.isfinite(x), x, -1e4)
    with tf.Session() as sess:
        likelihood, want = (crf.crf_log_likelihood(s, TAGS, LENGTHS, between)[0] for s in (x, finite))
        given = tf.constant(x)
        by_scores = tf.gradients(crf.crf_log_likelihood(given, TAGS, LENGTHS, between)[0], given)[0]
        found, wanted, back = sess.run([likelihood, want, by_scores])
    np.testing.assert_allclose(found, wanted, rtol=1e-9)
    assert np.isfinite(back).all() and not back[1, 3:].any() and not back[2, 1:].any()
    blocked = between.copy()
    blocked[TAGS[1, 3], TAGS[1, 4]] = -np.inf
    with tf.Session() as sess:
        assert np.isfinite(sess.run(crf.crf_binary_score(TAGS[1:2], LENGTHS[1:2], blocked))).all()


def test_whole_scores_are_decoded_outside_of_graphs():
    assert crf.viterbi_decode(np.array([[1, 2], [3, 1]]), np.array([[1.0, 0.0], [0.0, 1.0]])) == ([0, 0], 5)
