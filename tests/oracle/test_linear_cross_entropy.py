"""A linear layer with its cross-entropy, and its gradients, beside PyTorch's two functions, and their training."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock import ops

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.oracle, pytest.mark.slow]


@pytest.mark.parametrize("bias", [True, False])
def test_loss_and_gradients(bias):
    """More classes than a chunk of the cpu's kernel has, with few rows; PyTorch's weights are [classes, inner]."""
    random = np.random.default_rng(4)
    drawn = {"x": (2000, 8), "w": (3000, 8)} | ({"bias": (3000,)} if bias else {})
    arrays = {name: random.standard_normal(shape).astype(np.float32) for name, shape in drawn.items()}
    labels = random.integers(0, 3000, 2000)
    leaves = {name: torch.tensor(a, requires_grad=True) for name, a in arrays.items()}
    linear = torch.nn.functional.linear(leaves["x"], leaves["w"], leaves.get("bias"))
    theirs = torch.nn.functional.cross_entropy(linear, torch.tensor(labels))
    theirs.backward()
    with tf.Graph().as_default():
        given = {name: tf.constant(a) for name, a in arrays.items()}
        loss = ops.apply_op(
            "LinearSparseSoftmaxCrossEntropy", **given, labels=tf.constant(labels), transpose_w=True
        ).loss
        mean = tf.reduce_mean(loss)
        with tf.Session() as session:
            mine, slopes = session.run([mean, tf.gradients(mean, list(given.values()))])
    np.testing.assert_allclose(mine, theirs.item(), rtol=1e-5)
    for slope, leaf in zip(slopes, leaves.values(), strict=True):
        np.testing.assert_allclose(slope, leaf.grad.numpy(), rtol=2e-4, atol=1e-7)
