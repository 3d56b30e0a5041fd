"""Clipping by norms against NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import graphdock as tf
import numpy as np
import pytest

A, B = np.array([[3.0, 0.0], [0.0, 4.0]], np.float32), np.array([12.0], np.float32)


@pytest.fixture(autouse=True)
def graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def run(fetch: Any) -> Any:
    with tf.Session() as session:
        return session.run(fetch)


def test_clip_by_norm() -> None:
    np.testing.assert_allclose(run(tf.clip_by_norm(A, 2.5)), A / 2, rtol=1e-6)
    np.testing.assert_allclose(run(tf.clip_by_norm(A, 6.0)), A, rtol=1e-6)
    np.testing.assert_allclose(run(tf.clip_by_norm(A, 3.5, axes=[1])), [[3.0, 0.0], [0.0, 3.5]], rtol=1e-6)
    np.testing.assert_array_equal(run(tf.clip_by_norm(np.zeros(3), 1.0)), np.zeros(3))


def test_the_gradient_of_clip_by_norm_at_zero_is_finite() -> None:
    x = tf.placeholder(tf.float64, [2])
    (grad,) = tf.gradients(tf.clip_by_norm(x, 1.0), [x])
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(grad, {x: [0.0, 0.0]}), [1.0, 1.0])


def test_global_norm() -> None:
    assert run(tf.global_norm([A, None, B])) == 13.0
    assert run(tf.global_norm([None])) == 0.0


def test_clip_by_global_norm_scales_all_by_one_factor() -> None:
    clipped, norm = tf.clip_by_global_norm([A, None, B], 6.5)
    assert clipped[1] is None
    a, b, n = run([clipped[0], clipped[2], norm])
    assert n == 13.0
    np.testing.assert_allclose(a, A / 2, rtol=1e-6)
    np.testing.assert_allclose(b, B / 2, rtol=1e-6)
    small, _ = tf.clip_by_global_norm([A, B], 100.0)
    np.testing.assert_allclose(run(small[0]), A, rtol=1e-6)


def test_slices_are_clipped_by_their_values() -> None:
    slices = tf.IndexedSlices(tf.constant([[3.0], [4.0]]), tf.constant([0, 2]), tf.constant([4, 1]))
    (clipped,), norm = tf.clip_by_global_norm([slices], 1.0)
    assert isinstance(clipped, tf.IndexedSlices)
    np.testing.assert_allclose(run(clipped.values), [[0.6], [0.8]], rtol=1e-6)
    assert run(norm) == 5.0


@pytest.mark.parametrize("wrong", [np.inf, np.nan])
def test_an_infinite_norm_does_not_hide(wrong: float) -> None:
    clipped, norm = tf.clip_by_global_norm([A, np.array([wrong], np.float32)], 1.0)
    assert np.isnan(run(clipped[0])).all() and not np.isfinite(run(norm))


def test_clip_by_average_norm() -> None:
    """As TensorFlow 1 computes it: the norm over the number of elements is held against the limit."""
    x = tf.constant([[3.0, 4.0], [0.0, 0.0]])
    np.testing.assert_allclose(run(tf.clip_by_average_norm(x, 0.5)), [[1.2, 1.6], [0, 0]], rtol=1e-6)
    np.testing.assert_allclose(run(tf.clip_by_average_norm(x, 5.0)), [[3, 4], [0, 0]], rtol=1e-6)
    assert not run(tf.clip_by_average_norm(tf.zeros([3]), 1.0)).any()


def test_limits_do_not_broadcast_the_input_up() -> None:
    x = tf.ones([2, 3, 1])
    for clip in (
        lambda: tf.clip_by_value(x, -1.0, tf.constant([1.0, 2.0])),
        lambda: tf.clip_by_norm(x, tf.constant([1.0, 2.0])),
    ):
        with pytest.raises(ValueError, match="broadcast"):
            clip()
    assert run(tf.clip_by_value(tf.ones([2, 3]), 0.0, tf.constant([0.5, 2.0, 0.25]))).tolist() == [[0.5, 1, 0.25]] * 2
    late = tf.placeholder(tf.float32, [None, None])
    with tf.Session() as session, pytest.raises(ValueError, match="broadcast x up"):
        session.run(tf.clip_by_value(tf.ones([1, 3]), 0.0, late), {late: np.ones((2, 1))})


NAN, INF = np.nan, np.inf


@pytest.mark.parametrize("dtype", [tf.float64, tf.float32, tf.float16])
@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize(
    ("low", "high", "wanted", "of_x", "of_low", "of_high"),
    [
        (NAN, 1.0, [NAN] * 6, [0] * 6, [1] * 6, [0] * 6),
        (-1.0, NAN, [NAN] * 6, [0] * 6, [1] * 6, [0] * 6),
        (NAN, NAN, [NAN] * 6, [0] * 6, [1] * 6, [0] * 6),
        (1.0, -1.0, [1, NAN, 1, 1, 1, 1], [0] * 6, [1] * 6, [0] * 6),
        (-INF, INF, [-2, NAN, 0.5, 3, INF, -INF], [1, 0, 1, 1, 1, 1], [0, 1, 0, 0, 0, 0], [0] * 6),
        (-1.0, 2.0, [-1, NAN, 0.5, 2, 2, -1], [0, 0, 1, 0, 0, 0], [1, 1, 0, 0, 0, 1], [0, 0, 0, 1, 1, 0]),
    ],
)
def test_limits_that_are_no_numbers_or_cross_are_tensorflows(
    dtype: Any, rows: bool, low: float, high: float, wanted: Any, of_x: Any, of_low: Any, of_high: Any
) -> None:
    x = tf.constant([-2, NAN, 0.5, 3, INF, -INF], dtype)
    least, most = (tf.constant([v] * 6 if rows else v, dtype) for v in (low, high))
    y = tf.clip_by_value(x, least, most)
    found = run([y, *tf.gradients(y, [x, least, most])])
    sums = [of_low, of_high] if rows else [sum(of_low), sum(of_high)]
    for got, want in zip(found, [wanted, of_x, *sums], strict=True):
        np.testing.assert_array_equal(got, want)
