"""Attention as people write it, and its gradients, beside PyTorch's: on a cpu, and by the sources of a GPU."""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock.plugin.host import Host

torch: Any = pytest.importorskip("torch")
pytestmark = [pytest.mark.oracle, pytest.mark.slow]

SHAPE = (2, 3, 40, 16)


@pytest.fixture(scope="module")
def host() -> Host:
    """One with an emulated GPU, which takes the scores of this in chunks of queries."""
    testing = pytest.importorskip("graphdock_cuda.testing")
    install = pytest.importorskip("graphdock_cuda.testing.install").install
    if testing.find_compiler() is None:
        pytest.skip("needs g++")
    made = Host()
    install(made, testing.toolkit(seed=1))
    made.open_device("/device:cuda:0").workspace = 4096  # type: ignore[attr-defined]
    return made


@pytest.mark.parametrize("backends", [("cpu",), ("cuda", "cpu")], ids=["cpu", "cuda"])
@pytest.mark.parametrize("mask", ["none", "causal", "padding"])
def test_answers_and_gradients(host: Host, backends: tuple[str, ...], mask: str) -> None:
    rng = np.random.default_rng(7)
    q, k, v, arriving = (rng.standard_normal(SHAPE).astype(np.float32) for _ in range(4))
    length = SHAPE[2]
    seen = np.arange(length) < np.array([[40], [23]])
    added = np.where(seen, 0, -np.inf)[:, None, None, :].astype(np.float32)

    leaves = [torch.tensor(x, requires_grad=True) for x in (q, k, v)]
    given = torch.tensor(added) if mask == "padding" else None
    theirs = torch.nn.functional.scaled_dot_product_attention(*leaves, attn_mask=given, is_causal=mask == "causal")
    theirs.backward(torch.tensor(arriving))

    with tf.Graph(host=host).as_default():
        feeds = [tf.placeholder(tf.float32, SHAPE) for _ in range(3)]
        scores = tf.matmul(feeds[0], feeds[1], transpose_b=True) * SHAPE[-1] ** -0.5
        if mask == "causal":
            scores = scores + np.triu(np.full((length, length), -1e9, np.float32), 1)
        elif mask == "padding":
            scores = scores + added
        mine = tf.matmul(tf.nn.softmax(scores), feeds[2])
        fetches = [mine, *tf.gradients(mine, feeds, arriving)]
        with tf.Session(config=tf.SessionConfig(backends=backends), host=host) as session:
            feed = dict(zip(feeds, (q, k, v), strict=True))
            found = session.run(fetches, feed)
            taken = session.explain(fetches, feed).kernels()
    assert backends[0] == "cpu" or taken["cuda.attention"] == taken["cuda.attention_grad"] == 1
    for ours, other in zip(found, (theirs.detach(), *(x.grad for x in leaves)), strict=True):
        np.testing.assert_allclose(ours, other.numpy(), rtol=2e-5, atol=2e-5)
