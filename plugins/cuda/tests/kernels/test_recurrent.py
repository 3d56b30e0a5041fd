"""Cells of more units than a block has threads, and of rows that end within one, beside NumPy's in float64."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

Computed = Callable[..., list[np.ndarray]]


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize(("rows", "units"), [(1, 257), (65, 33), (513, 1)])
def test_cells(computed: Computed, rows: int, units: int) -> None:
    rng = np.random.default_rng(rows)
    gates = rng.normal(0, 3, (rows, 4 * units)).astype(np.float32)
    c, dh, dc = rng.standard_normal((3, rows, units)).astype(np.float32)
    i, j, f, o = np.split(gates.astype(np.float64), 4, 1)
    i, j, f, o = _sigmoid(i), np.tanh(j), _sigmoid(f + 0.5), _sigmoid(o)
    state = c * f + i * j
    out = np.tanh(state)

    h, new_c = computed("LSTMGates", {"gates": gates, "c": c}, forget_bias=0.5)
    np.testing.assert_allclose(h, out * o, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(new_c, state, rtol=1e-5, atol=1e-6)

    arrays = {"h_backprop": dh, "new_c_backprop": dc, "gates": gates, "c": c, "new_c": new_c}
    to_gates, to_c = computed("LSTMGatesGrad", arrays, forget_bias=0.5)
    through = dc + dh * o * (1 - out**2)
    slopes = [through * j * i * (1 - i), through * i * (1 - j**2), through * c * f * (1 - f), dh * out * o * (1 - o)]
    np.testing.assert_allclose(to_gates, np.concatenate(slopes, 1), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(to_c, through * f, rtol=1e-4, atol=1e-6)
