"""Kernels that have a quick way for many elements: the same results as the plain formula, at sizes where it is taken."""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np
import pytest
import scipy.special


def run(fetches: Any, feeds: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(fetches, feeds)


def test_erf_of_float32_is_within_four_units() -> None:
    tail = np.geomspace(1e-38, 12, 20000)
    x = np.concatenate([np.linspace(-4.5, 4.5, 60001), tail, -tail]).astype(np.float32)
    want = scipy.special.erf(x.astype(np.float64))
    unit = np.spacing(np.abs(want).astype(np.float32)).astype(np.float64)
    assert np.max(np.abs(run(tf.erf(x)) - want) / unit) < 4


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32, tf.float64])
def test_erf_of_what_is_special(dtype: Any) -> None:
    got = run(tf.erf(tf.constant(np.array([np.nan, -0.0, 0.0, np.inf, -np.inf, 20.0]).astype(dtype.np), dtype)))
    got = got.astype(np.float64)
    assert np.isnan(got[0]) and got[1:].tolist() == [0, 0, 1, -1, 1] and np.signbit(got[1])


def test_erf_of_unknown_shape() -> None:
    x = tf.placeholder(tf.float32)
    value = np.linspace(-3, 3, 40001, dtype=np.float32)
    np.testing.assert_allclose(run(tf.erf(x), {x: value}), scipy.special.erf(value), rtol=3e-7)


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ([300, 700], [0]),
        ([300, 700], [1]),
        ([5, 40, 96], [2]),
        ([5, 40, 96], [1, 2]),
        ([5, 40, 96], [0, 1]),
        ([7, 5, 6], [1]),
    ],
)
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_and_means_by_products(shape: list[int], axes: list[int], keep: bool, dtype: str) -> None:
    x = np.random.default_rng(1).standard_normal(shape).astype(dtype)
    feed = tf.placeholder(dtype, shape)
    total, mean = run([tf.reduce_sum(feed, axes, keepdims=keep), tf.reduce_mean(feed, axes, keepdims=keep)], {feed: x})
    wide = x.astype(np.longdouble)
    scale = np.abs(wide).sum(tuple(axes), keepdims=keep)
    epsilon = np.finfo(dtype).eps
    assert total.shape == scale.shape and np.all(
        np.abs(total - wide.sum(tuple(axes), keepdims=keep)) <= 4 * epsilon * scale
    )
    np.testing.assert_allclose(mean, total / (x.size // total.size), rtol=4 * epsilon)


def test_a_sum_of_equal_numbers_stays_near() -> None:
    feed = tf.placeholder(tf.float32, [16, 2048])
    got = run(tf.reduce_sum(feed, 1), {feed: np.full([16, 2048], 0.1)})
    np.testing.assert_allclose(got, 2048 * float(np.float32(0.1)), rtol=4e-6)


@pytest.mark.parametrize("ids", ["many", "few", "one", "dropped"])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_the_sum_of_many_rows_has_the_bits_of_a_loop(ids: str, dtype: Any) -> None:
    rng = np.random.default_rng(2)
    rows = (rng.standard_normal((1500, 96)) * 100).astype(dtype)
    segments = {
        "many": rng.integers(0, 900, 1500),
        "few": rng.integers(0, 7, 1500),
        "one": np.full(1500, 3),
        "dropped": rng.integers(-400, 400, 1500),
    }[ids]
    want = np.zeros((900, 96), dtype)
    for segment, row in zip(segments.tolist(), rows, strict=True):
        if segment >= 0:
            want[segment] += row
    given, at = tf.placeholder(dtype, [1500, 96]), tf.placeholder(tf.int64, [1500])
    got = run(tf.unsorted_segment_sum(given, at, 900), {given: rows, at: segments})
    assert np.array_equal(got, want)


@pytest.mark.parametrize("shape", [[300, 40], [6, 20, 400]])
def test_the_sparse_cross_entropy_of_many_rows(shape: list[int]) -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal(shape) * 5
    labels = rng.integers(0, shape[-1], shape[:-1])
    logits = tf.placeholder(tf.float32, shape)
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    got, gradient = run([loss, tf.gradients(loss, logits)[0]], {logits: x})
    log_p = scipy.special.log_softmax(x.astype(np.float32).astype(np.float64), -1)
    np.testing.assert_allclose(got, -np.take_along_axis(log_p, labels[..., None], -1)[..., 0], rtol=1e-5, atol=1e-6)
    want = np.exp(log_p)
    np.put_along_axis(want, labels[..., None], np.take_along_axis(want, labels[..., None], -1) - 1, -1)
    np.testing.assert_allclose(gradient, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rows", [1, 2, 20, 64, 65])
def test_products_of_few_rows_by_a_transposed_matrix(rows: int) -> None:
    """Also of strided operands, as what is split off a state is."""
    rng = np.random.default_rng(2)
    x, w = rng.standard_normal((rows, 800)).astype("f"), rng.standard_normal((700, 1600)).astype("f")
    left, right = tf.placeholder(tf.float32, [rows, 800]), tf.placeholder(tf.float32, [700, 1600])
    halves = [tf.matmul(left, half, transpose_b=True) for half in tf.split(right, 2, 1)]
    for got, half in zip(run(halves, {left: x, right: w}), np.split(w.astype(np.float64), 2, 1), strict=True):
        want = x.astype(np.float64) @ half.T
        assert np.abs(got - want).max() < 1e-5 * np.abs(want).max()
