"""Losses of embeddings beside loops in NumPy."""

import graphdock as tf
import numpy as np
from graphdock_tf1.contrib import metric_learning

RNG = np.random.default_rng(1)
X, LABELS = RNG.normal(size=(9, 4)).astype(np.float32), np.array([0, 1, 2, 0, 1, 2, 0, 0, 1])


def run(value):
    with tf.Session() as sess:
        return sess.run(value)


def test_triplets_with_semi_hard_negatives():
    far = np.square(X[:, None] - X[None]).sum(-1)
    total, pairs = 0.0, 0
    for a in range(9):
        negatives = [far[a, n] for n in range(9) if LABELS[n] != LABELS[a]]
        for p in range(9):
            if p != a and LABELS[p] == LABELS[a]:
                outside = [d for d in negatives if d > far[a, p]]
                total += max(1.5 + far[a, p] - (min(outside) if outside else max(negatives)), 0)
                pairs += 1
    np.testing.assert_allclose(run(metric_learning.triplet_semihard_loss(LABELS, X, 1.5)), total / pairs, rtol=1e-5)


def test_pairs():
    other, alike = X[::-1], LABELS % 2
    apart = np.sqrt(np.square(X - other).sum(1))
    want = np.mean(alike * apart**2 + (1 - alike) * np.maximum(4 - apart, 0) ** 2)
    np.testing.assert_allclose(run(metric_learning.contrastive_loss(alike, X, other, 4.0)), want, rtol=1e-5)
    logits = X @ other.T
    logs = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    wanted = (LABELS[:, None] == LABELS).astype(float)
    wanted /= wanted.sum(1, keepdims=True)
    norms = np.square(X).sum(1).mean() + np.square(other).sum(1).mean()
    want = -(wanted * logs).sum(1).mean() + 0.25 * 0.01 * norms
    np.testing.assert_allclose(run(metric_learning.npairs_loss(LABELS, X, other, 0.01)), want, rtol=1e-5)
