"""Matrix products and what follows them against NumPy in float64."""

from __future__ import annotations

import numpy as np
import pytest
from graphdock_triton.kernels.matmul import matmul
from graphdock_triton.kernels.spec import Config, Problem, plan
from graphdock_triton.testing.launching import interpret

from .close import assert_close, draw, empty, wide
from .test_functions import DEFINITIONS


def tiles(m=16, n=16, k=16, split=1, group=2):
    return Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "SPLIT": split, "GROUP": group})


def strides(name, array, last=False):
    batch, row, column = (s // array.itemsize for s in array.strides)
    named = {f"{name}_batch": 0 if len(array) == 1 else batch, f"{name}_{'k' if name == 'b' else 'm'}": row}
    return named if last else named | {f"{name}_{'n' if name == 'b' else 'k'}": column}


def problem(a, b, c, kind, present=(), **flags):
    dims = {"m": a.shape[1], "n": b.shape[2], "k": a.shape[2], "batch": len(c)}
    dims |= strides("a", a) | strides("b", b) | strides("c", c, True)
    return Problem(dims, {"T": kind, "C": kind, "B": "fp32"}, {"UPCAST": kind == "bf16"} | flags, frozenset(present))


def operands(rng, kind, m, n, k, batch=1, turned=""):
    a = draw(rng, (batch, k, m) if "a" in turned else (batch, m, k), kind)
    b = draw(rng, (batch, n, k) if "b" in turned else (batch, k, n), kind)
    return a.swapaxes(1, 2) if "a" in turned else a, b.swapaxes(1, 2) if "b" in turned else b


@pytest.mark.parametrize(
    ("kind", "m", "n", "k", "batch", "turned", "config"),
    [
        ("fp32", 37, 21, 33, 1, "", tiles()),
        ("fp16", 20, 35, 32, 2, "a", tiles(16, 32, 32)),
        ("bf16", 33, 18, 16, 1, "b", tiles()),
        ("fp32", 17, 16, 70, 2, "ab", tiles(split=4)),
        ("fp32", 5, 3, 9, 1, "", None),
    ],
)
@pytest.mark.sampled(2)
def test_products_of_any_layout(kind, m, n, k, batch, turned, config):
    rng = np.random.default_rng(m)
    a, b = operands(rng, kind, m, n, k, batch, turned)
    c = empty((batch, m, n), kind)
    interpret(matmul, problem(a, b, c, kind), config, a=a, b=b, c=c, alpha=0.5)
    assert_close(c, 0.5 * (wide(a) @ wide(b)), kind, 8)


@pytest.mark.parametrize("split", [1, 2])
@pytest.mark.parametrize(("name", "first"), [("gelu_tanh", False), ("relu", True), ("none", False)])
@pytest.mark.sampled(2)
def test_bias_activation_and_residual_follow(name, first, split):
    rng = np.random.default_rng(7)
    a, b = operands(rng, "fp16", 19, 21, 40)
    bias, residual = draw(rng, 21), draw(rng, (1, 19, 21), "fp16")
    c, pre = empty((1, 19, 21), "fp16"), empty((1, 19, 21), "fp16")
    given = {"bias": bias, "residual": residual, "pre": pre}
    made = problem(a, b, c, "fp16", given, ACTIVATION=name, ADD_FIRST=first)
    interpret(matmul, made, tiles(split=split), a=a, b=b, c=c, alpha=1.0, **given)
    linear = wide(a) @ wide(b) + wide(bias) + (wide(residual) if first else 0)
    assert_close(pre, linear, "fp16", 8)
    assert_close(c, DEFINITIONS[name](linear) + (0 if first else wide(residual)), "fp16", 8)


@pytest.mark.parametrize("name", ["gelu_erf", "tanh"])
@pytest.mark.sampled(2)
def test_backward_gate_and_gradient_of_the_bias(name):
    rng = np.random.default_rng(8)
    a, b = operands(rng, "fp32", 37, 21, 18, 2, "b")
    before = wide(draw(rng, (2, 37, 21)))
    f = DEFINITIONS[name]
    gate = (f(before) if name == "tanh" else before).astype(np.float32)
    c, dbias = empty((2, 37, 21)), empty(21)
    given = {"gate": gate, "dbias": dbias}
    interpret(matmul, problem(a, b, c, "fp32", given, ACTIVATION=name), tiles(), a=a, b=b, c=c, alpha=1.0, **given)
    expected = wide(a) @ wide(b) * (f(before + 1e-6) - f(before - 1e-6)) / 2e-6
    assert_close(c, expected, "fp32", 10)
    assert_close(dbias, expected.sum((0, 1)), "fp32", 100)


def test_one_matrix_for_all_and_rows_apart():
    rng = np.random.default_rng(9)
    a, b = draw(rng, (3, 9, 12)), draw(rng, (1, 12, 7))
    whole = empty((3, 9, 11))
    c = whole[:, :, :7]
    interpret(matmul, problem(a, b, c, "fp32"), tiles(), a=a, b=b, c=c, alpha=1.0)
    assert_close(c, wide(a) @ wide(b), "fp32", 8)
    assert np.isnan(whole[:, :, 7:]).all()


def test_nan_and_infinity_stay_in_their_rows_and_columns():
    rng = np.random.default_rng(10)
    a, b = operands(rng, "fp32", 18, 17, 20)
    a[0, 2, 3], b[0, 19, 5] = np.nan, np.inf
    c = empty((1, 18, 17))
    with np.errstate(all="ignore"):
        interpret(matmul, problem(a, b, c, "fp32"), tiles(), a=a, b=b, c=c, alpha=1.0)
        expected = wide(a) @ wide(b)
    assert_close(c, expected, "fp32", 8)


def test_the_guess_fills_the_gpu():
    def guessed(m, n, k):
        a, b = np.empty((1, m, k), np.float16), np.empty((1, k, n), np.float16)
        launches = plan(matmul, problem(a, b, np.empty((1, m, n), np.float16), "fp16")).launches
        return launches[0].grid, launches[0].constants["BLOCK_M"] * launches[0].constants["BLOCK_N"]

    assert guessed(8192, 8192, 1024)[1] == 128 * 256
    (tiles_, _, splits), _ = guessed(128, 128, 8192)
    assert splits > 1 and tiles_ * splits >= 64
    assert guessed(16, 4096, 4096)[1] == 16 * 128
