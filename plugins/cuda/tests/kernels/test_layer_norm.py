"""Rows that a warp has, rows that a block has, and gradients to gamma over many rows, beside the cpu's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock.ops import apply_op

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("rows", "width"), [(700, 33), (3, 1025), (1, 5000)])
def test_rows(run: Callable[..., Any], rows: int, width: int) -> None:
    rng = np.random.default_rng(1)
    x, gamma = rng.normal(5, 2, (rows, width)).astype(np.float32), rng.standard_normal(width).astype(np.float32)

    def made(a: Any, g: Any) -> Any:
        y, mean, inverse = apply_op("LayerNorm", x=a, gamma=g, beta=tf.zeros_like(g), epsilon=1e-3)
        return [y, mean, inverse, *tf.gradients(y * y, [a, g])]

    for mine, theirs in zip(run(made, x, gamma), run(made, x, gamma, backend="cpu"), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-3, atol=2e-3)
