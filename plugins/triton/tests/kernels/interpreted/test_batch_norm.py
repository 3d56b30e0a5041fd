"""Statistics of channels against NumPy in float64."""

from __future__ import annotations

import numpy as np
import pytest
from graphdock_triton.kernels.batch_norm import batch_norm_grad_sums, batch_norm_statistics
from graphdock_triton.kernels.spec import Config, Problem
from graphdock_triton.testing.launching import interpret

from .close import assert_close, draw, empty, wide

SMALL = Config({"ROWS": 4, "BLOCK": 16}, 1)


@pytest.mark.parametrize(("kind", "rows", "channels", "processors"), [("fp32", 75, 21, 1), ("bf16", 9, 16, 132)])
def test_statistics_and_sums_of_the_gradient(kind, rows, channels, processors):
    rng = np.random.default_rng(rows)
    x = (draw(rng, (rows, channels)) + 100).astype(draw(rng, 1, kind).dtype)  # far from zero
    mean, variance, unbiased = empty(channels), empty(channels), empty(channels)
    dims, types = {"rows": rows, "channels": channels}, {"T": kind}
    problem = Problem(dims, types, present=frozenset({"unbiased"}), multiprocessors=processors)
    interpret(batch_norm_statistics, problem, SMALL, x=x, mean=mean, variance=variance, unbiased=unbiased)
    np.testing.assert_allclose(mean, wide(x).mean(0), rtol=1e-6)
    np.testing.assert_allclose(variance, wide(x).var(0), rtol=1e-4)
    np.testing.assert_allclose(unbiased, wide(x).var(0, ddof=1), rtol=1e-4)
    dy, inverse = draw(rng, (rows, channels), kind), (1 / np.sqrt(variance + 1e-3)).astype(np.float32)
    dscale, doffset = empty(channels), empty(channels)
    problem = Problem(dims, types, multiprocessors=processors)
    interpret(
        batch_norm_grad_sums, problem, SMALL, dy=dy, x=x, mean=mean, inverse=inverse, dscale=dscale, doffset=doffset
    )
    assert_close(dscale, (wide(dy) * (wide(x) - wide(mean)) * wide(inverse)).sum(0), "fp32", 20)
    assert_close(doffset, wide(dy).sum(0), "fp32", 20)


def test_nan_stays_in_its_channel():
    x = np.random.default_rng(4).standard_normal((10, 5)).astype(np.float32)
    x[3, 2], x[9, 4] = np.nan, np.inf
    mean, variance = empty(5), empty(5)
    with np.errstate(all="ignore"):
        interpret(
            batch_norm_statistics,
            Problem({"rows": 10, "channels": 5}, {"T": "fp32"}),
            SMALL,
            x=x,
            mean=mean,
            variance=variance,
        )
    assert np.isnan(variance).tolist() == [False, False, True, False, True]
    assert_close(mean[:2], wide(x).mean(0)[:2], "fp32")
