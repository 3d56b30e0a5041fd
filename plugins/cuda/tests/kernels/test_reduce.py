"""Reductions and scans of sizes that take several blocks, several passes, or do not fill the last one, against NumPy."""

from __future__ import annotations

from typing import Any

import graphdock as tf
import ml_dtypes
import numpy as np
import pytest

SIZES = [31, 33, 255, 257, 1025, 5000]


@pytest.fixture
def numbers() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        *[((size,), (0,)) for size in SIZES],
        ((70_001,), (0,)),
        ((3, 20_000), (1,)),
        ((20_000, 3), (0,)),
        ((5000, 33), (0,)),
        ((513, 257), (1,)),
        ((3, 700, 5, 31), (1, 3)),
        ((9000, 2, 9), (0, 2)),
        ((2, 3, 1, 5000, 2), (1, 3)),
    ],
)
@pytest.mark.sampled(2)
def test_any_axes(
    run_on_cuda: Any, numbers: np.random.Generator, shape: tuple[int, ...], axes: tuple[int, ...]
) -> None:
    x = numbers.standard_normal(shape).astype(np.float32)
    total, largest, mean = run_on_cuda(
        lambda x: [tf.reduce_sum(x, axes), tf.reduce_max(x, axes), tf.reduce_mean(x, axes, keepdims=True)], x
    )
    np.testing.assert_allclose(total, x.sum(axes, np.float64), rtol=1e-5, atol=2e-4)
    np.testing.assert_array_equal(largest, x.max(axes))
    np.testing.assert_allclose(mean, x.mean(axes, np.float64, keepdims=True), rtol=1e-5, atol=1e-6)


def test_narrow_types_are_summed_wide(run_on_cuda: Any) -> None:
    """Each would saturate or lose all later terms if it were summed in its own type."""
    half, integer = np.ones(40_000, ml_dtypes.bfloat16), np.full(40_000, 127, np.int8)
    total, mean = run_on_cuda(lambda h, i: [tf.reduce_sum(h), tf.reduce_mean(i)], half, integer)
    assert float(total) == 40_000 // 256 * 256
    assert int(mean) == 127


def test_integers_wrap(run_on_cuda: Any, numbers: np.random.Generator) -> None:
    x = numbers.integers(-128, 127, 30_000).astype(np.int8)
    (total,) = run_on_cuda(lambda x: [tf.reduce_sum(x)], x)
    assert total == x.sum(dtype=np.int8)


@pytest.mark.parametrize("axis", [0, 1])
def test_the_first_extreme_wins_and_nan_is_passed_over_by_its_place_alone(
    run_on_cuda: Any, numbers: np.random.Generator, axis: int
) -> None:
    x = numbers.integers(0, 50, (6, 9000)).astype(np.float32)
    x[3, 70] = x[3, 7000] = np.nan
    found = run_on_cuda(lambda x: [tf.argmax(x, axis), tf.argmin(x, axis), tf.reduce_min(x, axis)], x)
    for got, want in zip(found, (np.nanargmax(x, axis), np.nanargmin(x, axis), x.min(axis)), strict=True):
        np.testing.assert_array_equal(got, want)


def test_a_sum_has_the_same_bits_each_time(run_on_cuda: Any, numbers: np.random.Generator) -> None:
    x = numbers.standard_normal((4, 30_011)).astype(np.float32)
    first, again = (run_on_cuda(lambda x: [tf.reduce_sum(x)], x)[0] for _ in range(2))
    assert first.tobytes() == again.tobytes()


@pytest.mark.parametrize("size", [1, 33, 1023, 1025, 5000, 40_003])
@pytest.mark.parametrize(("exclusive", "reverse"), [(False, False), (True, False), (False, True), (True, True)])
def test_running_sums(
    run_on_cuda: Any, numbers: np.random.Generator, size: int, exclusive: bool, reverse: bool
) -> None:
    x = numbers.integers(-9, 9, (2, size)).astype(np.int64)
    rows, columns = run_on_cuda(
        lambda x, y: [tf.cumsum(x, 1, exclusive, reverse), tf.cumsum(y, 0, exclusive, reverse)], x, x.T.copy()
    )
    want = x[:, ::-1] if reverse else x
    want = np.cumsum(want, 1) - (want if exclusive else 0)
    want = want[:, ::-1] if reverse else want
    np.testing.assert_array_equal(rows, want)
    np.testing.assert_array_equal(columns, want.T)
