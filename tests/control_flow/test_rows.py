"""Branches that return IndexedSlices, as TensorFlow 1 merges them."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def rows(first, indices=(10,), shape=None):
    return tf.IndexedSlices(
        tf.constant(first), tf.constant(list(indices)), None if shape is None else tf.constant(shape)
    )


def test_rows_of_the_chosen_branch():
    p = tf.placeholder(tf.bool, [])
    chosen = tf.cond(p, lambda: rows([1.0, 2.0], (3, 1)), lambda: rows([5.0], (2,)))
    assert isinstance(chosen, tf.IndexedSlices) and chosen.dense_shape is None
    assert chosen.values.shape.as_list() == [None]
    with tf.Session() as sess:
        assert [v.tolist() for v in sess.run([chosen.values, chosen.indices], {p: True})] == [[1, 2], [3, 1]]
        assert [v.tolist() for v in sess.run([chosen.values, chosen.indices], {p: False})] == [[5], [2]]


def test_rows_in_structures_and_of_the_graph_outside():
    p = tf.placeholder(tf.bool, [])
    outside = rows([[1.0, 2.0]], (3,), [5, 2])
    result = tf.cond(
        p,
        lambda: {"a": outside, "b": (tf.constant(1),)},
        lambda: {"a": rows([[0.5, 0.5]], (0,), [5, 2]), "b": (tf.constant(2),)},
    )
    assert isinstance(result["a"], tf.IndexedSlices) and isinstance(result["b"], tuple)
    with tf.Session() as sess:
        whole, number = sess.run([tf.convert_to_tensor(result["a"]), result["b"][0]], {p: True})
        assert whole[3].tolist() == [1, 2] and whole.shape == (5, 2) and number == 1


def test_a_whole_tensor_beside_rows():
    p = tf.placeholder(tf.bool, [])
    result = tf.cond(p, lambda: rows([[1.0, 2.0]], (3,), [4, 2]), lambda: tf.ones([4, 2]))
    assert isinstance(result, tf.IndexedSlices)
    with tf.Session() as sess:
        assert sess.run(tf.convert_to_tensor(result), {p: False}).tolist() == [[1, 1]] * 4
        assert sess.run(tf.convert_to_tensor(result), {p: True})[:, 1].tolist() == [0, 0, 0, 2]


def test_indices_of_two_dtypes_become_wide():
    p = tf.placeholder(tf.bool, [])
    narrow = lambda: tf.IndexedSlices(tf.ones([1]), tf.constant([1]), tf.constant([3]))  # noqa: E731
    wide = lambda: tf.IndexedSlices(tf.ones([1]), tf.constant([2], tf.int64), tf.constant([3], tf.int64))  # noqa: E731
    result = tf.cond(p, narrow, wide)
    assert result.indices.dtype is tf.int64
    with tf.Session() as sess:
        assert sess.run(tf.convert_to_tensor(result), {p: False}).tolist() == [0, 0, 1]


def test_gradients_go_through():
    p, table = tf.placeholder(tf.bool, []), tf.Variable(np.ones((4, 2), np.float32))

    def slope():
        return tf.gradients(tf.reduce_sum(tf.gather(table, [1, 1]) * 3.0), table)[0]

    update = tf.cond(p, slope, lambda: rows([[0.0, 0.0]], (0,), [4, 2]))
    step = tf.train.GradientDescentOptimizer(0.5).apply_gradients([(update, table)])
    with tf.Session() as sess:
        sess.run(table.initializer)
        sess.run(step, {p: False})
        assert sess.run(table).tolist() == [[1, 1]] * 4
        sess.run(step, {p: True})
        assert sess.run(table)[:, 0].tolist() == [1, -2, 1, 1]


def test_rows_beside_an_operation_are_refused():
    with pytest.raises(ValueError):
        tf.cond(tf.constant(True), lambda: rows([1.0]), lambda: tf.no_op())
