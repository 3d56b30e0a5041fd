"""What chooses, sorts and counts elements, with the values that TensorFlow gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import InvalidArgumentError, ShapeError


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def run(fetches: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(fetches, feed)


def test_unique_keeps_the_order_of_occurrence() -> None:
    y, idx, count = run(tf.unique_with_counts(tf.constant(["b", "a", "b", "c"]), tf.int64))
    assert (y.tolist(), idx.tolist(), count.tolist()) == ([b"b", b"a", b"c"], [0, 1, 0, 2], [2, 1, 1])
    assert idx.dtype == np.int64
    assert len(run(tf.unique([np.nan, np.nan])).y) == 2


def test_the_gradient_of_unique_goes_to_first_occurrences() -> None:
    x = tf.constant([5.0, 3.0, 5.0])
    y, _ = tf.unique(x)
    assert run(tf.gradients(y * [2.0, 7.0], x)[0]).tolist() == [2.0, 7.0, 0.0]


def test_setdiff1d() -> None:
    out, idx = run(tf.setdiff1d([1, 2, 3, 4, 2], [2, 4], index_dtype=tf.int64))
    assert (out.tolist(), idx.tolist(), idx.dtype) == ([1, 3], [0, 2], np.int64)
    assert run(tf.listdiff([1, 2], [1]))[0].tolist() == [2]


def test_top_k_takes_the_first_of_equals() -> None:
    x = tf.constant([[1.0, 3.0, 3.0, 2.0], [4.0, 4.0, 4.0, 4.0]])
    values, indices = tf.nn.top_k(x, 2)
    found = run([values, indices, tf.gradients(values * [[1.0, 2.0], [3.0, 4.0]], x)[0]])
    assert found[0].tolist() == [[3, 3], [4, 4]]
    assert found[1].tolist() == [[1, 2], [0, 1]]
    assert found[2].tolist() == [[0, 1, 2, 0], [3, 4, 0, 0]]
    assert values.shape.as_list() == [2, 2]
    assert tf.nn.top_k(tf.placeholder(tf.float32, [None, None]), tf.placeholder(tf.int32, [])).values.shape.rank == 2


def test_top_k_of_long_rows_against_a_sort() -> None:
    x = np.random.default_rng(0).integers(0, 50, (3, 400)).astype(np.float32)
    values, indices = run(tf.nn.top_k(x, 30))
    want = np.argsort(-x, axis=1, kind="stable")[:, :30]
    np.testing.assert_array_equal(indices, want)
    np.testing.assert_array_equal(values, np.take_along_axis(x, want, 1))


def test_top_k_of_long_rows_with_nan_and_ties() -> None:
    x = np.zeros((3, 300), np.float32)
    x[0, [5, 7]], x[1, [3, 9, 200]] = np.nan, 1.0
    indices = run(tf.nn.top_k(x, 3)).indices
    assert indices.tolist() == [[5, 7, 0], [3, 9, 200], [0, 1, 2]]


def test_in_top_k() -> None:
    predictions = [[0.1, 0.3, 0.2], [0.5, 0.5, 0.1], [np.inf, 0.0, 1.0]]
    assert run(tf.nn.in_top_k(predictions, [2, 1, 1], 2)).tolist() == [True, True, False]
    assert run(tf.nn.in_top_k(predictions, [2, 3, 1], 1)).tolist() == [False, False, False]


def test_nth_element_and_its_gradient() -> None:
    x = tf.constant([[5.0, 1.0, 3.0], [2.0, 2.0, 9.0]])
    y = tf.nn.nth_element(x, 1)
    found = run([y, tf.nn.nth_element(x, 0, reverse=True), tf.gradients(y, x)[0]])
    assert [f.tolist() for f in found] == [[3, 2], [5, 9], [[0, 0, 1], [0.5, 0.5, 0]]]


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("direction", ["ASCENDING", "DESCENDING"])
def test_sort_and_argsort(dtype: str, axis: int, direction: str) -> None:
    x = np.random.default_rng(1).integers(0, 9, (6, 7)).astype(dtype)
    order = np.argsort(x if direction == "ASCENDING" else -x.astype(int), axis=axis, kind="stable")
    found = run([tf.sort(x, axis, direction), tf.argsort(x, axis, direction)])
    np.testing.assert_array_equal(found[0], np.take_along_axis(x, order, axis))
    np.testing.assert_array_equal(found[1], order)


def test_nan_is_sorted_to_the_end() -> None:
    x = tf.placeholder(tf.float32)
    assert np.isnan(run(tf.sort(x), {x: [np.nan, 2.0, 1.0]})[2])
    with pytest.raises(InvalidArgumentError, match="direction is 'UP'"):
        tf.sort(x, direction="UP")


def test_searchsorted() -> None:
    rows = [[0, 3, 3, 9], [1, 2, 3, 4]]
    assert run(tf.searchsorted(rows, [[3, 10], [0, 4]])).tolist() == [[1, 4], [0, 3]]
    assert run(tf.searchsorted(rows, [[3, 10], [0, 4]], "right", tf.int64)).tolist() == [[3, 4], [0, 4]]
    assert run(tf.searchsorted([1.0, 2.0], [1.5])).tolist() == [1]


def test_histograms() -> None:
    values = [-1.0, 0.0, 1.5, 2.0, 5.0, 15.0]
    assert run(tf.histogram_fixed_width(values, [0.0, 5.0], nbins=5)).tolist() == [2, 1, 1, 0, 2]
    assert run(tf.histogram_fixed_width_bins(values, [0.0, 5.0], nbins=5)).tolist() == [0, 0, 1, 2, 4, 4]
    assert tf.histogram_fixed_width_bins(values, [0.0, 5.0], dtype=tf.int64).dtype is tf.int32  # as TensorFlow's
    assert tf.histogram_fixed_width(values, [0.0, 5.0]).shape.as_list() == [100]


def test_bincount() -> None:
    assert run(tf.bincount([1, 1, 3])).tolist() == [0, 2, 0, 1]
    assert run(tf.bincount([], minlength=2)).tolist() == [0, 0]
    weights = tf.constant([0.5, 1.0, 2.0, 4.0])
    y = tf.math.bincount([1, 0, 1, 5], weights=weights, minlength=3, maxlength=4)
    found = run([y, tf.gradients(y * [1.0, 2.0, 3.0, 4.0], weights)[0]])
    assert [f.tolist() for f in found] == [[1.0, 2.5, 0, 0], [2.0, 1.0, 2.0, 0.0]]


def test_k_beyond_the_row() -> None:
    with pytest.raises(ShapeError, match="k is 4, but a row of input"):
        tf.nn.top_k([1.0, 2.0], 4)
    k = tf.placeholder(tf.int32, [])
    with pytest.raises(InvalidArgumentError, match="k is 4"):
        run(tf.nn.top_k([1.0, 2.0], k), {k: 4})


def test_confusion_matrix() -> None:
    found = run(
        [
            tf.confusion_matrix([1, 2, 4], [2, 2, 4]),
            tf.math.confusion_matrix([[0], [1]], [1, 1], num_classes=2, dtype=tf.float32, weights=[0.5, 2.0]),
        ]
    )
    assert found[0].tolist() == [[0] * 5, [0, 0, 1, 0, 0], [0, 0, 1, 0, 0], [0] * 5, [0, 0, 0, 0, 1]]
    assert found[1].tolist() == [[0, 0.5], [0, 2]]
    with pytest.raises(InvalidArgumentError, match="out of bounds"):
        run(tf.confusion_matrix([0, 3], [1, 1], num_classes=2))


def test_old_names_of_argmax() -> None:
    x = [[1, 5], [7, 2]]
    assert [v.tolist() for v in run([tf.arg_max(x, 0), tf.arg_min(x, 1, tf.int32)])] == [[1, 0], [0, 1]]
