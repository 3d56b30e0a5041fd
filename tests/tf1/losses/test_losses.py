"""tf.losses: values against NumPy, names and collections as TensorFlow 1 prints them, weights that fit and that do not."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import InvalidArgumentError, ShapeError

L, R = tf.losses, tf.losses.Reduction
RNG = np.random.default_rng(0)
P = RNG.uniform(0.1, 0.9, (4, 3)).astype(np.float32)
T = RNG.integers(0, 2, (4, 3)).astype(np.float32)
ROWS = np.array([[1.0], [0.0], [2.0], [0.5]], np.float32)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def value(tensor, feed=None):
    with tf.Session() as sess:
        return sess.run(tensor, feed)


def cross_entropy(labels, logits):
    shifted = logits - logits.max(-1, keepdims=True)
    return -(labels * (shifted - np.log(np.exp(shifted).sum(-1, keepdims=True)))).sum(-1)


def softplus(x):
    return np.log1p(np.exp(x))


#: Function -> losses of elements, and what the scalar is named.
ELEMENTS = {
    "mean_squared_error": (P - T) ** 2,
    "absolute_difference": abs(P - T),
    "huber_loss": (P - T) ** 2 / 2,
    "log_loss": -np.log(np.where(T == 1, P, 1 - P)),
    "hinge_loss": np.maximum(0, 1 - (2 * T - 1) * P),
    "sigmoid_cross_entropy": softplus(P) - P * T,
}


@pytest.mark.parametrize("name", ELEMENTS)
def test_values_weights_and_names(name):
    losses, elements = getattr(L, name), ELEMENTS[name]
    made = [losses(T, P), losses(T, P, ROWS), losses(T, P, 2.0, reduction=R.NONE), losses(T, P, 0.0)]
    expected = [elements.mean(), (elements * ROWS).sum() / 9, elements * 2, 0.0]
    for got, wanted in zip(value(made), expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
    scope = "sigmoid_cross_entropy_loss" if name.startswith("sigmoid") else name
    assert made[0].op.name == scope + "/value" and made[1].op.name == scope + "_1/value"
    assert tf.get_collection(tf.GraphKeys.LOSSES) == made


def test_reductions():
    elements, weights = (P - T) ** 2, ROWS * np.ones((1, 3))
    wanted = {
        R.SUM: (elements * weights).sum(),
        R.MEAN: (elements * weights).sum() / weights.sum(),
        R.SUM_OVER_BATCH_SIZE: (elements * weights).sum() / 12,
        R.SUM_OVER_NONZERO_WEIGHTS: (elements * weights).sum() / 9,
    }
    for reduction, expected in wanted.items():
        np.testing.assert_allclose(value(L.mean_squared_error(T, P, ROWS, reduction=reduction)), expected, rtol=1e-5)
    with pytest.raises(InvalidArgumentError, match="did you mean 'weighted_mean'"):
        L.mean_squared_error(T, P, reduction="weightd_mean")


def test_classes():
    onehot = np.eye(3, dtype=np.float32)[[0, 2, 1, 1]]
    smooth = onehot * 0.9 + 0.1 / 3
    classes = tf.constant([[0], [2], [1], [1]])
    made = [
        L.softmax_cross_entropy(onehot, P),
        L.softmax_cross_entropy(onehot, P, label_smoothing=0.1),
        L.sparse_softmax_cross_entropy(classes, P),
        L.sparse_softmax_cross_entropy([0, 2, 1, 1], P, ROWS),
        L.sigmoid_cross_entropy(T, P, label_smoothing=0.2),
    ]
    each = cross_entropy(onehot, P)
    smoothed = T * 0.8 + 0.1
    wanted = [each.mean(), cross_entropy(smooth, P).mean(), each.mean(), (each * ROWS[:, 0]).sum() / 3]
    wanted.append((softplus(P) - P * smoothed).mean())
    np.testing.assert_allclose(value(made), wanted, rtol=1e-5)
    assert made[2].op.name == "sparse_softmax_cross_entropy_loss/value"
    assert tf.gradients(made[0], tf.get_default_graph().get_tensor_by_name("softmax_cross_entropy_loss/xentropy:0"))


def test_distances_and_pairs():
    a, b = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (P, P[::-1]))
    made = L.cosine_distance(a, b, axis=1), L.cosine_distance(a, b, dim=1, weights=ROWS)
    each = 1 - (a * b).sum(1)
    np.testing.assert_allclose(value(made), [each.mean(), (each * ROWS[:, 0]).sum() / 3], rtol=1e-5)
    errors = P - T
    pairs = [((e[:, None] - e[None]) ** 2).sum() / 6 for e in errors]  # of 3 elements, 6 ordered pairs
    np.testing.assert_allclose(value(L.mean_pairwise_squared_error(T, P)), np.sum(pairs), rtol=1e-5)
    np.testing.assert_allclose(value(L.mean_pairwise_squared_error(T, P, ROWS)), (ROWS[:, 0] * pairs).sum(), rtol=1e-5)
    assert value(L.mean_pairwise_squared_error(T[:, :1], P[:, :1])) == 0


def test_huber_is_linear_beyond_delta():
    x = tf.constant([0.0, 1.0, 5.0])
    loss = L.huber_loss([0.0, 0.0, 0.0], x, delta=2.0, reduction=R.NONE)
    assert value([loss, tf.gradients(loss, x)[0]])[0].tolist() == [0.0, 0.5, 8.0]
    assert value(tf.gradients(loss, x)[0]).tolist() == [0.0, 1.0, 2.0]


def test_weights_of_the_step_are_checked_there():
    x, w = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [None, None])
    loss, free = (
        L.mean_squared_error(x * 2, x, w),
        L.absolute_difference(x * 2, x, tf.placeholder_with_default(2.0, None)),
    )
    with tf.Session() as sess:
        assert sess.run(loss, {x: P, w: [[0.0]]}) == 0
        np.testing.assert_allclose(sess.run(loss, {x: P, w: ROWS}), (P**2 * ROWS).sum() / 9, rtol=1e-5)
        np.testing.assert_allclose(sess.run(free, {x: P}), P.mean() * 2, rtol=1e-5)
        for wrong in (np.ones((4, 2)), np.ones((8, 3))):
            with pytest.raises(InvalidArgumentError):
                sess.run(loss, {x: P, w: wrong})
        with pytest.raises(InvalidArgumentError, match="can not be broadcast"):
            sess.run(loss, {x: P[:1], w: ROWS})


def test_labels_whose_rank_the_step_tells():
    labels, logits = tf.placeholder(tf.int32), tf.placeholder(tf.float32, [None, 3])
    loss = L.sparse_softmax_cross_entropy(labels, logits)
    a, b = (value(loss, {labels: v, logits: P}) for v in ([0, 1, 2, 0], [[0], [1], [2], [0]]))
    assert a == b and a > 0


def test_collections_and_totals():
    assert value(L.get_regularization_loss()) == 0
    with pytest.raises(InvalidArgumentError, match="no losses"):
        L.get_total_loss()
    with tf.variable_scope("net"):
        a = L.mean_squared_error(T, P, scope="mine")
        L.absolute_difference(T, P, loss_collection=None)
        b = L.hinge_loss(T, P, loss_collection="others")
    own = tf.constant(2.0, name="own")
    L.add_loss(own)
    L.add_loss(own, None)
    assert None not in tf.get_default_graph().get_all_collection_keys()
    tf.layers.dense(P, 2, kernel_regularizer=lambda w: tf.constant(3.0, name="reg"))
    assert a.op.name == "net/mine/value" and L.get_losses() == [a, own] and L.get_losses("net") == [a]
    assert L.get_losses(loss_collection="others") == [b]
    total, without = L.get_total_loss(), L.get_total_loss(False)
    assert total.op.name == "total_loss" and L.get_regularization_loss().op.name == "total_regularization_loss"
    mse = ((P - T) ** 2).mean()
    np.testing.assert_allclose(value([total, without, L.get_regularization_loss()]), [mse + 5, mse + 2, 3], rtol=1e-6)


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda: L.mean_squared_error(T, P, np.ones(4, np.float32)), ShapeError, "can not be broadcast"),
        (lambda: L.mean_squared_error(T, P, np.ones((4, 2), np.float32)), ShapeError, "their size in each dim"),
        (lambda: L.mean_squared_error(T[:3], P), ShapeError, "of one shape"),
        (lambda: L.mean_squared_error(None, P), InvalidArgumentError, "labels must not be None"),
        (lambda: L.hinge_loss(T, None), InvalidArgumentError, "logits must not be None"),
        (lambda: L.sparse_softmax_cross_entropy(None, P), InvalidArgumentError, "must not be None"),
        (lambda: L.softmax_cross_entropy(T, None), InvalidArgumentError, "must not be None"),
        (lambda: L.cosine_distance(T, P), InvalidArgumentError, "one axis"),
        (lambda: L.cosine_distance(T, P, 1, dim=1), InvalidArgumentError, "axis and dim"),
    ],
)
def test_what_they_refuse(wrong, error, words):
    with pytest.raises(error, match=words):
        wrong()
