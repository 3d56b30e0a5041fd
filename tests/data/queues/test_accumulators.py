"""Accumulators in graphs. What is expected was worked out by hand."""

from __future__ import annotations

import threading

import graphdock as tf
import numpy as np
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


def _refusals(cases, make):
    for gradient, message in cases:
        acc = make()
        fed = [tf.placeholder_with_default(tf.constant(part), None) for part in gradient]
        with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=message):
            session.run(acc.apply_grad(*fed))


def test_gradients_of_other_shapes_are_refused_in_tensorflows_words():
    first = tf.ConditionalAccumulator(tf.float32)
    with tf.Session() as session:
        session.run(first.apply_grad([1.0, 2.0]))
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"Shape mismatch: expected \[2\], got \[1,2\]"):
            session.run(first.apply_grad([[1.0, 2.0]]))
        with pytest.raises(tf.errors.InvalidArgumentError, match="num_required must be positive, but was -1"):
            session.run(first.take_grad(-1))
    cases = [
        (([1.0, 2.0],), r"Shape mismatch: expected \[2,\?\], got \[2\]"),
        (([[1.0], [2.0], [3.0]],), r"Shape mismatch: expected \[2,\?\], got \[3,1\]"),
    ]
    _refusals(cases, lambda: tf.ConditionalAccumulator(tf.float32, shape=[2, None]))


def test_rows_of_other_shapes_are_refused_in_tensorflows_words():
    row = [[1.0, 1.0, 1.0]]
    cases = [
        (([[0, 1], [1, 0]], [1.0, 2.0]), r"Input indices should be vector but received shape: \[2,2\]"),
        ((0, [1.0]), r"Input indices should be vector but received shape: \[\]"),
        (([0], 1.0), r"Values cannot be 0-dimensional\."),
        (([0, 1], row), "Expected 2 non-empty input values, got 1"),
        (([0, 3], row * 2), "index of slice 1 exceeded limits of shape; index is 3 exceeded 3"),
        (([-1], row), "below 0"),
        (([0], row, [3]), "Shape mismatch: expected shape rank at least 2, got 1"),
        (([0], row, [3, 4]), "Shape mismatch: expected shape dim 1 to be 3, got 4"),
        (([0], [1.0]), "Shape mismatch: expected values rank at least 2, got 1"),
        (([0], [[1.0, 2.0]]), "Shape mismatch: expected values dim 1 to be 3, got 2"),
    ]
    _refusals(cases, lambda: tf.SparseConditionalAccumulator(tf.float32, shape=[3, 3]))
    own = [  # TensorFlow takes these: a gradient whose own shape says otherwise
        (([0], row, [3, 4]), "Shape mismatch: expected values dim 1 to be 4, got 3"),
        (([0], row, [3, 3, 2]), "Shape mismatch: expected values rank 3, got 2"),
        (([5], row, [3, 3]), "index of slice 0 exceeded limits of shape; index is 5 exceeded 3"),
    ]
    _refusals(own, lambda: tf.SparseConditionalAccumulator(tf.float32))


def test_rows_are_like_the_first_ones_until_they_are_taken():
    acc = tf.SparseConditionalAccumulator(tf.float32, shape=[None, 2, None])
    with tf.Session() as session:
        session.run(acc.apply_grad([0], [[[1.0, 2.0, 3.0]] * 2]))
        for values, message in (
            ([[1.0, 2.0]], "expected values rank 3, got 2"),
            ([[[1.0] * 4] * 2], "expected values dim 2 to be 3, got 4"),
            ([[[1.0] * 3] * 3], "expected values dim 1 to be 2, got 3"),
        ):
            with pytest.raises(tf.errors.InvalidArgumentError, match=f"Shape mismatch: {message}"):
                session.run(acc.apply_grad([0], values))
        session.run(acc.take_grad(1))
        session.run(acc.apply_grad([0], [[[1.0] * 4] * 2], local_step=1))


def test_a_take_that_a_closed_session_ends_was_cancelled(start):
    for acc in (tf.ConditionalAccumulator(tf.float32), tf.SparseConditionalAccumulator(tf.float32)):
        began = threading.Event()
        with tf.control_dependencies([tf.py_func(lambda began=began: np.bool_(began.set() is None), [], tf.bool)]):
            take = acc.take_grad(1)
        session = tf.Session()
        waiting = start(lambda session=session, take=take: session.run(take))
        began.wait(60)
        session.close()
        with pytest.raises(tf.errors.CancelledError, match="was cancelled"):
            raise waiting.join().error
