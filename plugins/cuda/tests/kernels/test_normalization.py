"""Statistics of batches and rows that several blocks have parts of, beside NumPy in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphdock as tf
import numpy as np
import pytest

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("shape", "data_format"), [((4, 33, 40, 35), "NHWC"), ((4, 3, 33, 40), "NCHW"), ((2, 5, 1, 1), "NCHW")]
)
def test_statistics_of_a_batch(run: Callable[..., Any], shape: Any, data_format: str) -> None:
    x = np.random.default_rng(1).normal(100, 0.5, shape).astype(np.float32)  # the mean is far from zero
    axis = 1 if data_format == "NCHW" else 3
    channels = shape[axis]
    ones, zeros = np.ones(channels, np.float32), np.zeros(channels, np.float32)

    def norm(a: Any, scale: Any, offset: Any) -> Any:
        return tf.nn.fused_batch_norm(a, scale, offset, epsilon=1e-3, data_format=data_format)

    y, mean, variance = run(norm, x, ones, zeros)
    wide, others = x.astype(np.float64), tuple(d for d in range(4) if d != axis)
    np.testing.assert_allclose(mean, wide.mean(others), rtol=1e-6)
    np.testing.assert_allclose(variance, wide.var(others, ddof=1), rtol=1e-4)
    normal = (wide - wide.mean(others, keepdims=True)) / np.sqrt(wide.var(others, keepdims=True) + 1e-3)
    np.testing.assert_allclose(y, normal, atol=2e-3)


def test_gradients_of_a_batch(run: Callable[..., Any]) -> None:
    rng = np.random.default_rng(2)
    x, scale = rng.standard_normal((6, 20, 21, 40)).astype(np.float32), rng.standard_normal(40).astype(np.float32)

    def gradients(a: Any, s: Any) -> Any:
        y = tf.nn.fused_batch_norm(a, s, tf.zeros_like(s))[0]
        return tf.gradients(y * y * y, [a, s])

    for mine, theirs in zip(run(gradients, x, scale), run(gradients, x, scale, backend="cpu"), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("channels", [3, 40])
def test_local_responses(run: Callable[..., Any], channels: int) -> None:
    x = np.random.default_rng(3).standard_normal((2, 5, 6, channels)).astype(np.float32)
    for mine, theirs in zip(
        *(run(lambda a: [tf.nn.lrn(a), *tf.gradients(tf.nn.lrn(a), [a])], x, backend=b) for b in ("cuda", "cpu")),
        strict=True,
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("op", "index"), [("FusedBatchNorm", 1), ("FusedBatchNormGrad", 1)])
def test_edges_of_a_batch_with_channels_first(kit: Any, op: str, index: int) -> None:
    """Images of no height have statistics of nothing; whoever took channels for the last axis then read behind the images."""
    of = {"T": "float32", "U": "float64"}
    (case,) = [c for c in kit.cases(op) if c.kind == "drawn" and c.index == index and c.types == of]
    assert case.attrs["data_format"] == "NCHW"
    kit.check(case)
