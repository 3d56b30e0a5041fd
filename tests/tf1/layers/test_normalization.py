"""Batch normalisation, flatten and dropout: statistics and their updates against NumPy, ``training`` in all its forms."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import ArgumentTypeError, InvalidArgumentError, ShapeError, UnimplementedError

L = tf.layers
DATA = np.random.default_rng(0).normal(2.0, 3.0, (4, 3, 2, 5)).astype(np.float32)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("tensor", [True, False])
def test_statistics_of_the_batch_then_of_the_averages(fused, tensor):
    flag = tf.placeholder_with_default(True, []) if tensor else True
    x = tf.placeholder(tf.float32, [None, 3, 2, 5])
    y = L.batch_normalization(x, momentum=0.75, training=flag, fused=fused)
    still = L.batch_normalization(
        x, training=~flag if tensor else False, fused=fused, reuse=True, name="batch_normalization"
    )
    names = [v.op.name.partition("/")[2] for v in tf.global_variables()]
    assert names == ["gamma", "beta", "moving_mean", "moving_variance"]
    assert [v.op.name.partition("/")[2] for v in tf.trainable_variables()] == ["gamma", "beta"]
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    assert [u.name for u in updates[:2]] == [f"batch_normalization/AssignMovingAvg{i}" for i in ("", "_1")]
    mean, variance = DATA.mean((0, 1, 2)), DATA.var((0, 1, 2))
    unbiased = variance * 24 / 23 if fused else variance
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        np.testing.assert_allclose(
            sess.run(y, {x: DATA}), (DATA - mean) / np.sqrt(variance + 1e-3), rtol=1e-4, atol=1e-5
        )
        if tensor:  # what does not train, moves nothing
            sess.run(updates[:2], {x: DATA, flag: False})
        sess.run(updates[:2], {x: DATA})
        kept = sess.run(tf.global_variables()[2:])
        np.testing.assert_allclose(kept, [0.25 * mean, 0.75 + 0.25 * unbiased], rtol=1e-4)
        expected = (DATA - kept[0]) / np.sqrt(kept[1] + 1e-3)
        np.testing.assert_allclose(sess.run(still, {x: DATA}), expected, rtol=1e-4, atol=1e-5)


def test_axes_that_are_kept_apart():
    made = [L.batch_normalization(DATA, a, training=True, center=False) for a in (1, (1, 3), [-2])]
    shapes = [[3], [1, 3, 1, 5], [2]]
    assert [v.shape.as_list() for v in tf.trainable_variables()] == shapes
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for value, over in zip(sess.run(made), [(0, 2, 3), (0, 2), (0, 1, 3)], strict=True):
            assert abs(value.mean(over)).max() < 1e-5 and abs(value.var(over) - 1).max() < 1e-2


def test_half_precision_keeps_statistics_in_single():
    x = tf.constant(DATA[0, 0], tf.float16)
    y = L.batch_normalization(x, training=True)
    assert y.dtype == tf.float16 and {v.dtype for v in tf.global_variables()} == {tf.float32}
    assert L.batch_normalization(tf.constant(DATA, tf.float64)).dtype == tf.float64


def test_gradients_and_updates_of_a_training_step():
    x = tf.placeholder(tf.float32, [None, 5])
    loss = tf.reduce_mean(tf.sin(L.dense(L.batch_normalization(x, training=True), 1, kernel_initializer="ones")))
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train = tf.train.GradientDescentOptimizer(0.05).minimize(loss)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        first = [sess.run([loss, train], {x: DATA[:, 0, 0]})[0] for _ in range(6)]
        assert first == sorted(first, reverse=True) and abs(sess.run(tf.global_variables()[2])).max() > 0.05


def test_a_partitioner_leaves_the_statistics_whole():
    with tf.variable_scope("s", partitioner=tf.fixed_size_partitioner(2)):
        L.batch_normalization(DATA)
    names = [v.op.name for v in tf.global_variables()]
    assert "s/batch_normalization/moving_mean" in names and "s/batch_normalization/gamma/part_0" in names


def test_what_is_not_trainable_has_no_updates():
    L.batch_normalization(DATA, training=True, trainable=False)
    assert tf.get_collection(tf.GraphKeys.UPDATE_OPS) == [] == tf.trainable_variables()


def test_dropout_scales_what_it_keeps():
    x, flag = tf.ones([100, 8]), tf.placeholder(tf.bool, [])
    rows = L.dropout(x, 0.25, noise_shape=[None, 1], training=True, seed=1)
    either = L.dropout(x, 0.5, training=flag)
    assert L.dropout(x).op.name == "dropout_2/Identity" and rows.shape.as_list() == [100, 8]
    with tf.Session() as sess:
        row = sess.run(rows)
        assert set(np.unique(row)) == {0.0, np.float32(1 / 0.75)} and (row == row[:, :1]).all()
        assert 60 < (row[:, 0] > 0).sum() < 90
        assert (sess.run(either, {flag: False}) == 1).all() and 0.3 < (sess.run(either, {flag: True}) == 0).mean() < 0.7


def test_flatten():
    x = tf.placeholder(tf.float32, [None, 3, 2, 5])
    last, first = L.flatten(x), L.flatten(x, data_format="channels_first")
    odd = L.flatten(tf.placeholder_with_default(DATA, [None, None, 2, 5]))
    assert last.op.name == "flatten/Reshape" and last.shape.as_list() == [None, 30]
    assert odd.shape.as_list() == [None, None] and L.flatten(tf.zeros([4])).shape.as_list() == [4, 1]
    with tf.Session() as sess:
        a, b, c = sess.run([last, first, odd], {x: DATA})
    assert (a == DATA.reshape(4, 30)).all() and (b == np.moveaxis(DATA, 1, -1).reshape(4, 30)).all() and (a == c).all()


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda: L.batch_normalization(DATA, renorm=True), UnimplementedError, "renorm"),
        (lambda: L.batch_normalization(DATA, virtual_batch_size=2), UnimplementedError, "virtual_batch_size"),
        (lambda: L.batch_normalization(DATA, axis=4), InvalidArgumentError, "axes of rank 4"),
        (lambda: L.batch_normalization(DATA, axis=[1, -3]), InvalidArgumentError, "wrong axis"),
        (lambda: L.batch_normalization(tf.placeholder(tf.float32)), ShapeError, "must know the rank"),
        (lambda: L.batch_normalization(tf.placeholder(tf.float32, [2, None])), ShapeError, "keeps apart"),
        (lambda: L.batch_normalization(DATA, training="yes"), ArgumentTypeError, "a flag"),
        (lambda: L.dropout(DATA, training=None), ArgumentTypeError, "a flag"),
        (lambda: L.flatten(DATA, data_format="first"), InvalidArgumentError, "channels_first"),
    ],
)
def test_what_they_refuse(wrong, error, words):
    with pytest.raises(error, match=words):
        wrong()
