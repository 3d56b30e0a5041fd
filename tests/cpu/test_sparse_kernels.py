"""Products of sparse matrices by rows of any lengths, and the memory that they gather."""

from __future__ import annotations

import tracemalloc
from typing import Any

import graphdock as tf
import numpy as np
import pytest


def drawn(rng: Any, lengths: Any, columns: int, kind: Any, ordered: bool = True) -> tuple[Any, Any, Any]:
    """Indices and values with so many terms in each row, and the dense matrix; places may repeat."""
    rows = np.repeat(np.arange(len(lengths)), lengths)
    at = np.stack([rows, rng.integers(0, columns, rows.size)], 1)
    values = rng.normal(size=rows.size).astype(kind)
    order = slice(None) if ordered else rng.permutation(rows.size)
    dense = np.zeros((len(lengths), columns))
    np.add.at(dense, tuple(at.T), values)
    return at[order], values[order], dense


LENGTHS = {
    "one row": [3000],
    "few lengths": [0, 3, 1, 3, 0, 5, 5, 1, 3],
    "every length": list(range(120)),
    "a long one": [2, 0, 5000, 1, 17],
    "no terms": [0, 0],
}


@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
@pytest.mark.parametrize(("adjoint", "ordered"), [(False, True), (False, False), (True, True)])
def test_products_by_rows_of_any_lengths(lengths: list[int], adjoint: bool, ordered: bool) -> None:
    rng = np.random.default_rng(0)
    at, values, dense = drawn(rng, lengths, 9, np.float64, ordered)
    if adjoint:
        at = at[:, ::-1].copy()
    b = rng.normal(size=(9, 4))
    with tf.Graph().as_default(), tf.Session() as sess:
        shape = list(dense.T.shape if adjoint else dense.shape)
        made = tf.sparse_tensor_dense_matmul(tf.SparseTensor(at, values, shape), tf.constant(b), adjoint_a=adjoint)
        np.testing.assert_allclose(sess.run(made), dense @ b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.int32, np.complex64])
def test_products_with_and_without_scipys_own_function(monkeypatch: Any, direct: bool, kind: Any) -> None:
    from scipy import sparse

    if not direct:
        monkeypatch.delattr(sparse, "_sparsetools")
    at = np.array([[2, 0], [0, 1], [2, 0], [1, 3]])
    values, b = np.array([1, 2, 3, 4], kind), np.arange(8).reshape(4, 2).astype(kind)
    with tf.Graph().as_default(), tf.Session() as sess:
        made = sess.run(tf.sparse_tensor_dense_matmul(tf.SparseTensor(at, values, [3, 4]), b))
    np.testing.assert_array_equal(made, [[4, 6], [24, 28], [0, 4]])


@pytest.mark.parametrize("shape", [[3, 4], [3, 1 << 33]])
@pytest.mark.parametrize("wrong", [-1, 4, 1 << 33, (1 << 32) + 1, -(1 << 62)])
def test_indices_out_of_bounds_of_any_size_are_named(shape: list[int], wrong: int) -> None:
    at = np.array([[0, 0], [2, wrong]])
    with tf.Graph().as_default(), tf.Session() as sess:
        places, values, sizes = (
            tf.placeholder(k, s) for k, s in ((tf.int64, [None, 2]), (tf.float32, [None]), (tf.int64, [2]))
        )
        made = tf.sparse_tensor_dense_matmul(tf.SparseTensor(places, values, sizes), tf.zeros([4, 1]))
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"a_indices\[1, 1\]|inner sizes"):
            sess.run(made, {places: at, values: [1, 2], sizes: shape})


def test_many_terms_of_narrow_floats_are_rounded_once() -> None:
    ones = np.ones(5000, np.float16)
    at = np.stack([np.zeros(5000, np.int64), np.arange(5000)], 1)
    b = np.random.default_rng(3).random((5000, 64)).astype(np.float16)
    with tf.Graph().as_default(), tf.Session() as sess:
        made = sess.run(tf.sparse_tensor_dense_matmul(tf.SparseTensor(at, ones, [1, 5000]), tf.constant(b)))
    np.testing.assert_array_equal(made[0], b.sum(0, np.float64).astype(np.float16))


def test_rows_beyond_16_bits_in_any_order() -> None:
    at = np.array([[70_000, 0], [4464, 1], [70_000, 1], [65_536, 0]])
    with tf.Graph().as_default(), tf.Session() as sess:
        a = tf.SparseTensor(at, np.array([1.0, 2.0, 3.0, 4.0]), [70_001, 2])
        made = sess.run(tf.sparse_tensor_dense_matmul(a, np.array([[1.0], [10.0]])))
    assert {row: made[row, 0] for row in np.flatnonzero(made[:, 0])} == {70_000: 31.0, 4464: 20.0, 65_536: 4.0}


def test_rows_of_b_that_no_term_names_may_hold_anything() -> None:
    b = np.array([[1.0, 2.0], [np.nan, np.inf], [3.0, 4.0]])
    with tf.Graph().as_default(), tf.Session() as sess:
        a = tf.SparseTensor([[0, 0], [2, 2], [2, 0]], np.array([1.0, 2.0, 3.0]), [3, 3])
        np.testing.assert_array_equal(sess.run(tf.sparse_tensor_dense_matmul(a, b)), [[1, 2], [0, 0], [9, 14]])


def test_little_is_gathered_at_once() -> None:
    """100,000 terms of rows of 200 float32 are 80 MB."""
    rng = np.random.default_rng(1)
    at, values, _ = drawn(rng, rng.integers(0, 200, 1000), 50, np.float32)
    with tf.Graph().as_default(), tf.Session() as sess:
        b = tf.constant(rng.normal(size=(50, 200)).astype(np.float32))
        made = tf.sparse_tensor_dense_matmul(tf.SparseTensor(at, values, [1000, 50]), b).op
        for _ in range(2):
            sess.run(made)
        tracemalloc.start()
        sess.run(made)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 16 << 20, peak
