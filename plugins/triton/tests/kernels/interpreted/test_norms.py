"""Norms against NumPy in float64."""

from __future__ import annotations

import numpy as np
import pytest
from graphdock_triton.kernels.norms import norm, norm_grad
from graphdock_triton.kernels.spec import Config, Problem
from graphdock_triton.testing.launching import interpret

from .close import assert_close, draw, empty, wide

EPSILON = 1e-3
WIDE = Config({"BLOCK": 32}, 8)
WIDE_GRAD = Config({"BLOCK": 32, "COLUMN_ROWS": 4, "COLUMNS": 16, "COUNTED": 2}, 8)


def reference(x, rms, gamma=1.0, beta=0.0):
    mean = np.zeros(len(x)) if rms else x.mean(1)
    inverse = 1 / np.sqrt(((x - mean[:, None]) ** 2).mean(1) + EPSILON)
    return (x - mean[:, None]) * inverse[:, None] * gamma + beta, mean, inverse


@pytest.mark.parametrize(
    ("kind", "rows", "width", "rms", "config"),
    [
        ("fp32", 7, 45, False, None),
        ("fp16", 3, 130, True, None),
        ("bf16", 5, 16, False, None),
        ("fp32", 3, 77, False, WIDE),
        ("fp16", 2, 64, True, WIDE),
    ],
)
@pytest.mark.sampled(2)
def test_normalises_rows_of_x_plus_residual(kind, rows, width, rms, config):
    rng = np.random.default_rng(rows)
    x, residual = (draw(rng, (rows, width), kind) for _ in range(2))
    gamma, beta = (draw(rng, width) for _ in range(2))
    y, total = empty((rows, width), kind), empty((rows, width), kind)
    mean, inverse = empty(rows), empty(rows)
    optional = {"residual": residual, "total": total, "gamma": gamma, "beta": beta, "inverse": inverse} | (
        {} if rms else {"mean": mean}
    )
    problem = Problem({"rows": rows, "width": width}, {"T": kind, "U": "fp32"}, {"RMS": rms}, frozenset(optional))
    interpret(norm, problem, config, x=x, y=y, epsilon=EPSILON, **optional)
    assert_close(total, wide(x) + wide(residual), kind)
    expected = reference(wide(total), rms, wide(gamma), wide(beta))
    assert_close(y, expected[0], kind, 4)
    assert_close(inverse, expected[2], "fp32")
    if not rms:
        assert_close(mean, expected[1], "fp32")


def test_nan_and_infinity_stay_in_their_rows():
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    x[0, 2], x[1, 4] = np.nan, np.inf
    for config in (None, Config({"BLOCK": 2}, 1)):
        y = empty((3, 5))
        interpret(norm, Problem({"rows": 3, "width": 5}, {"T": "fp32", "U": "fp32"}), config, x=x, y=y, epsilon=EPSILON)
        assert np.isnan(y[:2]).all()
        assert_close(y[2:], reference(wide(x[2:]), False)[0], "fp32")


@pytest.mark.parametrize(
    ("kind", "rows", "width", "rms", "processors", "config"),
    [
        ("fp32", 70, 45, False, 1, None),
        ("fp16", 9, 130, True, 4, None),
        ("bf16", 5, 16, False, 132, None),
        ("fp32", 21, 77, False, 132, WIDE_GRAD),
        ("fp32", 5, 40, True, 132, WIDE_GRAD),
    ],
)
@pytest.mark.sampled(2)
def test_gradients_are_those_of_the_function(kind, rows, width, rms, processors, config):
    rng = np.random.default_rng(width)
    x, dy, dtotal = (draw(rng, (rows, width), kind) for _ in range(3))
    gamma = draw(rng, width)
    _, mean, inverse = reference(wide(x), rms)
    dx, dgamma, dbeta = empty((rows, width), kind), empty(width), empty(width)
    given = {"gamma": gamma, "dgamma": dgamma, "dtotal": dtotal}
    if not rms:
        given |= {"mean": mean.astype(np.float32), "dbeta": dbeta}
    problem = Problem(
        {"rows": rows, "width": width},
        {"T": kind, "U": "fp32"},
        {"RMS": rms},
        frozenset(given),
        multiprocessors=processors,
    )
    interpret(norm_grad, problem, config, x=x, dy=dy, dx=dx, inverse=inverse.astype(np.float32), **given)
    # central differences of sum(dy * f), in float64
    normal = (wide(x) - (0 if rms else mean[:, None])) * inverse[:, None]
    assert_close(dgamma, (wide(dy) * normal).sum(0), "fp32", 30)
    if not rms:
        assert_close(dbeta, wide(dy).sum(0), "fp32", 30)
    expected = np.zeros((rows, width))
    step = 1e-5
    for column in range(width):
        nudge = np.zeros(width)
        nudge[column] = step
        up, down = (reference(wide(x) + s * nudge, rms, wide(gamma))[0] for s in (1, -1))
        expected[:, column] = (wide(dy) * (up - down)).sum(1) / (2 * step)
    assert_close(dx, expected + wide(dtotal), kind, 6)
