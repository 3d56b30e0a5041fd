"""Losses of embeddings beside loops in NumPy."""

import graphdock as tf
import numpy as np
import pytest
from graphdock_tf1.contrib import metric_learning

RNG = np.random.default_rng(1)
#: Margin and local search -> losses of the seeds 1, 2 and 10 that the functions of contrib themselves found, in TensorFlow 2.21.
CLUSTERED = {
    ("nmi", True): [3.6467409, 4.4439826, 5.1503987],
    ("nmi", False): [3.6467409, 4.4439826, 5.0722222],
    ("ami", True): [3.8219848, 4.6859078, 5.2615308],
    ("ari", True): [3.8219848, 4.7091579, 5.2615309],
    ("ari", False): [3.8219848, 4.7091579, 5.1833544],
    ("vmeasure", True): [3.6467409, 4.4439826, 5.1503987],
}
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


def test_lifted_structures():
    apart = np.sqrt(np.square(X[:, None].astype(float) - X[None]).sum(-1))
    total, pairs = 0.0, 0
    for i in range(9):
        for j in range(i):
            if LABELS[i] == LABELS[j]:
                ends = np.concatenate([apart[end][LABELS[end] != LABELS] for end in (i, j)])
                total += max(np.log(np.exp(1.5 - ends).sum()) + apart[i, j], 0) ** 2
                pairs += 1
    loss = metric_learning.lifted_struct_loss(LABELS, X, 1.5)
    np.testing.assert_allclose(run(loss), total / (2 * pairs), rtol=1e-5)


def test_gradients_of_equal_embeddings_are_finite():
    x = tf.constant(np.repeat(X[:3], 2, 0))
    assert np.isfinite(run(tf.gradients(metric_learning.lifted_struct_loss(np.arange(6) // 3, x), x)[0])).all()


def test_pairs_of_several_labels():
    held = np.array([[1, 1, 0], [0, 1, 1], [1, 1, 1]], bool)
    labels = [tf.SparseTensor(np.argwhere(row), np.ones(row.sum(), bool), [3]) for row in held]
    anchors, positives = X[:3], X[3:6]
    loss = metric_learning.npairs_loss_multilabel(labels, anchors, positives, 0.01)
    common = (held.astype(int) @ held.T).astype(float)
    logits = anchors @ positives.T
    entropy = -(common / common.sum(1, keepdims=True) * (logits - np.log(np.exp(logits).sum(1, keepdims=True)))).sum(1)
    norms = np.square(anchors).sum(1).mean() + np.square(positives).sum(1).mean()
    np.testing.assert_allclose(run(loss), entropy.mean() + 0.25 * 0.01 * norms, rtol=1e-5)
    with pytest.raises(TypeError, match="list of SparseTensors"):
        metric_learning.npairs_loss_multilabel([held], anchors, positives)


def clustered(seed, **options):
    """The loss of some rows, their labels and its gradient."""
    random = np.random.RandomState(seed)
    rows, kinds = [6, 9, 12, 8][seed % 4], 2 + seed % 3
    x = random.randn(rows, 4).astype(np.float32)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    labels = (np.arange(rows) % kinds).astype(np.int32)
    random.shuffle(labels)
    with tf.Graph().as_default(), tf.Session() as sess:
        given = tf.constant(x)
        loss = tf.contrib.losses.metric_learning.cluster_loss(labels, given, 0.7, **options)
        return x, labels, *sess.run([loss, tf.gradients(loss, given)[0]])


@pytest.mark.parametrize(("kind", "better"), CLUSTERED)
@pytest.mark.sampled(2)
def test_clusters_cost_what_contrib_found(kind, better):
    pytest.importorskip("sklearn")
    found = [clustered(seed, margin_type=kind, enable_pam_finetuning=better)[2] for seed in (1, 2, 10)]
    np.testing.assert_allclose(found, CLUSTERED[kind, better], rtol=1e-5, atol=1e-6)


def test_a_step_along_the_gradient_lowers_the_loss_of_clusters():
    x, labels, loss, gradient = clustered(1, margin_type="const")
    with tf.Graph().as_default():
        moved = tf.contrib.losses.metric_learning.cluster_loss(labels, x - 1e-3 * gradient, 0.7, margin_type="const")
        assert run(moved) < loss


def test_a_margin_that_is_not_known():
    with pytest.raises(ValueError, match="Unrecognized margin_type: nim"):
        tf.contrib.losses.metric_learning.cluster_loss(LABELS, X, 1.0, margin_type="nim")
