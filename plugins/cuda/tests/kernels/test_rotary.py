"""Heads of many positions, whose threads are several blocks', beside complex numbers of NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

Computed = Callable[..., list[np.ndarray]]


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("depth", [64, 67])
def test_heads(computed: Computed, depth: int, pairs: bool, back: bool) -> None:
    rng = np.random.default_rng(1)
    x, angles = rng.standard_normal((2, 17, 3, depth)).astype(np.float32), rng.uniform(0, 7, (17, 32))
    (y,) = computed("Rotary", {"x": x, "cos": np.cos(angles), "sin": np.sin(angles)}, pairs=pairs, back=back)

    first, second = (slice(0, 64, 2), slice(1, 64, 2)) if pairs else (slice(32), slice(32, 64))
    turned = (x[..., first] + 1j * x[..., second]) * np.exp((-1j if back else 1j) * angles[:, None])
    expected = x.astype(np.float64)
    expected[..., first], expected[..., second] = turned.real, turned.imag
    np.testing.assert_allclose(y, expected, rtol=1e-6, atol=1e-6)
