"""Activations against their definitions, and their derivatives against central differences, in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
import triton
import triton.language as tl
from graphdock_triton.kernels.functions import ACTIVATIONS, activation, activation_grad
from graphdock_triton.testing.interpreter import tensors

from .close import assert_close, empty


def _logistic(x):
    return 1 / (1 + np.exp(-x))


DEFINITIONS = {
    "none": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "gelu_erf": lambda x: 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
    "silu": lambda x: x * _logistic(x),
    "tanh": np.tanh,
    "sigmoid": _logistic,
}


@triton.jit
def both(x, y, d, NAME: tl.constexpr, BY_RESULT: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + at)
    out = activation(v, NAME)
    tl.store(y + at, out)
    if BY_RESULT:
        tl.store(d + at, activation_grad(out, NAME))
    else:
        tl.store(d + at, activation_grad(v, NAME))


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.sampled(2)
def test_values_and_derivatives(name):
    x = np.concatenate([np.linspace(-9, 9, 121), [1e-4, -1e-3, 0.249, 0.251, -0.26, 1e-20, 60]]).astype(np.float32)
    y, d = empty(128), empty(128)
    both[(1,)](*tensors(x, y, d), name, name in ("relu", "relu6", "tanh", "sigmoid"), 128)
    wide = x.astype(np.float64)
    f = DEFINITIONS[name]
    assert_close(y, f(wide), "fp32")
    if name in ("tanh", "sigmoid"):
        np.testing.assert_allclose(y, f(wide), rtol=1e-6)
    slope = (f(wide + 1e-6) - f(wide - 1e-6)) / 2e-6
    kept = np.abs(wide) > 1e-5 if name.startswith("relu") else np.full(128, True)
    kept &= np.abs(wide - 6) > 1e-5
    assert_close(d[kept], slope[kept], "fp32")


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.sampled(2)
def test_nan_stays_and_infinity_is_the_limit(name):
    x = np.zeros(4, np.float32)
    x[:3] = np.nan, np.inf, -np.inf
    y, d = empty(4), empty(4)
    with np.errstate(all="ignore"):
        both[(1,)](*tensors(x, y, d), name, False, 4)
    assert np.isnan(y[0])
    assert y[1] == {"tanh": 1, "sigmoid": 1, "relu6": 6}.get(name, np.inf)
    if name in ("none", "relu", "relu6", "tanh", "sigmoid"):
        assert y[2] == {"none": -np.inf, "tanh": -1}.get(name, 0)
