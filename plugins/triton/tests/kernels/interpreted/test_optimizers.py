"""Updates of many variables against the formulas of the std package's reference, in float64."""

from __future__ import annotations

import numpy as np
import pytest
from graphdock_triton.kernels.optimizers import RATES, SLOTS, chunks_of, global_norm, scale_all, update_all
from graphdock_triton.kernels.spec import Config, Problem
from graphdock_triton.testing.launching import interpret

from .close import assert_close, draw, empty, wide

BLOCK = Config({"BLOCK": 16}, 1)
SIZES = (5, 33, 1, 16)
VALUES = {
    "alpha": 0.1, "lr": 0.05, "momentum": 0.9, "rho": 0.95, "epsilon": 1e-3, "beta1": 0.9, "beta2": 0.999, "beta1_power": 0.81,
    "beta2_power": 0.998, "weight_decay": 0.1,
}  # fmt: skip


def tables(*columns):
    """``table`` and ``chunks`` of lists of arrays: tensor i is at i in each."""
    sizes = [a.size for a in columns[0]]
    rows = [[*(c[i].ctypes.data for c in columns), n] for i, n in enumerate(sizes)]
    return {"table": np.array(rows, np.int64), "chunks": np.array(chunks_of(sizes, BLOCK["BLOCK"]), np.int32)}


def expected(rule, held, grad, rates):
    """By the formulas of specs/train.yaml."""
    var, slots, r = held[0], list(held[1:]), rates
    if rule == "gradient_descent":
        return [var - r["alpha"] * grad]
    if rule in ("momentum", "nesterov"):
        accum = r["momentum"] * slots[0] + grad
        return [var - r["lr"] * (grad + r["momentum"] * accum if rule == "nesterov" else accum), accum]
    if rule == "adagrad":
        accum = slots[0] + grad**2
        return [var - r["lr"] * grad / np.sqrt(accum), accum]
    if rule in ("adam", "adam_w"):
        m = r["beta1"] * slots[0] + (1 - r["beta1"]) * grad
        v = r["beta2"] * slots[1] + (1 - r["beta2"]) * grad**2
        var = var * (1 - r["lr"] * r["weight_decay"]) if rule == "adam_w" else var
        step = r["lr"] * np.sqrt(1 - r["beta2_power"]) / (1 - r["beta1_power"])
        return [var - step * m / (np.sqrt(v) + r["epsilon"]), m, v]
    ms = r["rho"] * slots[-2] + (1 - r["rho"]) * grad**2
    mg = [r["rho"] * slots[0] + (1 - r["rho"]) * grad] if rule == "centered_rms_prop" else []
    mom = r["momentum"] * slots[-1] + r["lr"] * grad / np.sqrt(ms - sum(g**2 for g in mg) + r["epsilon"])
    return [var - mom, *mg, ms, mom]


@pytest.mark.parametrize("kind", ["fp32", "bf16"])
@pytest.mark.parametrize("rule", SLOTS)
@pytest.mark.sampled(2)
def test_all_variables_move_by_the_rule(rule, kind):
    rng = np.random.default_rng(len(rule))
    held = [[draw(rng, n, kind) for n in SIZES]]
    held += [[np.abs(draw(rng, n, kind)) * (0.1 if s == "mg" else 1) for n in SIZES] for s in SLOTS[rule]]
    held = [[a.astype(held[0][0].dtype) for a in column] for column in held]
    grads = [draw(rng, n, kind) for n in SIZES]
    rates = np.array([VALUES[name] for name in RATES[rule]], np.float32)
    known = dict(zip(RATES[rule], rates.astype(np.float64).tolist(), strict=True))
    before = [[wide(a) for a in column] for column in held]
    factor = np.array([0.5], np.float32)
    given = tables(*held, grads)
    problem = Problem({"programs": len(given["chunks"])}, {}, {"RULE": rule, "TYPE": kind}, frozenset({"factor"}))
    addresses = rates.ctypes.data + 4 * np.arange(len(rates), dtype=np.int64)
    interpret(update_all, problem, BLOCK, rates=addresses, factor=factor, **given)
    for i, grad in enumerate(grads):
        for column, want in zip(held, expected(rule, [c[i] for c in before], 0.5 * wide(grad), known), strict=True):
            assert_close(column[i], want, kind, 2)


def test_the_norm_of_all_clips_them():
    rng = np.random.default_rng(5)
    arrays = [draw(rng, n, "fp16") for n in SIZES]
    out = [empty(n, "fp16") for n in SIZES]
    whole = np.sqrt(sum((wide(a) ** 2).sum() for a in arrays))
    for limit, scale in ((1.5, 1.5 / whole), (1e4, 1.0)):
        norm, factor = empty(1), empty(1)
        given = tables(arrays)
        problem = Problem({"programs": len(given["chunks"])}, {}, {"TYPE": "fp16"}, frozenset({"factor", "limit"}))
        limits = np.array([limit], np.float32)
        interpret(global_norm, problem, BLOCK, norm=norm, factor=factor, limit=limits, **given)
        assert_close(norm, [whole], "fp32")
        assert_close(factor, [scale], "fp32")
        problem = Problem({"programs": len(given["chunks"])}, {}, {"TYPE": "fp16"})
        interpret(scale_all, problem, BLOCK, factor=factor, **tables(arrays, out))
        for a, b in zip(arrays, out, strict=True):
            assert_close(b, wide(a) * scale, "fp16")


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.sampled(2)
def test_a_norm_that_went_wrong_is_not_hidden(bad):
    array = np.ones(20, np.float32)
    array[17] = bad
    norm, factor, given = empty(1), empty(1), tables([array])
    problem = Problem({"programs": 2}, {}, present=frozenset({"factor", "limit"}))
    with np.errstate(all="ignore"):
        interpret(global_norm, problem, BLOCK, norm=norm, factor=factor, limit=np.ones(1, np.float32), **given)
    assert not np.isfinite(norm[0]) and np.isnan(factor[0])
