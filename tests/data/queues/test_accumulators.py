"""Accumulators in graphs. What is expected was worked out by hand."""

from __future__ import annotations

import graphdock as tf
import pytest


def test_gradients_of_workers(start):
    acc = tf.ConditionalAccumulator(tf.float32, shape=[2], name="acc")
    grad, step = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.int64, [])
    apply, take, count = acc.apply_grad(grad, step), acc.take_grad(2), acc.num_accumulated()
    assert take.shape == [2] and acc.name == "acc" and acc.dtype is tf.float32
    with tf.Session() as session:
        session.run(apply, {grad: [1, 2], step: 0})
        waiting = start(lambda: session.run(take))
        assert session.run(count) in (0, 1)
        session.run(apply, {grad: [3, 6], step: 0})
        assert waiting.join().result.tolist() == [2, 4]
        session.run(apply, {grad: [9, 9], step: 0})
        assert session.run(count) == 0  # of a step before the global one
        session.run(acc.set_global_step(0))
        session.run(apply, {grad: [1, 1], step: 1})
        assert session.run(count) == 1
    with pytest.raises(ValueError, match="compatible"):
        acc.apply_grad([1.0, 2.0, 3.0])


def test_rows_of_gradients():
    acc = tf.SparseConditionalAccumulator(tf.float32, shape=[5, 2])
    one = acc.apply_grad([0, 2], [[1.0, 1.0], [2.0, 2.0]], [5, 2])
    slices = tf.IndexedSlices(tf.constant([[6.0, 6.0]]), tf.constant([2]))
    with tf.Session() as session:
        session.run([one, acc.apply_indexed_slices_grad(slices)])
        found = session.run(acc.take_indexed_slices_grad(2))
        assert found.indices.tolist() == [0, 2] and found.values.tolist() == [[1, 1], [4, 4]]
        assert found.dense_shape.tolist() == [5, 2]
    total = tf.SparseConditionalAccumulator(tf.float32, reduction_type="SUM")
    with tf.Session() as session:
        session.run([total.apply_grad([1], [2.0]), total.apply_grad([1], [3.0])])
        indices, values, _ = session.run(total.take_grad(1))
        assert indices.tolist() == [1] and values.tolist() == [5]
