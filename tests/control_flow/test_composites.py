"""SparseTensors and IndexedSlices as loop variables and results of branches, as TensorFlow has them."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as sess:
        yield sess


def _sparse(values):
    return tf.SparseTensor([[0], [3]], values, [10])


def _rows(values):
    return tf.IndexedSlices(values, tf.constant([0, 3]), tf.constant([10]))


def _twice(x):
    if isinstance(x, tf.SparseTensor):
        return tf.SparseTensor(x.indices, x.values * 2.0, x.dense_shape)
    return tf.IndexedSlices(x.values * 2.0, x.indices, x.dense_shape)


@pytest.mark.parametrize("make", [_sparse, _rows])
@pytest.mark.parametrize("limit", [None, 3])
def test_a_loop_variable_of_several_tensors(session, make, limit):
    values = tf.constant([2.0, 4.0])
    i, result = tf.while_loop(
        lambda i, _: i < 10, lambda i, x: [i + 1, _twice(x)], [0, make(values)], maximum_iterations=limit
    )
    times = 2.0 ** (limit or 10)
    assert type(result) is type(make(values)) and result.values.shape.as_list() == [2]
    assert session.run([i, result.values]) == [limit or 10, pytest.approx([2 * times, 4 * times])]
    (gradient,) = tf.gradients(result.values, values)
    assert gradient.eval().tolist() == [times, times]


def test_one_loop_variable_comes_back_alone_or_as_it_was(session):
    def loop(**more):
        count = lambda x: tf.reduce_sum(x.values) < 100.0  # noqa: E731
        return tf.while_loop(count, _twice, [_sparse(tf.constant([1.0, 2.0]))], **more)

    assert session.run(loop()).values.tolist() == [64.0, 128.0]
    (same,) = loop(return_same_structure=True)
    assert session.run(same).dense_shape.tolist() == [10]


@pytest.mark.parametrize("dims, wanted", [(None, 1), ([1], 1), ([None], None)])
def test_the_invariant_of_a_sparse_tensor_is_its_rank(session, dims, wanted):
    given = None if dims is None else [tf.TensorShape([]), tf.TensorShape(dims)]
    _, result = tf.while_loop(lambda i, _: i < 3, lambda i, x: [i + 1, _twice(x)], [0, _sparse([1.0, 2.0])], given)
    assert result.dense_shape.shape.as_list() == [wanted]
    if dims is not None:
        assert result.values.shape.as_list() == [None] and result.indices.shape.as_list() == [None, wanted]


def test_the_invariant_of_rows_is_that_of_their_values(session):
    rows = tf.IndexedSlices(tf.ones([2, 2]), tf.constant([0, 3]), tf.constant([10, 2]))
    given = [tf.TensorShape([]), tf.TensorShape([None, 2])]
    _, result = tf.while_loop(lambda i, _: i < 3, lambda i, x: [i + 1, _twice(x)], [0, rows], given)
    assert [t.shape.as_list() for t in (result.values, result.indices, result.dense_shape)] == [[None, 2], [None], [2]]
    bare = tf.IndexedSlices(tf.ones([2, 2]), tf.constant([0, 3]))
    _, result = tf.while_loop(lambda i, _: i < 3, lambda i, x: [i + 1, _twice(x)], [0, bare], given)
    assert result.dense_shape is None and session.run(result).values.tolist() == [[8.0, 8.0]] * 2
    with pytest.raises(ValueError):
        tf.while_loop(lambda i, _: i < 3, lambda i, x: [i + 1, x], [0, _sparse([1.0, 2.0])], [[], [5]])


def test_a_body_that_grows_a_sparse_tensor(session):
    def grown(i, x):
        more = tf.cast(tf.reshape(i, [1, 1]), tf.int64)
        return i + 1, tf.SparseTensor(tf.concat([x.indices, more], 0), tf.concat([x.values, [1.0]], 0), x.dense_shape)

    given = [tf.TensorShape([]), tf.TensorShape([1])]
    start = tf.SparseTensor(np.zeros((0, 1), np.int64), tf.zeros([0]), [10])
    _, result = tf.while_loop(lambda i, _: i < 4, grown, [0, start], given)
    found = session.run(result)
    assert found.indices.tolist() == [[0], [1], [2], [3]] and found.values.tolist() == [1.0] * 4


@pytest.mark.parametrize("pred", [True, False])
def test_branches_that_return_sparse_tensors(session, pred):
    x = _sparse(tf.constant([2.0, 4.0]))
    then = lambda: {"a": tf.SparseTensor(x.indices + 1, x.values + 1, x.dense_shape), "b": (tf.constant(1),)}  # noqa: E731
    other = lambda: {"a": x, "b": (tf.constant(2),)}  # noqa: E731
    p = tf.placeholder(tf.bool, [])
    made = tf.cond(p, then, other)
    assert isinstance(made["a"], tf.SparseTensor) and made["a"].values.shape.as_list() == [2]
    found = session.run(made, {p: pred})
    assert found["a"].values.tolist() == ([3.0, 5.0] if pred else [2.0, 4.0])
    assert found["a"].indices.tolist() == ([[1], [4]] if pred else [[0], [3]]) and found["b"] == (2 - pred,)
    (gradient,) = tf.gradients(made["a"].values, x.values)
    assert session.run(gradient, {p: pred}).tolist() == [1.0, 1.0]
    alone = tf.cond(p, lambda: x, lambda: _twice(x))
    assert session.run(alone, {p: pred}).values.tolist() == ([2.0, 4.0] if pred else [4.0, 8.0])


def test_branches_of_two_kinds_are_refused(session):
    x = _sparse(tf.constant([2.0, 4.0]))
    with pytest.raises(ValueError, match="nested differently"):
        tf.cond(tf.constant(True), lambda: x, lambda: x.values)
