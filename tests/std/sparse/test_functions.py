"""Sparse tensors: fetched and fed, with the values and gradients that TensorFlow gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import DTypeError, InvalidArgumentError, ShapeError

PLACES = [[0, 1], [1, 0], [1, 2], [2, 3]]
DENSE = np.array([[0, 1, 0, 0], [-3, 0, 2, 0], [0, 0, 0, 4.0]])
OTHER = np.array([[0, -1, 5, 0], [0, 0, 0, 0], [0, 0, 0, -6.0]])
X = np.arange(12.0).reshape(3, 4)


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def run(fetches: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(fetches, feed)


def sparse(dense: Any = DENSE) -> tf.SparseTensor:
    at = np.argwhere(dense)
    return tf.SparseTensor(at, dense[tuple(at.T)], dense.shape)


def dense(value: tf.SparseTensorValue) -> np.ndarray:
    out = np.zeros(value.dense_shape)
    np.add.at(out, tuple(value.indices.T), value.values)
    return out


def test_a_session_fetches_a_value() -> None:
    found = run({"a": sparse(), "b": [tf.constant(1)]})["a"]
    assert isinstance(found, tf.SparseTensorValue)
    assert found.indices.tolist() == PLACES
    assert (found.values.tolist(), found.dense_shape.tolist()) == ([1, -3, 2, 4], [3, 4])


@pytest.mark.parametrize("shape", [None, [None, 4], [3, 4]])
def test_a_placeholder_is_fed_values_and_tuples(shape: Any) -> None:
    sp = tf.sparse_placeholder(tf.float64, shape)
    assert (sp.shape.as_list() if shape else sp.shape.rank) == shape
    y = tf.sparse.to_dense(sp)
    with tf.Session() as session:
        for value in (tf.SparseTensorValue(PLACES, [1, -3, 2, 4], [3, 4]), (np.array(PLACES), [1, -3, 2, 4], (3, 4))):
            got, back = session.run([y, sp], {sp: value})
            np.testing.assert_array_equal(got, DENSE)
            assert back.dense_shape.tolist() == [3, 4]
        assert session.run(y, {sp: tf.SparseTensorValue([], [], [3, 4])}).tolist() == np.zeros((3, 4)).tolist()
        with pytest.raises(InvalidArgumentError, match=r"fed a float.*\n.*expected a tf.SparseTensorValue"):
            session.run(y, {sp: 1.0})


def test_what_a_sparse_tensor_says_of_itself() -> None:
    sp = sparse()
    assert (sp.dtype, sp.shape.as_list(), sp.get_shape().as_list()) == (tf.float64, [3, 4], [3, 4])
    assert sp.graph is tf.get_default_graph() and sp.op is sp.values.op
    assert tf.SparseTensor.from_value(sp) is sp
    assert run([tf.size(sp), tf.rank(sp), tf.rank(tf.sparse_placeholder(tf.int32, [None]))]) == [12, 2, 1]
    with tf.Session():
        np.testing.assert_array_equal(dense(sp.eval()), DENSE)
    with pytest.raises(ShapeError, match="1 indices and 2 values"):
        tf.SparseTensor([[0]], [1.0, 2.0], [3])
    with pytest.raises(ShapeError, match="dense_shape has 2"):
        tf.SparseTensor([[0]], [1.0], [3, 4])
    with pytest.raises(DTypeError, match=r"no Tensor"):
        tf.convert_to_tensor(sp)
    assert tf.convert_to_tensor_or_sparse_tensor(sp) is sp
    assert isinstance(tf.convert_to_tensor_or_sparse_tensor(tf.SparseTensorValue([[0]], [1], [2])), tf.SparseTensor)
    with pytest.raises(DTypeError, match="another dtype"):
        tf.convert_to_tensor_or_sparse_tensor(sp, tf.int32)


@pytest.mark.parametrize(
    ("function", "want"),
    [
        (lambda a, b: tf.sparse_add(a, b), DENSE + OTHER),
        (lambda a, b: tf.sparse.add(a, tf.constant(X)), DENSE + X),
        (lambda a, b: tf.sparse_maximum(a, b), np.maximum(DENSE, OTHER)),
        (lambda a, b: tf.sparse.minimum(a, b), np.minimum(DENSE, OTHER)),
        (lambda a, b: a * X, DENSE * X),
        (lambda a, b: a * X[0], DENSE * X[0]),
        (lambda a, b: a / (X[:, :1] + 1), DENSE / (X[:, :1] + 1)),
        (lambda a, b: 2.0 * a, DENSE * 2),
        (lambda a, b: tf.sparse_concat(0, [a, b]), np.concatenate([DENSE, OTHER], 0)),
        (lambda a, b: tf.sparse.concat(-1, [a, b]), np.concatenate([DENSE, OTHER], 1)),
        (lambda a, b: tf.sparse_slice(a, [0, 1], [2, 9]), DENSE[:2, 1:]),
        (lambda a, b: tf.sparse.reshape(a, [2, -1]), DENSE.reshape(2, 6)),
        (lambda a, b: tf.sparse_transpose(a), DENSE.T),
        (lambda a, b: tf.sparse.transpose(a, [1, 0]), DENSE.T),
        (lambda a, b: tf.sparse.expand_dims(a, 1), DENSE[:, None]),
        (lambda a, b: tf.sparse_reset_shape(a, [4, 5]), np.pad(DENSE, [(0, 1), (0, 1)])),
        (lambda a, b: tf.sparse_reset_shape(tf.sparse_slice(a, [0, 0], [2, 4])), DENSE[:2, :3]),
        (lambda a, b: tf.sparse_retain(a, [True, False, True, False]), DENSE * [[1, 1, 1, 0], [0, 1, 1, 0], [0] * 4]),
        (lambda a, b: tf.sparse.from_dense(X), X),
        (lambda a, b: tf.sparse_reduce_sum_sparse(a, 1), DENSE.sum(1)),
        (lambda a, b: tf.sparse.reduce_max_sparse(a, 0, keepdims=True), [[-3, 1, 2, 4]]),
        (lambda a, b: tf.sparse.eye(2, 3, tf.float64), np.eye(2, 3)),
    ],
)
def test_values(function: Callable[..., Any], want: Any) -> None:
    late = [tf.sparse_placeholder(tf.float64) for _ in range(2)]
    feed = {
        sp: tf.SparseTensorValue(np.argwhere(d), d[tuple(np.argwhere(d).T)], d.shape)
        for sp, d in zip(late, (DENSE, OTHER), strict=True)
    }
    ranked = [tf.sparse_placeholder(tf.float64, [None, None]) for _ in range(2)]
    feed |= dict(zip(ranked, list(feed.values()), strict=True))
    cases = [function(sparse(), sparse(OTHER)), function(*ranked)]
    if "expand_dims" not in function.__code__.co_names:
        cases.append(function(*late))
    for found in run(cases, feed):
        value = dense(found) if isinstance(found, tf.SparseTensorValue) else found
        np.testing.assert_array_equal(value, want)
        if isinstance(found, tf.SparseTensorValue):
            assert found.indices.tolist() == sorted(found.indices.tolist())


@pytest.mark.parametrize("axis", [None, 0, -1, [0, 1], [1]])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions(axis: Any, keepdims: bool) -> None:
    at = axis if axis is None else tuple(np.atleast_1d(axis).tolist())
    ranked, late = sparse(), tf.sparse_placeholder(tf.float64)
    sums = [tf.sparse_reduce_sum(sp, axis, keepdims) for sp in (ranked, late)]
    most = tf.sparse.reduce_max(ranked, reduction_axes=axis, keep_dims=keepdims)
    found = run([*sums, most], {late: tf.SparseTensorValue(PLACES, [1, -3, 2, 4], [3, 4])})
    want = DENSE.sum(at, keepdims=keepdims)
    assert sums[0].shape.as_list() == list(want.shape)
    np.testing.assert_array_equal(found[0], want)
    np.testing.assert_array_equal(found[1], want)
    masked = np.ma.masked_equal(DENSE, 0).max(at, keepdims=keepdims)
    np.testing.assert_array_equal(found[2], np.ma.filled(masked, 0) if np.ma.isMaskedArray(masked) else masked)


@pytest.mark.parametrize("adjoint_a", [False, True])
@pytest.mark.parametrize("adjoint_b", [False, True])
def test_products_and_their_gradients(adjoint_a: bool, adjoint_b: bool) -> None:
    values = tf.constant([1.0, -3.0, 2.0, 4.0], tf.float64)
    left = DENSE.T if adjoint_a else DENSE
    right = np.random.default_rng(0).standard_normal((left.shape[1], 5))
    b = tf.constant(right.T if adjoint_b else right)
    y = tf.sparse_tensor_dense_matmul(tf.SparseTensor(PLACES, values, [3, 4]), b, adjoint_a, adjoint_b)
    weights = np.random.default_rng(1).standard_normal((left.shape[0], 5))
    first = tf.gradients(y * weights, [values, b])
    second = tf.convert_to_tensor(tf.gradients(first[0] * [1.0, 2.0, 3.0, 4.0], b)[0])
    got, dv, db, mixed = run([y, *first, second])
    np.testing.assert_allclose(got, left @ right, rtol=1e-12)
    full = weights @ right.T
    np.testing.assert_allclose(dv, (full.T if adjoint_a else full)[tuple(np.transpose(PLACES))], rtol=1e-12)
    want = left.T @ weights
    np.testing.assert_allclose(db, want.T if adjoint_b else want, rtol=1e-12)
    scaled = np.zeros((3, 4))
    scaled[tuple(np.transpose(PLACES))] = [1, 2, 3, 4]
    want = (scaled.T if adjoint_a else scaled).T @ weights
    np.testing.assert_allclose(mixed, want.T if adjoint_b else want, rtol=1e-12)


def test_a_dense_matrix_times_a_sparse_one() -> None:
    np.testing.assert_allclose(run(tf.sparse.matmul(X.T, sparse())), X.T @ DENSE)
    with pytest.raises((ShapeError, InvalidArgumentError), match="inner sizes differ"):
        run(tf.sparse.matmul(sparse(), X))


def test_softmax_leaves_absent_elements_absent() -> None:
    values = tf.constant([1.0, 1.0, 2.0, 5.0])
    y = tf.sparse_softmax(tf.SparseTensor(PLACES, values, [3, 4])).values
    found, slope = run([y, tf.gradients(y * [1.0, 1.0, 2.0, 3.0], values)[0]])
    low = 1 / (1 + np.e)
    np.testing.assert_allclose(found, [1, low, 1 - low, 1], rtol=1e-6)
    np.testing.assert_allclose(slope, [0, -low * (1 - low), low * (1 - low), 0], atol=1e-6)


def test_reorder_and_its_gradient() -> None:
    values = tf.constant([1.0, 2.0, 3.0])
    y = tf.sparse_reorder(tf.SparseTensor([[1, 1], [1, 0], [0, 2]], values, [2, 3]))
    found, slope = run([y, tf.gradients(y.values * [1.0, 2.0, 3.0], values)[0]])
    assert (found.indices.tolist(), found.values.tolist()) == ([[0, 2], [1, 0], [1, 1]], [3, 2, 1])
    assert slope.tolist() == [3, 2, 1]


def test_gradients_flow_through_values() -> None:
    values = tf.constant([1.0, -3.0, 2.0, 4.0], tf.float64)
    sp, weights = tf.SparseTensor(PLACES, values, [3, 4]), tf.constant(X)
    results = [
        tf.sparse.to_dense(sp) * weights,
        tf.sparse.to_dense(tf.sparse_add(sp, sparse(OTHER))) * weights,
        tf.sparse_reduce_sum(sp * X, 1),
        tf.sparse.to_dense(tf.sparse_transpose(sp)) * X.T,
        tf.sparse.to_dense(tf.sparse_concat(0, [sparse(OTHER), sp])) * np.concatenate([X, X]),
    ]
    for found in run([tf.convert_to_tensor(tf.gradients(y, values)[0]) for y in results]):
        np.testing.assert_array_equal(found, X[tuple(np.transpose(PLACES))])


def test_splits_are_longer_at_the_beginning() -> None:
    parts = run(tf.sparse_split(sp_input=sparse(), num_split=3, axis=1))
    for part, want in zip(parts, np.array_split(DENSE, 3, 1), strict=True):
        np.testing.assert_array_equal(dense(part), want)


def test_empty_rows_are_filled() -> None:
    values, default = tf.constant([1.0, 2.0]), tf.constant(5.0)
    filled, empty = tf.sparse_fill_empty_rows(tf.SparseTensor([[0, 1], [2, 0]], values, [4, 2]), default)
    y = filled.values * [1.0, 2.0, 3.0, 4.0]
    found, rows, *slopes = run([filled, empty, *tf.gradients(y, [values, default])])
    assert found.indices.tolist() == [[0, 1], [1, 0], [2, 0], [3, 0]]
    assert found.values.tolist() == [1, 5, 2, 5]
    assert rows.tolist() == [False, True, False, True]
    assert [s.tolist() for s in slopes] == [[1, 3], 6.0]


def test_ids_become_indicators_and_merge_with_values() -> None:
    ids = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], tf.constant([3, 1, 0], tf.int64), [3, 2])
    weights = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], [0.5, 2.0, 1.0], [3, 2])
    shown, merged = run([tf.sparse.to_indicator(ids, 4), tf.sparse_merge(ids, weights, 4)])
    assert shown.tolist() == [[False, True, False, True], [False] * 4, [True, False, False, False]]
    assert (merged.indices.tolist(), merged.values.tolist()) == ([[0, 1], [0, 3], [2, 0]], [2.0, 0.5, 1.0])


def test_thresholds_leave_out_small_sums() -> None:
    a, b = sparse(), sparse(-DENSE + OTHER * (OTHER > 0))
    assert len(run(tf.sparse_add(a, b)).values) == 5
    assert run(tf.sparse_add(a, b, 0.5)).indices.tolist() == [[0, 2]]


def test_sparse_masks() -> None:
    found = tf.sparse_mask(tf.IndexedSlices(tf.constant([[1], [2], [3]]), tf.constant([7, 5, 2])), [5])
    assert [v.tolist() for v in run([found.indices, found.values])] == [[7, 2], [[1], [3]]]


TABLE = np.arange(12.0).reshape(4, 3)


@pytest.mark.parametrize(("combiner", "by"), [("sum", [1, 1]), ("mean", [2.5, 2]), ("sqrtn", [4.25**0.5, 2])])
def test_embeddings_of_weighted_ids(combiner: Any, by: list[float]) -> None:
    ids = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], tf.constant([1, 3, 0], tf.int64), [3, 2])
    weights = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], [2.0, 0.5, 2.0], [3, 2])
    table = tf.constant(TABLE)
    y = tf.nn.embedding_lookup_sparse(table, ids, weights, combiner=combiner)
    found, slope = run([y, tf.convert_to_tensor(tf.gradients(y, table)[0])])
    want = [(2 * TABLE[1] + 0.5 * TABLE[3]) / by[0], np.zeros(3), 2 * TABLE[0] / by[1]]
    np.testing.assert_allclose(found, want, rtol=1e-12)
    np.testing.assert_allclose(slope[:, 0], [2 / by[1], 2 / by[0], 0, 0.5 / by[0]], rtol=1e-12)


def test_safe_embeddings_of_missing_and_invalid_ids() -> None:
    ids = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], tf.constant([1, -1, 0], tf.int64), [3, 2])
    weights = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], np.array([1.0, 1.0, 0.0]), [3, 2])
    table = tf.constant(TABLE)
    plain = tf.nn.safe_embedding_lookup_sparse([table], ids)
    weighed = tf.nn.safe_embedding_lookup_sparse([table], ids, weights, default_id=2)
    assert plain.shape.as_list() == [3, 3]
    found = run([plain, weighed])
    np.testing.assert_array_equal(found[0], [TABLE[1], TABLE[0], np.zeros(3)])
    np.testing.assert_array_equal(found[1], [TABLE[1], TABLE[2], TABLE[2]])


@pytest.mark.parametrize("made", [tf.Variable, tf.constant])
def test_safe_embeddings_of_weights_of_another_dtype(made: Any) -> None:
    """TensorFlow converts the table to the dtype of the weights, which only arrays can be."""
    ids = tf.SparseTensor([[0, 0]], tf.constant([1], tf.int64), [1, 2])
    weights = tf.SparseTensor([[0, 0]], np.ones(1), [1, 2])
    assert tf.nn.safe_embedding_lookup_sparse(np.ones((4, 3), np.float32), ids, weights).dtype is tf.float64
    for table in (made(np.ones((4, 3), np.float32)), [made(np.ones((4, 3), np.float32))]):
        with pytest.raises(TypeError, match="dtype"):
            tf.nn.safe_embedding_lookup_sparse(table, ids, weights)


def test_edit_distances() -> None:
    hypothesis = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [1, 2, 3], [2, 2])
    truth = tf.SparseTensor([[0, 0], [0, 1], [0, 2], [2, 0]], [1, 3, 2, 1], [3, 3])
    np.testing.assert_allclose(run(tf.edit_distance(hypothesis, truth)), [1 / 3, np.inf, 1])
    assert run(tf.edit_distance(hypothesis, truth, normalize=False)).tolist() == [1, 1, 1]
    with pytest.raises(DTypeError, match="truth must be a SparseTensor"):
        tf.edit_distance(hypothesis, [1])


def test_cast_takes_the_values_of_sparse_tensors_and_slices():
    sparse = tf.SparseTensor([[0, 1], [1, 0]], [1.5, -2.5], [2, 2])
    slices = tf.IndexedSlices(tf.constant([[1.5]]), tf.constant([0]), tf.constant([3, 1]))
    made, rows = tf.cast(sparse, tf.int32), tf.cast(slices, tf.int64)
    assert isinstance(made, tf.SparseTensor) and made.dtype is tf.int32 and made.shape == sparse.shape
    with tf.Session() as sess:
        value, got = sess.run([tf.to_int64(made), rows])
    assert value.values.tolist() == [1, -2] and value.indices.tolist() == [[0, 1], [1, 0]]
    assert got.values.tolist() == [[1]] and got.values.dtype == np.int64 and got.indices.tolist() == [0]


def test_static_shapes_of_what_is_made_of_sparse_tensors() -> None:
    with tf.Graph().as_default():
        a = tf.SparseTensor([[0, 0, 0], [1, 4, 5]], [1.0, 2.0], [2, 5, 6])
        fed = tf.sparse_placeholder(tf.float32, [None, 3])
        made = [
            tf.sparse_reset_shape(a, [3, 6, 7]),
            tf.sparse_transpose(a, [2, 0, 1]),
            tf.sparse_transpose(a),
            tf.sparse_reorder(a),
            tf.sparse_reshape(a, [10, 6]),
            tf.sparse_reset_shape(a, tf.placeholder(tf.int32)),
            tf.sparse_concat(0, [a, tf.sparse_placeholder(tf.float32)]),
        ]
        assert [sp.shape.as_list() for sp in made] == [
            [3, 6, 7], [6, 2, 5], [6, 5, 2], [2, 5, 6], [10, 6], [None] * 3, [None, 5, 6],
        ]  # fmt: skip
        partly = [
            tf.sparse_reorder(fed),
            tf.sparse_transpose(fed),
            tf.sparse_retain(fed, tf.placeholder(tf.bool, [None])),
            tf.sparse_fill_empty_rows(fed, 0.0)[0],
            tf.sparse_add(fed, fed),
            tf.sparse_softmax(fed),
            tf.sparse.expand_dims(fed, 1),
            fed * tf.placeholder(tf.float32, [3]),
            tf.sparse_concat(0, [fed, fed]),
            tf.sparse_concat(1, [fed, tf.sparse_placeholder(tf.float32, [2, 4])]),
            tf.sparse_concat(0, [fed, tf.sparse_placeholder(tf.float32, [1, 4])], expand_nonconcat_dim=True),
        ]
        assert [sp.shape.as_list() for sp in partly] == [
            [None, 3], [3, None], [None, 3], [None, 3], [None, 3], [None, 3], [None, 1, 3], [None, 3],
            [None, 3], [2, 7], [None, 4],
        ]  # fmt: skip
        late, known = tf.sparse_placeholder(tf.float32, [None, None]), tf.sparse_placeholder(tf.float32, [2, None])
        for one, other in ((late, known), (known, late)):
            merged = [f(one, other).shape.as_list() for f in (tf.sparse_add, tf.sparse_maximum, tf.sparse_minimum)]
            assert merged == [[2, None]] * 3
        assert tf.sparse_fill_empty_rows(known, 0.0)[1].shape.as_list() == [2]
        assert (late * tf.placeholder(tf.float32)).values.shape.as_list() == [None]
        joined = tf.sparse_concat(-2, [tf.sparse_placeholder(tf.float32), fed])
        assert (joined.indices.shape.as_list(), joined.dense_shape.shape.as_list()) == ([None, 2], [2])


def test_sparse_tensors_that_do_not_fit_are_refused_when_they_are_joined() -> None:
    a, b = tf.sparse_placeholder(tf.float32, [2, 3]), tf.sparse_placeholder(tf.float32, [2, 4])
    with pytest.raises(ValueError, match="one size in dim 1"):
        tf.sparse_concat(0, [a, b])
    with pytest.raises(ValueError, match="one rank"):
        tf.sparse_concat(0, [a, tf.sparse_placeholder(tf.float32, [2, 3, 1])])
    with pytest.raises(ValueError, match="num_split must be at least 1"):
        tf.sparse_split(sp_input=a, num_split=0, axis=0)


@pytest.mark.parametrize("perm", [[0], [0, 0], [0, 1, 1], [-1, 0], [2, 0]])
def test_sparse_transpose_takes_permutations_only(perm) -> None:
    """A perm of one axis gave a tensor of rank one, whose places were no longer distinct."""
    sparse, late = tf.SparseTensor([[0, 1], [1, 0]], [1.0, 2.0], [2, 3]), tf.placeholder(tf.int32)
    with pytest.raises(ValueError, match="each axis of rank 2 once"):
        tf.sparse_transpose(sparse, perm)
    turned = tf.sparse_transpose(sparse, late)
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError):
        sess.run(turned.values, {late: perm})


@pytest.mark.parametrize(
    ("shape", "fits"),
    [((2, 3), True), ((1, 3), True), ((2, 1), True), ((3,), True), ((1,), True), ((), True), ((3, 3), False),
     ((2, 4), False), ((2,), False), ((4,), False), ((1, 2, 3), False)],
)  # fmt: skip
@pytest.mark.parametrize("known", [True, False])
def test_a_dense_tensor_broadcasts_to_a_sparse_one_or_is_refused(shape, fits, known) -> None:
    """The elements of [3, 3] at the places of a [2, 3] were taken; TensorFlow refuses them."""
    sparse = tf.sparse_placeholder(tf.float32, [2, 3] if known else None)
    dense = tf.placeholder(tf.float32, shape if known else None)
    array = np.arange(1, 1 + np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    feeds = {sparse: ([[0, 1], [1, 0]], [2.0, 3.0], [2, 3]), dense: array}

    def products():
        with tf.Session() as sess:
            return sess.run([(sparse * dense).values, (sparse / dense).values], feeds)

    if fits:
        whole = np.broadcast_to(array, (2, 3))
        at = np.array([whole[0, 1], whole[1, 0]])
        np.testing.assert_allclose(products(), [[2, 3] * at, [2, 3] / at], rtol=1e-6)
    else:
        with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
            products()
    with tf.Session() as sess:
        if shape == (2, 3):
            expected = array + [[0, 2, 0], [3, 0, 0]]
            np.testing.assert_array_equal(sess.run(tf.sparse_add(sparse, dense), feeds), expected)
        else:
            with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
                sess.run(tf.sparse_add(sparse, dense), feeds)


def test_a_sparse_value_has_shape_size_and_rank() -> None:
    value = tf.SparseTensorValue([[0, 1], [1, 0]], [1.0, 2.0], [2, 3])
    with tf.Session() as sess:
        shape, wide, size, rank = sess.run(
            [tf.shape(value), tf.shape(value, out_type=tf.int64), tf.size(value), tf.rank(value)]
        )
    assert (shape.tolist(), wide.dtype, size, rank) == ([2, 3], np.int64, 6, 2) and shape.dtype == np.int32


def test_a_new_shape_of_sparse_tensors_fits() -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        a, new = tf.SparseTensor([[1, 4, 5]], [2.0], [2, 5, 6]), tf.placeholder(tf.int32)
        with pytest.raises(ValueError, match="smaller"):
            tf.sparse_reset_shape(a, [3, 7, 5])
        late = tf.sparse_reset_shape(a, new)
        assert sess.run(late, {new: [3, 7, 6]}).dense_shape.tolist() == [3, 7, 6]
        for wrong in ([3, 7, 5], [3, 7]):
            with pytest.raises(tf.errors.InvalidArgumentError):
                sess.run(late, {new: wrong})


def test_places_beyond_64_bits_are_in_order_and_stay_apart() -> None:
    shape = [1 << 25, 1 << 40]
    first = tf.SparseTensor(np.array([[1 << 24, 0], [0, 0]], np.int64), [1.0, 2.0], shape)
    other = tf.SparseTensor(np.array([[1 << 24, 0], [1 << 23, 5]], np.int64), [3.0, 4.0], shape)
    places = [[0, 0], [1 << 23, 5], [1 << 24, 0]]
    total, most, ordered = run([tf.sparse_add(first, other), tf.sparse_maximum(first, other), tf.sparse_reorder(first)])
    assert total.indices.tolist() == most.indices.tolist() == places
    assert total.values.tolist() == [2, 4, 4] and most.values.tolist() == [2, 4, 3]
    assert ordered.indices.tolist() == [places[0], places[2]] and ordered.values.tolist() == [2, 1]
    nothing = run(tf.sparse_add(tf.sparse_retain(first, [False] * 2), tf.sparse_retain(other, [False] * 2)))
    assert nothing.indices.shape == (0, 2) and nothing.values.shape == (0,)


@pytest.mark.parametrize("name", ["asin", "asinh", "atan", "sin", "tan"])
def test_a_function_that_keeps_zero_takes_what_is_stored(name: str) -> None:
    found = run(getattr(tf.math, name)(tf.SparseTensor([[0, 1], [2, 0]], [0.5, -0.25], [3, 2])))
    assert (found.indices.tolist(), found.dense_shape.tolist()) == ([[0, 1], [2, 0]], [3, 2])
    function = getattr(np, name.replace("asin", "arcsin").replace("atan", "arctan"))
    np.testing.assert_allclose(found.values, function(np.array([0.5, -0.25], np.float32)), rtol=1e-6)


@pytest.mark.parametrize(("start", "size"), [([0, 1], [2]), ([0], [2, 2]), ([0, 1], [2, 2])])
def test_a_slice_has_a_number_for_each_axis(start: list[int], size: list[int]) -> None:
    vector = tf.SparseTensor([[1], [3]], [1.0, 2.0], [5])
    with pytest.raises(InvalidArgumentError):
        run(tf.sparse_slice(vector, start, size))


def test_no_more_parts_than_elements() -> None:
    value = tf.SparseTensorValue([[0, 0], [1, 2]], [1, 2], [2, 4])
    with tf.Graph().as_default(), tf.Session() as session:
        known = tf.SparseTensor(*value)
        with pytest.raises(tf.errors.InvalidArgumentError, match="num_split is 5"):
            tf.sparse_split(sp_input=known, num_split=5, axis=1)
        fed = tf.sparse_placeholder(tf.int32)
        parts = tf.sparse_split(sp_input=fed, num_split=4, axis=-1)
        assert [p.values.tolist() for p in session.run(parts, {fed: value})] == [[1], [], [2], []]
        for axis in (0, 1):
            late = tf.sparse_split(sp_input=fed, num_split=5, axis=axis)
            with pytest.raises(tf.errors.InvalidArgumentError, match="more parts than elements"):
                session.run(late, {fed: value})
