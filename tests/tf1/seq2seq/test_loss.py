"""sequence_loss against its definition."""

from __future__ import annotations

import itertools

import graphdock as tf
import numpy as np
import pytest

LOGITS = np.random.RandomState(0).randn(3, 4, 5)
TARGETS = np.random.RandomState(1).randint(0, 5, (3, 4))
WEIGHTS = np.array([[1, 1, 0.5, 2], [1, 0, 0, 0], [1, 1, 1, 0]])


def each():
    log_z = np.log(np.exp(LOGITS).sum(-1))
    return (log_z - np.take_along_axis(LOGITS, TARGETS[..., None], -1)[..., 0]) * WEIGHTS


@pytest.mark.parametrize("mean", list(itertools.product([False, True], repeat=2)))
def test_averages(mean):
    over_time, over_batch = mean
    axes = tuple(i for i, wanted in ((0, over_batch), (1, over_time)) if wanted)
    want = each().sum(axes) / (WEIGHTS.sum(axes) + 1e-12) if axes else each()
    with tf.Graph().as_default(), tf.Session() as sess:
        got = sess.run(tf.contrib.seq2seq.sequence_loss(tf.constant(LOGITS), TARGETS, tf.constant(WEIGHTS), *mean))
    np.testing.assert_allclose(got, want, rtol=1e-9)


def test_sums_and_a_loss_of_ones_own():
    make = tf.contrib.seq2seq.sequence_loss
    arguments = tf.constant(LOGITS), TARGETS, tf.constant(WEIGHTS), False, False
    counted = np.sign(WEIGHTS)
    with tf.Graph().as_default(), tf.Session() as sess:
        arguments = tf.constant(LOGITS), TARGETS, tf.constant(WEIGHTS), False, False
        found = sess.run([make(*arguments, True, True), make(*arguments, True, False), make(*arguments, False, True)])
        own = make(*arguments, softmax_loss_function=lambda labels, logits: tf.cast(labels, tf.float64))
        np.testing.assert_allclose(sess.run(own), TARGETS * WEIGHTS)
    np.testing.assert_allclose(found[0], each().sum() / counted.sum())
    np.testing.assert_allclose(found[1], each().sum(1) / counted.sum(1))
    np.testing.assert_allclose(found[2], each().sum(0) / counted.sum(0))


def test_a_weight_below_0_is_counted_as_one():
    weights = np.where(WEIGHTS > 0, -WEIGHTS, WEIGHTS)
    with tf.Graph().as_default(), tf.Session() as sess:
        given = tf.constant(LOGITS), TARGETS, tf.constant(weights), False, False
        both, time = [tf.contrib.seq2seq.sequence_loss(*given, True, batch) for batch in (True, False)]
        found = sess.run([both, time])
    np.testing.assert_allclose(found[0], -each().sum() / np.count_nonzero(weights))
    np.testing.assert_allclose(found[1], -each().sum(1) / np.count_nonzero(weights, 1))


def test_what_is_refused():
    make = tf.contrib.seq2seq.sequence_loss
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="Logits must be a tensor of rank 3"):
            make(tf.ones([3, 4]), TARGETS, tf.ones([3, 4]))
        with pytest.raises(ValueError, match="cannot both"):
            make(tf.constant(LOGITS), TARGETS, WEIGHTS, sum_over_timesteps=True)


def test_a_sum_beside_an_average_does_nothing_and_weights_below_0_count():
    """TensorFlow's own rule (1.15, tensorflow_addons): an average over a dim is all that is taken."""
    make, weights = tf.contrib.seq2seq.sequence_loss, WEIGHTS * [1, -1, 1, 1]
    with tf.Graph().as_default(), tf.Session() as sess:
        given = tf.constant(LOGITS), TARGETS, tf.constant(WEIGHTS)
        over_batch, over_time = make(*given, False, True, True, False), make(*given, True, False, False, True)
        summed = make(tf.constant(LOGITS), TARGETS, tf.constant(weights), False, False, True, True)
        none = make(tf.constant(LOGITS), TARGETS, tf.zeros([3, 4], tf.float64), False, False, True, True)
        found = sess.run([over_batch, over_time, summed, none])
    np.testing.assert_allclose(found[0], each().sum(0) / WEIGHTS.sum(0))
    np.testing.assert_allclose(found[1], each().sum(1) / WEIGHTS.sum(1))
    np.testing.assert_allclose(found[2], (each() * [1, -1, 1, 1]).sum() / np.count_nonzero(weights))
    assert found[3] == 0
