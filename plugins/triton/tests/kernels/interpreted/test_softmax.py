"""Softmax and log-softmax against NumPy in float64."""

from __future__ import annotations

import numpy as np
import pytest
from graphdock_triton.kernels.softmax import softmax, softmax_grad
from graphdock_triton.kernels.spec import Config, Problem
from graphdock_triton.testing.launching import interpret

from .close import assert_close, draw, empty, wide

WIDE = Config({"BLOCK": 16}, 1)
CASES = [
    ("fp32", 5, 45, None),
    ("fp16", 3, 130, None),
    ("bf16", 3, 16, None),
    ("fp32", 2, 77, WIDE),
    ("fp16", 2, 48, WIDE),
]


def reference(x, log):
    with np.errstate(invalid="ignore"):
        d = x - x.max(1, keepdims=True)
        total = np.exp(d).sum(1, keepdims=True)
    return d - np.log(total) if log else np.exp(d) / total


def problem(kind, rows, width, log):
    return Problem({"rows": rows, "width": width}, {"T": kind}, {"LOG": log})


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(("kind", "rows", "width", "config"), CASES)
@pytest.mark.sampled(2)
def test_rows_and_their_gradients(kind, rows, width, config, log):
    rng = np.random.default_rng(width)
    x, dy = (draw(rng, (rows, width), kind, 3.0) for _ in range(2))
    y, dx = empty(x.shape, kind), empty(x.shape, kind)
    interpret(softmax, problem(kind, rows, width, log), config, x=x, y=y)
    assert_close(y, reference(wide(x), log), kind, 3)
    interpret(softmax_grad, problem(kind, rows, width, log), config, dy=dy, y=y, dx=dx)
    soft = np.exp(wide(y)) if log else wide(y)
    grad = wide(dy)
    expected = grad - soft * grad.sum(1, keepdims=True) if log else soft * (grad - (grad * soft).sum(1, keepdims=True))
    assert_close(dx, expected, kind, 6)


@pytest.mark.parametrize("config", [None, WIDE])
@pytest.mark.sampled(2)
def test_infinity_and_nan(config):
    x = np.random.default_rng(1).standard_normal((5, 40)).astype(np.float32)
    x[0, :33] = -np.inf  # whole blocks of nothing
    x[1, 3] = np.inf
    x[2, 39] = np.nan
    x[3] = -np.inf
    x[4] *= 80
    for log in (False, True):
        y = empty(x.shape)
        with np.errstate(all="ignore"):
            interpret(softmax, problem("fp32", 5, 40, log), config, x=x, y=y)
            expected = reference(wide(x), log)
        assert_close(y, expected, "fp32", 10)
        assert np.isnan(y[1:4]).sum() >= 41 + 40
