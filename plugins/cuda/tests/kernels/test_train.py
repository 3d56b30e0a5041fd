"""Optimizer updates beyond the samples of their specs: sizes around the bounds of blocks, many rows, rows that are not there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from graphdock.errors import InvalidArgumentError

Computed = Callable[..., list[np.ndarray]]


@pytest.mark.parametrize("size", [1, 7, 255, 4097, 9001])
def test_every_element_is_updated_once(computed: Computed, size: int) -> None:
    rng = np.random.default_rng(size)
    var, m, v = rng.standard_normal(size), rng.standard_normal(size), rng.random(size)
    grad = rng.standard_normal(size)
    rates = {"beta1_power": 0.81, "beta2_power": 0.998, "lr": 0.5, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-3}
    arrays = {"var": var, "m": m, "v": v, **{n: np.float64(r) for n, r in rates.items()}, "grad": grad}
    got = computed("ResourceApplyAdam", arrays, T="float64")
    m, v = 0.9 * m + 0.1 * grad, 0.999 * v + 0.001 * grad**2
    var = var - 0.5 * np.sqrt(1 - 0.998) / (1 - 0.81) * m / (np.sqrt(v) + 1e-3)
    for a, b in zip(got, (var, m, v), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize(
    ("count", "rows", "width"), [(31, 5, 3), (2048, 300, 2), (2049, 70_000, 1), (5000, 17, 3), (300, 2_000_000, 1)]
)
def test_rows_get_the_sum_of_their_gradients_in_order(
    computed: Computed, count: int, rows: int, width: int, dtype: Any
) -> None:
    rng = np.random.default_rng(count)
    var = np.zeros((rows, width), np.float32)
    # sums whose last bits depend on the order
    grad = (rng.standard_normal((count, width)) * 10.0 ** rng.integers(-3, 4, (count, 1))).astype(np.float32)
    indices = rng.integers(0, rows, count).astype(dtype)
    arrays = {"var": var, "alpha": np.float32(1), "delta": grad, "indices": indices}
    (got,) = computed("ResourceSparseApplyGradientDescent", arrays)
    want = np.zeros_like(var)
    np.add.at(want, indices, grad)
    np.testing.assert_array_equal(got, -want)


@pytest.mark.parametrize("bad", [-3, 4])
def test_a_row_that_is_not_there_changes_nothing(computed: Computed, bad: int) -> None:
    indices = np.array([1, bad, 0], np.int32)
    arrays = {"var": np.zeros((4, 2), np.float32), "alpha": np.float32(1), "delta": np.ones((3, 2), np.float32)}
    with pytest.raises(InvalidArgumentError, match=f"rows from 0 to 3, got {bad}"):
        computed("ResourceSparseApplyGradientDescent", {**arrays, "indices": indices})


def test_a_gradient_of_another_shape_is_refused(computed: Computed) -> None:
    arrays = {"var": np.zeros(4, np.float32), "alpha": np.float32(1), "delta": np.ones(3, np.float32)}
    with pytest.raises(InvalidArgumentError, match="delta has not the shape of var"):
        computed("ResourceApplyGradientDescent", arrays)
