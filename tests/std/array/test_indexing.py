"""Gather, where, boolean_mask and scatters, with the values that TensorFlow gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import InvalidArgumentError, ShapeError

X = np.arange(24.0).reshape(2, 3, 4)


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def run(fetches: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feed)


def test_gather_over_batches() -> None:
    at = np.array([[2, 0], [1, 1]])
    x = tf.constant(X)
    y, z = tf.gather(x, at, batch_dims=1), tf.gather(x, at, axis=2, batch_dims=1)
    assert y is not None and z.shape.as_list() == [2, 3, 2]
    found = run([y, tf.batch_gather(x, at), z, tf.gather(x, at, axis=-1, batch_dims=-1), tf.gradients(y, x)[0]])
    np.testing.assert_array_equal(found[0], [X[b][at[b]] for b in range(2)])
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], [X[b][:, at[b]] for b in range(2)])
    np.testing.assert_array_equal(found[3], found[2])
    np.testing.assert_array_equal(found[4][:, :, 0], [[1, 0, 1], [0, 2, 0]])
    with pytest.raises(InvalidArgumentError, match=r"axis 1 of size 3"):
        run(tf.gather(x, tf.placeholder_with_default([[0], [3]], [2, 1]), batch_dims=1))


@pytest.mark.parametrize(
    ("params", "indices", "want"),
    [
        ([2, None], [None, 5], [2, 5]),
        ([None, 3, 4], [2, 2], [2, 2, 4]),
        ([None, None, None], [None, 7], [None, 7, None]),
        (None, [2, 2], None),
        ([4, None], [4, None], [4, None]),
    ],
)
def test_static_shapes_of_gathered_batches(params: Any, indices: Any, want: Any) -> None:
    """As TensorFlow 2.21's; both tensors know something of the batch."""
    x, at = tf.placeholder(tf.float32, params), tf.placeholder(tf.int32, indices)
    for y in (tf.batch_gather(x, at), tf.gather(x, at, batch_dims=1)):
        assert (y.shape.as_list() if y.shape.rank is not None else None) == want
    if params is None:
        np.testing.assert_array_equal(run(y, {x: X[:2], at: [[2, 0], [1, 1]]}), [X[0, [2, 0]], X[1, [1, 1]]])


def test_gather_nd_over_batches() -> None:
    assert run(tf.gather_nd(X, [[[1, 2]], [[0, 3]]], batch_dims=1)).tolist() == [[X[0, 1, 2]], [X[1, 0, 3]]]
    np.testing.assert_array_equal(run(tf.gather_nd(X, [[1], [0]], batch_dims=1)), [X[0, 1], X[1, 0]])


def test_a_vector_chooses_rows() -> None:
    a, b = [[1, 2], [3, 4]], [[5, 6], [7, 8]]
    assert run(tf.where([True, False], a, b)).tolist() == [[1, 2], [7, 8]]
    assert run(tf.where_v2([True, False], a, b)).tolist() == [[1, 6], [3, 8]]
    assert tf.where([True, False, True], np.ones([3, 2]), np.zeros([3, 2])).shape.as_list() == [3, 2]
    with pytest.raises(ShapeError):
        tf.where([True, False, True], a, b)


def test_a_condition_of_unknown_rank_chooses_rows_when_it_is_a_vector() -> None:
    condition, x = tf.placeholder(tf.bool), tf.placeholder(tf.float32)
    y = tf.where(condition, x, -x)
    (dx,) = tf.gradients(y, x)
    with tf.Session() as session:
        for given, value in [([True, False], np.ones((2, 2))), (True, np.ones(2)), ([True, False], np.ones(2))]:
            got, slope = session.run([y, dx], {condition: given, x: value})
            sign = np.where(np.reshape(given, [-1, 1]) if value.ndim == 2 else given, 1, -1)
            np.testing.assert_array_equal(got, sign * value)
            np.testing.assert_array_equal(slope, sign * np.ones_like(value))


def test_a_dim_that_one_operand_of_where_knows_is_that_of_both() -> None:
    """Static shapes are TensorFlow's: those that it merges. What is known to broadcast does."""
    mask, unknown = tf.placeholder(tf.bool), tf.placeholder(tf.float32)
    table = [
        (unknown, tf.ones([2, 3]), [2, 3]), (tf.placeholder(tf.float32, [None, 3]), tf.ones([2, 3]), [2, 3]),
        (tf.placeholder(tf.float32, [2, None]), tf.placeholder(tf.float32, [None, 3]), [2, 3]),
        (0.0, unknown, None), (tf.ones([2, 3]), 0.0, None), (unknown, unknown, None),
    ]  # fmt: skip
    for x, y, dims in table:
        for given in (mask, tf.placeholder(tf.bool, [None, None])):
            for one, other in ((x, y), (y, x)):
                found = tf.where(given, one, other).shape
                assert (None if found.ndims is None else found.as_list()) == dims or (
                    dims is None and given is not mask
                )
    wrong = tf.where(mask, unknown, tf.ones([1, 3]))
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="do not agree"):
        session.run(wrong, {mask: np.ones([2, 3], bool), unknown: np.ones([2, 3])})


def test_where_gives_indices() -> None:
    found = tf.where([[True, False], [True, True]])
    assert found.shape.as_list() == [None, 2]
    assert run(found).tolist() == [[0, 0], [1, 0], [1, 1]]


def test_boolean_mask() -> None:
    x = tf.constant(X)
    rows, flat, inner = (
        tf.boolean_mask(x, [True, False]),
        tf.boolean_mask(x, X[..., 0] % 8 == 0),
        tf.boolean_mask(x, [True, False, True], axis=1),
    )
    assert [t.shape.as_list() for t in (rows, flat, inner)] == [[None, 3, 4], [None, 4], [2, None, 4]]
    found = run([rows, flat, inner, tf.gradients(flat, x)[0]])
    np.testing.assert_array_equal(found[0], X[[0]])
    np.testing.assert_array_equal(found[1], X[X[..., 0] % 8 == 0])
    np.testing.assert_array_equal(found[2], X[:, [0, 2]])
    np.testing.assert_array_equal(found[3][..., 1], X[..., 0] % 8 == 0)
    with pytest.raises(ShapeError, match="expected that of the tensor"):
        tf.boolean_mask(x, [True, False, True])
    with pytest.raises(InvalidArgumentError, match="scalar"):
        tf.boolean_mask(x, True)


def test_repeat() -> None:
    late = tf.placeholder(tf.int32, [None])
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    y = tf.repeat(x, late, axis=0)
    found = run(
        [
            tf.repeat([3, 4], 2),
            tf.repeat(x, [2, 1], axis=1),
            y,
            tf.convert_to_tensor(tf.gradients(y, x)[0]),
            tf.repeat(x, late, axis=-1),
        ],
        {late: [0, 3]},
    )
    assert found[0].tolist() == [3, 3, 4, 4]
    assert found[1].tolist() == [[1, 1, 2], [3, 3, 4]]
    assert found[2].tolist() == [[3, 4]] * 3
    assert found[3].tolist() == [[0, 0], [3, 3]]
    assert found[4].tolist() == [[2, 2, 2], [4, 4, 4]]


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("mul", [[0, 2, 4], [12, 16, 20]]),
        ("div", [[0, 0.5, 1], [0.75, 1, 1.25]]),
        ("min", [[0, 1, 2], [2, 2, 2]]),
        ("max", [[2, 2, 2], [3, 4, 5]]),
        ("add", [[2, 3, 4], [7, 8, 9]]),
    ],
)
def test_rows_of_a_variable(name: str, want: list[list[float]]) -> None:
    v = tf.Variable(np.arange(6.0).reshape(2, 3))
    y = getattr(tf, f"scatter_{name}")(v, [1, 0, 1], np.full((3, 3), 2.0))
    assert run(y).tolist() == want


def test_slices_of_a_variable() -> None:
    v = tf.Variable(np.zeros((2, 3)))
    y = tf.scatter_nd_update(v, [[0, 1], [1, 2]], [5.0, 6.0])
    with tf.control_dependencies([y]):
        y = tf.scatter_nd_add(v, [[0, 1], [0, 1]], [1.0, 1.0])
    with tf.control_dependencies([y]):
        y = tf.scatter_nd_sub(v, [[1]], [[1.0, 1.0, 1.0]])
    assert run(y).tolist() == [[0, 7, 0], [-1, -1, 5]]
    assert run(tf.batch_scatter_update(v, [[0], [2]], [[9.0], [8.0]])).tolist() == [[9, 0, 0], [0, 0, 8]]


def test_updates_that_are_known_not_to_fit() -> None:
    v = tf.Variable(tf.zeros([4, 2]))
    with pytest.raises(ShapeError, match=r"updates have shape \[2,2\]"):
        tf.scatter_add(v, tf.placeholder(tf.int32, [3]), tf.placeholder(tf.float32, [2, 2]))
    with pytest.raises(ShapeError, match="updates have shape"):
        tf.scatter_nd_add(v, [[0, 1]], tf.placeholder(tf.float32, [1, 2]))


def test_tensor_scatters_and_their_gradients() -> None:
    x, updates = tf.constant([1.0, 2.0, 3.0]), tf.constant([5.0, 7.0, 9.0])
    at = [[2], [0], [2]]
    results = [f(x, at, updates) for f in (tf.tensor_scatter_update, tf.tensor_scatter_add, tf.tensor_scatter_sub)]
    weights = [1.0, 2.0, 4.0]
    grads = [tf.gradients(y * weights, [x, updates]) for y in results]
    found, slopes = run([results, grads])
    assert [f.tolist() for f in found] == [[7, 2, 9], [8, 2, 17], [-6, 2, -11]]
    assert [[g.tolist() for g in pair] for pair in slopes] == [
        [[0, 2, 0], [0, 1, 4]],  # of two updates of one place the first has no effect
        [[1, 2, 4], [4, 1, 4]],
        [[1, 2, 4], [-4, -1, -4]],
    ]


def test_sparse_to_dense() -> None:
    values, default = tf.constant([5.0, 6.0]), tf.constant(-1.0)
    y = tf.sparse_to_dense([[0, 1], [2, 0]], [3, 2], values, default)
    found = run([y, *tf.gradients(y * [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [values, default])])
    assert [f.tolist() for f in found] == [[[-1, 5], [-1, -1], [6, -1]], [2, 5], 14.0]
    assert run(tf.sparse_to_dense(1, [3], 7)).tolist() == [0, 7, 0]
    assert run(tf.sparse_to_dense([2, 0], [3], [1, 2], validate_indices=False)).tolist() == [2, 0, 1]
    with pytest.raises(InvalidArgumentError, match="out of order"):
        run(tf.sparse_to_dense([2, 0], [3], [1, 2]))


def test_one_hot_of_two_dtypes() -> None:
    with pytest.raises(tf.errors.DTypeError, match="on_value and off_value differ in dtype"):
        tf.one_hot([1], 3, on_value=1.0, off_value=0)
