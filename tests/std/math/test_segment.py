"""Segment reductions: values as TensorFlow gives them, gradients of ties and zeros, second order, unknown shapes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import InvalidArgumentError

DATA = np.array([[1.0, 2.0], [3.0, -4.0], [5.0, 6.0], [-7.0, 8.0]])
IDS = np.array([0, 0, 2, 2])


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def run(*fetches: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        found = session.run(list(fetches), feed)
    return found[0] if len(fetches) == 1 else found


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("sum", [[4, -2], [0, 0], [-2, 14]]),
        ("mean", [[2, -1], [0, 0], [-1, 7]]),
        ("prod", [[3, -8], [1, 1], [-35, 48]]),
        ("max", [[3, 2], [0, 0], [5, 8]]),
        ("min", [[1, -4], [0, 0], [-7, 6]]),
    ],
)
def test_sorted_segments(name: str, want: list[list[float]]) -> None:
    function = getattr(tf, f"segment_{name}")
    assert function is getattr(tf.math, f"segment_{name}")
    known = function(DATA, IDS)
    assert known.shape.as_list() == [3, 2]
    ids = tf.placeholder(tf.int64, [None])
    late = function(tf.constant(DATA), ids)
    assert late.shape.as_list() == [None, 2]
    for found in run(known, late, feed={ids: IDS}):
        np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("sum", [[-2, 14], [0, 0], [3, -4]]),
        ("mean", [[-1, 7], [0, 0], [3, -4]]),
        ("sqrt_n", [[-(2**0.5), 7 * 2**0.5], [0, 0], [3, -4]]),
        ("prod", [[-35, 48], [1, 1], [3, -4]]),
        ("max", [[5, 8], [-np.finfo(float).max] * 2, [3, -4]]),
        ("min", [[-7, 6], [np.finfo(float).max] * 2, [3, -4]]),
    ],
)
def test_unsorted_segments_drop_negative_ids(name: str, want: list[list[float]]) -> None:
    function = getattr(tf, f"unsorted_segment_{name}")
    ids = tf.placeholder(tf.int32)
    found = run(
        function(DATA, [-1, 2, 0, 0], 3), function(tf.constant(DATA), ids, 3), feed={ids: np.array([-1, 2, 0, 0])}
    )
    for value in found:
        np.testing.assert_allclose(value, want, rtol=1e-12)


def test_integer_means_are_rounded_towards_zero() -> None:
    assert run(tf.segment_mean(tf.constant([-3, 0, 5, 2], tf.int32), [0, 0, 1, 1])).tolist() == [-1, 3]


@pytest.mark.parametrize(("name", "scale"), [("sum", [1.0, 1.0]), ("mean", [1 / 3, 1.0]), ("sqrt_n", [3**-0.5, 1.0])])
def test_chosen_rows(name: str, scale: list[float]) -> None:
    function = getattr(tf, f"sparse_segment_{name}")
    assert function is getattr(tf.sparse, f"segment_{name}")
    x = tf.constant(DATA)
    y = function(x, [3, 1, 3, 0], [0, 0, 0, 1])
    wide = function(x, [3, 1, 3, 0], [0, 0, 0, 2], num_segments=4)
    assert (y.shape.as_list(), wide.shape.as_list()) == ([2, 2], [4, 2])
    sums = np.array([2 * DATA[3] + DATA[1], DATA[0]]) * np.array(scale)[:, None]
    (dx,) = tf.gradients(y, x)
    found = run(y, wide, dx)
    np.testing.assert_allclose(found[0], sums, rtol=1e-12)
    np.testing.assert_allclose(found[1], [sums[0], [0, 0], sums[1], [0, 0]], rtol=1e-12)
    np.testing.assert_allclose(found[2], np.array([[1.0], [scale[0]], [0.0], [2 * scale[0]]]) * np.ones(2), rtol=1e-12)


def test_equal_extremes_share_the_gradient() -> None:
    x = tf.constant([1.0, 3.0, 3.0, 2.0])
    sorted_, unsorted = tf.segment_max(x, [0, 0, 0, 1]), tf.unsorted_segment_max(x, [1, 1, 1, -1], 2)
    found = run(tf.gradients(sorted_, x)[0], tf.gradients(unsorted[1], x)[0])
    assert found[0].tolist() == [0.0, 0.5, 0.5, 1.0]
    assert found[1].tolist() == [0.0, 0.5, 0.5, 0.0]


@pytest.mark.parametrize("unsorted", [False, True])
def test_products_with_zeros(unsorted: bool) -> None:
    x = tf.constant([2.0, 0.0, 3.0, 0.0, 0.0, 4.0])
    ids = [0, 0, 0, 1, 1, 1]
    y = tf.unsorted_segment_prod(x, ids, 2) if unsorted else tf.segment_prod(x, ids)
    (dx,) = tf.gradients(y, x)
    (second,) = tf.gradients(dx, x)
    found = run(dx, second)
    assert found[0].tolist() == [0.0, 6.0, 0.0, 0.0, 0.0, 0.0]
    # xyz at (2, 0, 3): the sums of the rows of its hessian
    assert found[1].tolist()[:3] == [3.0, 5.0, 2.0]


def test_gradients_where_nothing_is_known_of_shapes() -> None:
    x, ids = tf.placeholder(tf.float64), tf.placeholder(tf.int32)
    results = [tf.segment_mean(x, ids), tf.unsorted_segment_max(x, ids, 4), tf.unsorted_segment_mean(x, ids, 4)]
    grads = [tf.gradients(y, x)[0] for y in results]
    found = run(*grads, feed={x: DATA, ids: IDS})
    np.testing.assert_allclose(found[0], np.full((4, 2), 0.5))
    np.testing.assert_allclose(found[1], [[0, 1], [1, 0], [1, 0], [0, 1]])
    np.testing.assert_allclose(found[2], np.full((4, 2), 0.5))


def test_sums_of_halves_are_rounded_once() -> None:
    x = np.full(4096, 1.0, np.float16)
    assert run(tf.segment_sum(x, np.zeros(4096, np.int32))).tolist() == [4096.0]


def test_ids_out_of_order_say_what_takes_them() -> None:
    with pytest.raises(InvalidArgumentError, match=r"segment_ids\[1\] is 0.*\n(.*\n)*.*unsorted_segment_sum"):
        run(tf.segment_sum(DATA, tf.placeholder_with_default([1, 0, 0, 0], [4])))


@pytest.mark.parametrize("name", ["max", "min"])
def test_an_element_wins_over_a_nan_before_it_and_a_nan_over_all_before_it(name: str) -> None:
    nan = np.nan
    data = np.array([[1.0, nan, 2.0, nan], [nan, 1.0, 2.0, 3.0], [5.0, 4.0, nan, nan]], np.float32)
    want = [[nan, 1, 2, 3], [5, 4, nan, nan]]
    np.testing.assert_array_equal(run(getattr(tf, f"segment_{name}")(data, [0, 0, 1])), want)
    np.testing.assert_array_equal(run(getattr(tf, f"unsorted_segment_{name}")(data[[2, 0, 1]], [1, 0, 0], 2)), want)
    x = tf.constant([nan, 1.0, 2.0])
    slopes = tf.gradients(getattr(tf, f"segment_{name}")(x, [0, 0, 1]), x)[0]
    np.testing.assert_array_equal(run(slopes), [0, 1, 1])


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("shape", [[2, 0], [2, 0, 3]])
def test_ids_of_rows_without_elements_are_not_read(name: str, shape: list[int]) -> None:
    assert run(getattr(tf, f"unsorted_segment_{name}")(tf.zeros(shape), [0, 5], 2)).shape == tuple(shape)
    with pytest.raises(InvalidArgumentError, match="segment_ids"):
        run(getattr(tf, f"unsorted_segment_{name}")(tf.zeros([2, 3]), [0, 5], 2))
