"""Dropout draws what NumPy's Philox does with the counters of a graphdock stream."""

from __future__ import annotations

import numpy as np
import pytest
from graphdock_triton.kernels.dropout import dropout
from graphdock_triton.kernels.spec import Config, Problem
from graphdock_triton.testing.launching import interpret

from .close import assert_close, draw, empty, wide

KEY, ORDINAL, ITERATION, OUTER = (2**63 + 11, 87654321), 2**40 + 3, 5, 9


def drawn(count):
    """The first numbers of the stream: NumPy counts a block on before it draws it."""
    state = np.random.Philox(key=np.array(KEY, np.uint64), counter=np.array([0, OUTER, ITERATION, ORDINAL], np.uint64))
    halves = state.random_raw(-(-count // 2)).view(np.uint32)
    return (halves[:count] >> 8) * 2.0**-24


@pytest.mark.parametrize(("kind", "residual"), [("fp32", False), ("bf16", True)])
@pytest.mark.sampled(2)
def test_the_mask_is_the_streams(kind, residual):
    n, rate = 203, 0.3
    rng = np.random.default_rng(n)
    x, y = draw(rng, n, kind), empty(n, kind)
    given = {"residual": draw(rng, n, kind)} if residual else {}
    values = {"key0": KEY[0], "key1": KEY[1], "outer": OUTER, "iteration": ITERATION}
    scale = float(np.asarray(1 / (1 - rate)).astype(x.dtype))
    interpret(
        dropout, Problem({"n": n}, {"T": kind}, present=frozenset(given)), Config({"BLOCKS": 16, "BLOCK": 128}),
        x=x, y=y, ordinal=np.array([ORDINAL], np.uint64), rate=rate, scale=scale, **values, **given,
    )  # fmt: skip
    kept = drawn(n) >= np.float32(rate)
    assert 100 < kept.sum() < 180
    assert_close(y, wide(x) * scale * kept + sum(wide(r) for r in given.values()), kind)


def test_what_is_dropped_keeps_nan():
    x = np.full(128, np.nan, np.float32)
    y = np.zeros(128, np.float32)
    values = dict.fromkeys(("key0", "key1", "outer", "iteration"), 7)
    problem = Problem({"n": 128}, {"T": "fp32"})
    interpret(dropout, problem, None, x=x, y=y, ordinal=np.zeros(1, np.uint64), rate=0.5, scale=2.0, **values)
    assert np.isnan(y).all()
