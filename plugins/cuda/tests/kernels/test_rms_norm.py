"""Rows that a warp has, rows that a block has, and gradients to gamma over many rows, beside NumPy's in float64."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

Computed = Callable[..., list[np.ndarray]]


@pytest.mark.parametrize(("rows", "width"), [(700, 33), (3, 1025), (1, 5000)])
def test_rows(computed: Computed, rows: int, width: int) -> None:
    rng = np.random.default_rng(1)
    x, dy = (rng.normal(at, 2, (rows, width)).astype(np.float32) for at in (5, 0))
    gamma = rng.standard_normal(width).astype(np.float32)
    wide, slopes = x.astype(np.float64), dy.astype(np.float64) * gamma
    root = 1 / np.sqrt((wide**2).mean(1) + 1e-3)
    normal = wide * root[:, None]

    y, inverse = computed("RMSNorm", {"x": x, "gamma": gamma}, epsilon=1e-3)
    np.testing.assert_allclose(inverse, root, rtol=1e-5)
    np.testing.assert_allclose(y, normal * gamma, rtol=1e-5, atol=1e-6)

    arrays = {"y_backprop": dy, "x": x, "gamma": gamma, "inverse": inverse}
    to_x, to_gamma = computed("RMSNormGrad", arrays)
    expected = root[:, None] * (slopes - normal * (slopes * normal).mean(1, keepdims=True))
    np.testing.assert_allclose(to_x, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(to_gamma, (dy * normal).sum(0), rtol=1e-4, atol=1e-3)
