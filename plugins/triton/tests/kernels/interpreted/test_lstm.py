"""The LSTM cell, and its gradient against central differences, in float64."""

from __future__ import annotations

import numpy as np
import pytest
from graphdock_triton.kernels.lstm import lstm_cell, lstm_cell_grad
from graphdock_triton.kernels.spec import Config, Problem
from graphdock_triton.testing.launching import interpret

from .close import assert_close, draw, empty, wide

BLOCK = Config({"BLOCK": 16}, 1)


def reference(gates, bias, c, forget_bias):
    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    i, j, f, o = np.split(gates + bias, 4, 1)
    state = c * sigmoid(f + forget_bias) + sigmoid(i) * np.tanh(j)
    return state, np.tanh(state) * sigmoid(o)


@pytest.mark.parametrize(("kind", "rows", "units"), [("fp32", 3, 21), ("bf16", 2, 16)])
@pytest.mark.sampled(2)
def test_the_cell_and_its_gradient(kind, rows, units):
    rng = np.random.default_rng(units)
    gates, bias, c = (draw(rng, s, kind, 2.0) for s in ((rows, 4 * units), 4 * units, (rows, units)))
    new_c, new_h = empty((rows, units), kind), empty((rows, units), kind)
    problem = Problem({"rows": rows, "units": units}, {"T": kind}, present=frozenset({"bias"}))
    values = {"gates": gates, "bias": bias, "c": c, "forget_bias": 1.0}
    interpret(lstm_cell, problem, BLOCK, new_c=new_c, new_h=new_h, **values)
    for got, want in zip((new_c, new_h), reference(wide(gates), wide(bias), wide(c), 1.0), strict=True):
        assert_close(got, want, kind, 2)
    dh, dnew_c = draw(rng, (rows, units), kind), draw(rng, (rows, units), kind)
    dgates, dc = empty(gates.shape, kind), empty(c.shape, kind)
    problem = Problem({"rows": rows, "units": units}, {"T": kind}, present=frozenset({"bias", "dnew_c"}))
    interpret(lstm_cell_grad, problem, BLOCK, new_c=new_c, dh=dh, dnew_c=dnew_c, dgates=dgates, dc=dc, **values)

    def loss(g, s):
        state, out = reference(g, wide(bias), s, 1.0)
        return out * wide(dh) + state * wide(dnew_c)

    step = 1e-6
    for part in range(4):
        nudge = np.zeros(4 * units)
        nudge[part * units : (part + 1) * units] = step
        slope = (loss(wide(gates) + nudge, wide(c)) - loss(wide(gates) - nudge, wide(c))) / (2 * step)
        assert_close(dgates[:, part * units : (part + 1) * units], slope, kind, 4)
    slope = (loss(wide(gates), wide(c) + step) - loss(wide(gates), wide(c) - step)) / (2 * step)
    assert_close(dc, slope, kind, 4)


def test_nan_stays_in_its_unit():
    gates, c = np.zeros((1, 12), np.float32), np.zeros((1, 3), np.float32)
    gates[0, 4], c[0, 2] = np.nan, np.inf
    new_c, new_h = empty((1, 3)), empty((1, 3))
    problem = Problem({"rows": 1, "units": 3}, {"T": "fp32"})
    with np.errstate(all="ignore"):
        interpret(lstm_cell, problem, BLOCK, gates=gates, c=c, new_c=new_c, new_h=new_h, forget_bias=0.0)
    np.testing.assert_array_equal(new_h, np.array([[0, np.nan, 0.5]], np.float32))
