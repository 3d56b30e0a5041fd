"""Gathers, scatters and segment reductions over many rows, long runs and bad indices, against NumPy."""

from __future__ import annotations

from typing import Any

import graphdock as tf
import ml_dtypes
import numpy as np
import pytest


@pytest.fixture
def numbers() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize(
    ("rows", "width", "segments"), [(33, 5, 4), (3000, 1, 3), (5000, 7, 2), (2500, 3, 4000), (9000, 1, 1)]
)
def test_sums_of_segments_long_and_short(
    run_on_cuda: Any, numbers: np.random.Generator, rows: int, width: int, segments: int
) -> None:
    """Rows are enough for several chunks, so that runs lie in one, cross two, or cover several."""
    data = numbers.standard_normal((rows, width)).astype(np.float32)
    ids = numbers.integers(-1, segments, rows).astype(np.int32)
    total, largest = run_on_cuda(
        lambda d, i: [tf.unsorted_segment_sum(d, i, segments), tf.unsorted_segment_max(d, i, segments)], data, ids
    )
    want, most = np.zeros((segments, width)), np.full((segments, width), np.finfo(np.float32).min)
    np.add.at(want, ids[ids >= 0], data[ids >= 0])
    np.maximum.at(most, ids[ids >= 0], data[ids >= 0])
    np.testing.assert_allclose(total, want, rtol=1e-4, atol=1e-3)
    np.testing.assert_array_equal(largest, most.astype(np.float32))


def test_means_of_sorted_segments_count_their_rows_across_chunks(
    run_on_cuda: Any, numbers: np.random.Generator
) -> None:
    ids = np.sort(numbers.integers(0, 6, 5000)).astype(np.int64)
    ids[ids == 3] = 2
    data = numbers.standard_normal((5000, 2))
    (mean,) = run_on_cuda(lambda d, i: [tf.segment_mean(d, i)], data, ids)
    want = [data[ids == s].mean(0) if (ids == s).any() else np.zeros(2) for s in range(6)]
    np.testing.assert_allclose(mean, want, rtol=1e-10)


def test_sparse_segments(run_on_cuda: Any, numbers: np.random.Generator) -> None:
    data, indices = numbers.standard_normal((50, 40)), numbers.integers(0, 50, 700).astype(np.int32)
    ids = np.sort(numbers.integers(0, 9, 700)).astype(np.int32)
    (found,) = run_on_cuda(lambda d, i, s: [tf.sparse_segment_sqrt_n(d, i, s)], data, indices, ids)
    want = [data[indices[ids == s]].sum(0) / np.sqrt((ids == s).sum()) for s in range(9)]
    np.testing.assert_allclose(found, want, rtol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.int8, np.complex64])
def test_slices_that_fall_on_one_place_add_up(run_on_cuda: Any, numbers: np.random.Generator, dtype: Any) -> None:
    tensor, updates = np.ones((20, 30), dtype), numbers.integers(0, 3, 3000).astype(dtype)
    at = numbers.integers(0, 20, (3000, 2)).astype(np.int64)
    (added,) = run_on_cuda(lambda t, i, u: [tf.tensor_scatter_add(t, i, u)], tensor, at, updates)
    wide = dtype if dtype is not ml_dtypes.bfloat16 else np.float32
    want = tensor.astype(wide)
    np.add.at(want, tuple(at.T), updates.astype(wide))
    np.testing.assert_array_equal(added, want.astype(dtype))


def test_the_last_update_of_a_row_stays(run_on_cuda: Any, numbers: np.random.Generator) -> None:
    at, updates = (
        numbers.integers(0, 40, (5000, 1)).astype(np.int32),
        np.arange(15_000, dtype=np.int16).reshape(5000, 3),
    )
    (found,) = run_on_cuda(lambda i, u: [tf.tensor_scatter_update(tf.zeros([40, 3], tf.int16), i, u)], at, updates)
    want = np.zeros((40, 3), np.int16)
    for row, update in zip(at[:, 0], updates, strict=True):
        want[row] = update
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("width", [1, 3, 4, 64])
@pytest.mark.parametrize("axis", [0, 1])
def test_gather(run_on_cuda: Any, numbers: np.random.Generator, width: int, axis: int) -> None:
    params = numbers.standard_normal((9, 33, width)).astype(np.float32)
    at = numbers.integers(0, params.shape[axis], (17, 5)).astype(np.int64)
    (found,) = run_on_cuda(lambda p, i: [tf.gather(p, i, axis=axis)], params, at)
    np.testing.assert_array_equal(found, np.take(params, at, axis))


def test_a_bad_index_is_named_and_nothing_is_written(kit: Any) -> None:
    config = tf.SessionConfig(backends=("cuda", "cpu"), fallback="forbid")
    with tf.Graph(host=kit.host).as_default() as graph:
        var = tf.get_variable("v", [5, 3], tf.float32, tf.zeros_initializer())
        at = tf.placeholder(tf.int32, [2, 2])
        update = tf.scatter_add(var, at, tf.ones([2, 2, 3]))
        with tf.Session(graph=graph, config=config) as session:
            session.run(var.initializer)
            with pytest.raises(
                tf.errors.InvalidArgumentError, match=r"indices\[1\]\[0\] is 5, .* for axis 0 of size 5"
            ):
                session.run(update, {at: [[1, 2], [5, 7]]})
            assert not np.any(session.run(var))
            session.run(update, {at: [[1, 2], [1, 1]]})
            np.testing.assert_array_equal(session.run(var)[:, 0], [0, 3, 1, 0, 0])


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        ([0, 2, 1, 5], r"segment_ids\[2\] is 1, but the id before it is 2"),
        ([-3, 0, 1, 1], r"segment_ids\[0\] is -3"),
    ],
)
def test_segment_ids_that_are_not_sorted(run_on_cuda: Any, ids: list[int], said: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=said):
        run_on_cuda(lambda d, i: [tf.segment_sum(d, i)], np.zeros((4, 2), np.float32), np.array(ids, np.int32))
