"""Batch norm and its gradient against NumPy in float64."""

from __future__ import annotations

import numpy as np
import pytest
from graphdock_triton.kernels.batch_norm import batch_norm, batch_norm_grad
from graphdock_triton.kernels.spec import Config, Problem
from graphdock_triton.testing.launching import interpret

from .close import assert_close, draw, empty, wide

SMALL = Config({"ROWS": 4, "BLOCK": 16}, 1)
EPSILON = 1e-3


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(("kind", "rows", "channels", "processors"), [("fp32", 75, 21, 1), ("bf16", 9, 16, 132)])
@pytest.mark.sampled(2)
def test_normalised_channels_and_their_gradient(kind, rows, channels, processors, training):
    rng = np.random.default_rng(rows)
    far = 100 * training  # far from zero
    x = (draw(rng, (rows, channels)) + far).astype(draw(rng, 1, kind).dtype)
    scale, offset, dy = draw(rng, channels), draw(rng, channels), draw(rng, (rows, channels), kind)
    mean, variance = (
        (empty(channels), empty(channels)) if training else (draw(rng, channels), rng.random(channels, "f4"))
    )
    y, dx, made = empty(x.shape, kind), empty(x.shape, kind), {}
    dims, types, flags = {"rows": rows, "channels": channels}, {"T": kind}, {"TRAINING": training}
    for name in ("batch_mean", "batch_variance", *(() if training else ("kept_mean", "kept_variance"))):
        made[name] = empty(channels)
    given = {"x": x, "scale": scale, "mean": mean, "variance": variance, "epsilon": EPSILON}
    problem = Problem(dims, types, flags, frozenset(made), multiprocessors=processors)
    interpret(batch_norm, problem, SMALL, **given, **made, offset=offset, y=y)
    if training:
        np.testing.assert_allclose(mean, wide(x).mean(0), rtol=1e-6)
        np.testing.assert_allclose(variance, wide(x).var(0), rtol=1e-4)
        np.testing.assert_allclose(made["batch_variance"], wide(x).var(0, ddof=1), rtol=1e-4)
        np.testing.assert_array_equal(made["batch_mean"], mean)
    else:
        for name, again in made.items():
            np.testing.assert_array_equal(again, mean if name.endswith("mean") else variance)
    root = 1 / np.sqrt(wide(variance) + EPSILON)
    normal = (wide(x) - wide(mean)) * root
    assert_close(y, normal * wide(scale) + wide(offset), kind, 200 if training else 10)
    dscale, doffset = empty(channels), empty(channels)
    problem = Problem(dims, types, flags, multiprocessors=processors)
    interpret(batch_norm_grad, problem, SMALL, **given, dy=dy, dx=dx, dscale=dscale, doffset=doffset)
    assert_close(dscale, (wide(dy) * normal).sum(0), "fp32", 20)
    assert_close(doffset, wide(dy).sum(0), "fp32", 20)
    grad = wide(dy)
    if training:
        grad = grad - wide(dy).mean(0) - normal * (wide(dy) * normal).mean(0)
    assert_close(dx, grad * root * wide(scale), kind, 40)


def test_nan_stays_in_its_channel():
    x = np.random.default_rng(4).standard_normal((10, 5)).astype(np.float32)
    x[3, 2], x[9, 4] = np.nan, np.inf
    mean, variance, y = empty(5), empty(5), empty(x.shape)
    ones, problem = np.ones(5, np.float32), Problem({"rows": 10, "channels": 5}, {"T": "fp32"})
    with np.errstate(all="ignore"):
        given = {"scale": ones, "offset": ones, "mean": mean, "variance": variance, "epsilon": EPSILON}
        interpret(batch_norm, problem, SMALL, x=x, y=y, **given)
    assert np.isnan(variance).tolist() == [False, False, True, False, True]
    assert_close(mean[:2], wide(x).mean(0)[:2], "fp32")
    assert np.isnan(y).any(0).tolist() == [False, False, True, False, True]
