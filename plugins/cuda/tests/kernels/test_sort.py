"""What stands on sorting: sizes within a block's network, just beyond it, and of several tiles, against NumPy."""

from __future__ import annotations

from typing import Any

import graphdock as tf
import ml_dtypes
import numpy as np
import pytest
from graphdock_std._gen.selection_ops import bincount

SIZES = [1, 33, 257, 2048, 2049, 9000]


@pytest.fixture
def numbers() -> np.random.Generator:
    return np.random.default_rng(0)


def _values(numbers: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """With repeats, both signs, and where there are any NaN, infinities and both zeros."""
    x = numbers.integers(-60, 60, shape).astype(dtype)
    if x.dtype.kind not in "iu" and x.size > 8:
        flat = x.reshape(-1)
        flat[[1, -1]] = np.nan
        flat[[2, 4]] = 0.0, -0.0
        flat[[3, 5]] = np.inf, -np.inf
    return x


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.uint16, np.int64]
)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.sampled(2)
def test_top_k_is_stable(run_on_cuda: Any, numbers: np.random.Generator, dtype: Any, size: int) -> None:
    x = _values(numbers, (3, size), dtype)
    wide = x.astype(np.float32) if dtype is ml_dtypes.bfloat16 else x
    order = (size - 1 - np.argsort(wide[:, ::-1], axis=1, kind="stable"))[:, ::-1]
    counts = sorted({min(size, 5), size})
    for count, (values, places) in zip(
        counts, run_on_cuda(lambda x: [tf.nn.top_k(x, k) for k in counts], x), strict=True
    ):
        np.testing.assert_array_equal(places, order[:, :count])
        np.testing.assert_array_equal(values.astype(wide.dtype), np.take_along_axis(wide, order[:, :count], 1))


@pytest.mark.parametrize("size", SIZES)
def test_nth_element(run_on_cuda: Any, numbers: np.random.Generator, size: int) -> None:
    x, at = _values(numbers, (2, size), np.float32), size // 2
    low, high = run_on_cuda(lambda x: [tf.nn.nth_element(x, at), tf.nn.nth_element(x, at, reverse=True)], x)
    np.testing.assert_array_equal(low, np.sort(x, 1)[:, at])
    np.testing.assert_array_equal(high, np.sort(x, 1)[:, size - 1 - at])


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_, np.complex64])
@pytest.mark.parametrize("size", SIZES)
def test_unique(run_on_cuda: Any, numbers: np.random.Generator, dtype: Any, size: int) -> None:
    x = _values(numbers, (size,), dtype) if dtype is not np.bool_ else numbers.integers(0, 2, size).astype(bool)
    if dtype is np.complex64:
        x = (x + 1j * numbers.integers(0, 2, size)).astype(dtype)
    (found,) = run_on_cuda(lambda x: [tf.unique_with_counts(x)], x)
    _, first, counts = np.unique(x, return_index=True, return_counts=True, equal_nan=False)
    order = np.argsort(first)
    np.testing.assert_array_equal(found[0], x[first[order]])
    np.testing.assert_array_equal(found[2], counts[order])
    np.testing.assert_array_equal(found[0][found[1]], x)


@pytest.mark.parametrize("size", [1, 1023, 1025, 5000])
def test_where_and_list_diff(run_on_cuda: Any, numbers: np.random.Generator, size: int) -> None:
    x, y = numbers.integers(0, 300, size), numbers.integers(0, 200, 70)
    places, (kept, at) = run_on_cuda(lambda x, y: [tf.where(tf.greater(x, 100)), tf.setdiff1d(x, y)], x, y)
    np.testing.assert_array_equal(places, np.argwhere(x > 100))
    np.testing.assert_array_equal(at, np.flatnonzero(~np.isin(x, y)))
    np.testing.assert_array_equal(kept, x[~np.isin(x, y)])


def test_bins(run_on_cuda: Any, numbers: np.random.Generator) -> None:
    x, arr = numbers.standard_normal(7000).astype(np.float32), numbers.integers(0, 40, 7000).astype(np.int32)
    weights = numbers.standard_normal(7000)
    few, many, counts, sums = run_on_cuda(
        lambda x, a, w: [
            tf.histogram_fixed_width(x, [-2.0, 2.0], 50),
            tf.histogram_fixed_width(x, [-2.0, 2.0], 20_000),
            bincount(a, 30, tf.zeros([0], tf.int32)),
            bincount(a, 40, w),
        ],
        x,
        arr,
        weights,
    )
    for found in (few, many):
        places = np.floor((np.clip(x, -2, 2) + 2) / 4 * len(found)).astype(int).clip(0, len(found) - 1)
        np.testing.assert_array_equal(found, np.bincount(places, minlength=len(found)))
    np.testing.assert_array_equal(counts, np.bincount(arr, minlength=40)[:30])
    np.testing.assert_allclose(sums, np.bincount(arr, weights, 40), rtol=1e-9, atol=1e-9)


def test_places_in_sorted_rows(run_on_cuda: Any, numbers: np.random.Generator) -> None:
    rows, values = np.sort(numbers.integers(0, 90, (3, 1500)), 1), numbers.integers(-5, 95, (3, 400))
    lower, upper = run_on_cuda(
        lambda r, v: [tf.searchsorted(r, v, side="left"), tf.searchsorted(r, v, side="right")], rows, values
    )
    for found, side in ((lower, "left"), (upper, "right")):
        np.testing.assert_array_equal(found, [r.searchsorted(v, side) for r, v in zip(rows, values, strict=True)])


def test_partitions_and_their_inverse(run_on_cuda: Any, numbers: np.random.Generator) -> None:
    data, parts = numbers.standard_normal((3000, 3)), numbers.integers(0, 4, 3000).astype(np.int32)
    pieces = run_on_cuda(lambda d, p: tf.dynamic_partition(d, p, 4), data, parts)
    for number, piece in enumerate(pieces):
        np.testing.assert_array_equal(piece, data[parts == number])
    places = [np.flatnonzero(parts == number).astype(np.int32) for number in range(4)]
    (whole,) = run_on_cuda(lambda *x: [tf.dynamic_stitch(list(x[:4]), list(x[4:]))], *places, *pieces)
    np.testing.assert_array_equal(whole, data)
