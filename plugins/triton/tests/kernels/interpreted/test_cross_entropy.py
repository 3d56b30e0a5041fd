"""Cross-entropies and their gradients against NumPy in float64."""

from __future__ import annotations

import numpy as np
import pytest
from graphdock_triton.kernels.cross_entropy import cross_entropy, sparse_cross_entropy
from graphdock_triton.kernels.spec import Config, Problem
from graphdock_triton.testing.launching import interpret

from .close import assert_close, draw, empty, wide

WIDE = Config({"BLOCK": 16}, 1)
#: One row per program, in registers.
ALONE = Config({"BLOCK": 64}, 1)
CASES = [("fp32", 5, 45, None), ("bf16", 3, 16, None), ("fp16", 3, 77, WIDE)]


def reference(x, labels):
    d = x - x.max(1, keepdims=True)
    log_sum = np.log(np.exp(d).sum(1, keepdims=True))
    return (labels * (log_sum - d)).sum(1), np.exp(d - log_sum) * 1.0 - labels


@pytest.mark.parametrize(("kind", "rows", "width", "config"), CASES)
@pytest.mark.sampled(2)
def test_distributions(kind, rows, width, config):
    rng = np.random.default_rng(width)
    x = draw(rng, (rows, width), kind, 3.0)
    labels = rng.dirichlet(np.ones(width), rows).astype(x.dtype)
    dloss, loss, dx = draw(rng, rows), empty(rows), empty(x.shape, kind)
    problem = Problem({"rows": rows, "width": width}, {"T": kind, "L": "fp32"}, present=frozenset({"dx", "dloss"}))
    interpret(cross_entropy, problem, config, x=x, labels=labels, loss=loss, dx=dx, dloss=dloss)
    cost, grad = reference(wide(x), wide(labels))
    assert_close(loss, cost, "fp32", 3)
    assert_close(dx, grad * wide(dloss)[:, None], kind, 2)
    only = empty(rows)
    problem = Problem({"rows": rows, "width": width}, {"T": kind, "L": "fp32"})
    interpret(cross_entropy, problem, config, x=x, labels=labels, loss=only)
    np.testing.assert_array_equal(only, loss)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize(("kind", "rows", "width", "config"), [*CASES, ("fp32", 3, 45, ALONE)])
@pytest.mark.sampled(2)
def test_classes_smoothed_and_ignored_over_the_logits(kind, rows, width, config, smoothing):
    rng = np.random.default_rng(width)
    x = draw(rng, (rows, width), kind, 3.0)
    before = wide(x)
    labels = rng.integers(0, width, rows)
    labels[0], labels[1] = -1, width - 1
    smooth = (1 - smoothing) * np.eye(width)[labels] + smoothing / width
    cost, grad = reference(before, smooth)
    cost[0], grad[0] = 0, 0
    loss = empty(rows)
    flags = {"SMOOTH": smoothing > 0, "IGNORE": True}
    problem = Problem({"rows": rows, "width": width}, {"T": kind, "L": "fp32", "I": "i64"}, flags, frozenset({"dx"}))
    interpret(
        sparse_cross_entropy,
        problem,
        config,
        x=x,
        labels=labels,
        loss=loss,
        dx=x,
        code=0,
        ignored=-1,
        smoothing=smoothing,
    )
    assert_close(loss, cost, "fp32", 4)
    assert_close(x, grad, kind, 2)


@pytest.mark.parametrize("config", [None, ALONE, WIDE])
@pytest.mark.sampled(2)
def test_a_label_that_is_no_class_is_reported(config):
    x = np.random.default_rng(3).standard_normal((3, 20)).astype(np.float32)
    x[2, 5] = -np.inf
    labels = np.array([4, 20, 5], np.int32)
    loss, dx, fault = empty(3), empty(x.shape), np.zeros(3, np.int64)
    problem = Problem(
        {"rows": 3, "width": 20}, {"T": "fp32", "L": "fp32", "I": "i32"}, present=frozenset({"dx", "fault"})
    )
    values = {"x": x, "labels": labels, "loss": loss, "dx": dx, "ignored": 0, "smoothing": 0.0}
    with np.errstate(all="ignore"):
        interpret(sparse_cross_entropy, problem, config, fault=fault, code=77, **values)
    assert fault.tolist() == [20, 1, 77]
    assert np.isfinite(loss[0]) and np.isnan(loss[1]) and loss[2] == np.inf
    assert np.isnan(dx[1]).all() and np.isfinite(dx[[0, 2]]).all()
