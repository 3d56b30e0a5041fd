"""Losses of logits: arguments, dtypes, axes, and which inputs get gradients. Values are NumPy's or TensorFlow's."""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np
import pytest
from scipy.special import log_softmax


def run(*fetches: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        values = session.run(list(fetches), feed)
    return values[0] if len(fetches) == 1 else values


X = np.random.RandomState(1).randn(2, 3, 4)
P = np.random.RandomState(2).rand(2, 3, 4)


@pytest.mark.parametrize("axis", [-1, 0, 1, 2, -3])
def test_any_axis_of_rank_3(axis: int) -> None:
    want = -(P * log_softmax(X, axis)).sum(axis)
    first = tf.nn.softmax_cross_entropy_with_logits(labels=P, logits=X, dim=axis)
    second = tf.nn.softmax_cross_entropy_with_logits_v2(P, X, axis)
    for loss, got in zip((first, second), run(first, second), strict=True):
        assert loss.shape.as_list() == list(want.shape)
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_labels_of_other_dtypes() -> None:
    logits = tf.constant([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])
    want = [2.4076059, 2.4076059]
    for labels in (
        [[1, 0, 0], [0, 0, 1]],
        tf.constant([[1, 0, 0], [0, 0, 1]]),
        np.array([[1, 0, 0], [0, 0, 1]], np.float64),
    ):
        loss = tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        np.testing.assert_allclose(run(loss), want, rtol=1e-6)


def test_labels_of_one_row_are_those_of_all() -> None:
    logits = np.random.RandomState(3).randn(4, 3)
    labels = np.array([[0.2, 0.3, 0.5]])
    got = run(tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits))
    np.testing.assert_allclose(got, -(labels * log_softmax(logits, -1)).sum(-1))


def test_only_the_second_version_sends_gradients_into_labels() -> None:
    labels, logits = tf.constant(P[0]), tf.constant(X[0])
    loss = tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    by_labels, by_logits = tf.gradients(loss, [labels, logits])
    assert by_labels is None and by_logits is not None
    loss = tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits)
    np.testing.assert_allclose(run(tf.gradients(loss, labels)[0]), -log_softmax(X[0], -1), rtol=1e-12)


def test_sparse_labels_of_rank_3_logits() -> None:
    labels = np.array([[0, 1, 3], [2, 0, 1]])
    got = run(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=X))
    want = -np.take_along_axis(log_softmax(X, -1), labels[..., None], -1)[..., 0]
    np.testing.assert_allclose(got, want, rtol=1e-12)


def test_arguments() -> None:
    x = tf.constant(X[0])
    for loss in (
        tf.nn.softmax_cross_entropy_with_logits,
        tf.nn.sigmoid_cross_entropy_with_logits,
        tf.nn.sparse_softmax_cross_entropy_with_logits,
    ):
        with pytest.raises(ValueError, match="by name"):
            loss(x, x)
        with pytest.raises(ValueError, match="needs labels and logits"):
            loss(labels=x)
    with pytest.raises(ValueError, match="one argument under two names"):
        tf.nn.softmax_cross_entropy_with_logits_v2(labels=x, logits=x, dim=0, axis=1)
    with pytest.raises(ValueError, match="one argument under two names"):
        tf.nn.weighted_cross_entropy_with_logits(labels=x, targets=x, logits=x, pos_weight=1.0)
    for loss in (
        lambda a, b: tf.nn.sigmoid_cross_entropy_with_logits(labels=a, logits=b),
        lambda a, b: tf.nn.weighted_cross_entropy_with_logits(labels=a, logits=b, pos_weight=1.0),
        tf.nn.log_poisson_loss,
    ):
        with pytest.raises(ValueError, match="must have the same shape"):
            loss(tf.zeros([2, 3]), tf.zeros([2]))


def test_weighted_cross_entropy() -> None:
    x, z = 40 * X[0], P[0]
    sigmoid = lambda v: np.where(v > 0, 0, v) - np.log1p(np.exp(-np.abs(v)))  # noqa: E731 - the logarithm of it
    want = -(2.5 * z * sigmoid(x) + (1 - z) * sigmoid(-x))
    loss = tf.nn.weighted_cross_entropy_with_logits(labels=z, logits=x, pos_weight=2.5)
    np.testing.assert_allclose(run(loss), want, rtol=1e-9, atol=1e-12)
    loss = tf.nn.weighted_cross_entropy_with_logits(targets=[1.0, 0.0], logits=[1.0, 2.0], pos_weight=[1.0, 3.0])
    np.testing.assert_allclose(run(loss), [0.31326169, 2.12692809], rtol=1e-6)


def test_log_poisson_loss() -> None:
    z, c = tf.constant([0.0, 1.0, 0.5, 3.0]), tf.constant([1.0, 2.0, 3.0, 4.0])
    plain, full = run(tf.nn.log_poisson_loss(z, c), tf.nn.log_poisson_loss(z, c, True))
    np.testing.assert_allclose(plain, np.exp([1, 2, 3, 4.0]) - np.array([0, 2, 1.5, 12]), rtol=1e-6)
    np.testing.assert_allclose(full, [2.7182817, 5.389056, 18.585537, 44.36223], rtol=1e-6)
    by_target = run(tf.gradients(tf.nn.log_poisson_loss(z, c, True), z)[0])
    assert np.isfinite(by_target).all()


def test_zero_fraction() -> None:
    values = [tf.nn.zero_fraction(v) for v in ([0, 1, 2, 0], [[0.0, 1.0], [2.0, 3.0]], [True, False], tf.zeros([0]))]
    got = run(*values)
    assert got[:3] == [0.5, 0.25, 0.5] and np.isnan(got[3]) and got[0].dtype == np.float32


@pytest.mark.parametrize(
    ("data_format", "rank", "channels"),
    [
        ("NWC", 3, -1),
        ("NCW", 3, 1),
        ("NHWC", 4, -1),
        ("NCHW", 4, 1),
        ("NDHWC", 5, -1),
        ("NCDHW", 5, 1),
        ("N...C", 2, -1),
    ],
)
def test_bias_add_formats(data_format: str, rank: int, channels: int) -> None:
    value = np.arange(np.prod(range(2, rank + 2)), dtype=np.float64).reshape(range(2, rank + 2))
    bias = np.arange(value.shape[channels]) * 0.5
    want = value + (bias if channels == -1 else bias.reshape([-1] + [1] * (rank - 2)))
    x, b = tf.constant(value), tf.constant(bias)
    y = tf.nn.bias_add(x, b, data_format)
    got, by_bias = run(y, tf.gradients(y, b)[0])
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(by_bias, np.full(bias.shape, value.size / bias.size))
    with pytest.raises(ValueError, match="data_format"):
        tf.nn.bias_add(x, b, "HWC")


def test_embeddings_of_arrays_and_of_shards_of_unknown_size() -> None:
    table = np.arange(6.0).reshape(3, 2)
    got = run(tf.nn.embedding_lookup(table, [0, 2], max_norm=1.0))
    np.testing.assert_allclose(got, [[0.0, 1.0], [0.62469505, 0.78086881]], rtol=1e-7)
    first, last = tf.placeholder(tf.float64, [None, 2]), tf.placeholder(tf.float64, [None, 2])
    shards = [first, tf.constant(10 + table[:2]), last]
    rows = tf.nn.embedding_lookup(shards, [0, 2, 3, 4, 5, 6], partition_strategy="div")
    feed = {first: table, last: 20 + table[:2]}
    want = np.concatenate([table, 10 + table[:2], 20 + table[:2]])[[0, 2, 3, 4, 5, 6]]
    np.testing.assert_array_equal(run(rows, feed=feed), want)
    slopes = tf.gradients(rows, shards)
    np.testing.assert_array_equal(run(tf.convert_to_tensor(slopes[1]), feed=feed), np.ones([2, 2]))
    with pytest.raises(ValueError, match="needs params"):
        tf.nn.embedding_lookup(None, [0])


def test_text_and_numbers_make_no_constant() -> None:
    for value in (["a", 1], [1, "a"], ["a", 1.5], [b"a", None], [["a", "b"], ["c", 2]]):
        with pytest.raises(ValueError):
            tf.constant(value)
    assert run(tf.constant([b"a", "é"])).tolist() == [b"a", "é".encode()]


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32, np.int64, np.float64])
def test_classes_of_any_whole_numbers(dtype: Any) -> None:
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=np.array([1, 2], dtype), logits=X[0, :2])
    np.testing.assert_allclose(run(loss), -log_softmax(X[0, :2], -1)[[0, 1], [1, 2]], rtol=1e-12)


def test_shapes_that_differ_are_told_of_the_arguments_that_the_user_gave() -> None:
    labels, logits = tf.placeholder(tf.int32, [1, None, 7]), tf.placeholder(tf.float32, [None, 3])
    told = r"labels have shape \[1,\?,7\] and logits \[\?,3\]\n  expected labels of shape "
    with pytest.raises(ValueError, match=r"sparse_softmax.*: " + told + r"\[\?\], got \[1,\?,7\]"):
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    for loss in (tf.nn.softmax_cross_entropy_with_logits, tf.nn.softmax_cross_entropy_with_logits_v2):
        with pytest.raises(ValueError, match=told + r"\[\?,3\], got \[1,\?,7\]"):
            loss(labels=labels, logits=logits)
    with pytest.raises(ValueError, match=r"labels have shape \[2,3\] and logits \[1,3\]"):
        tf.nn.softmax_cross_entropy_with_logits_v2(labels=np.ones((2, 3)), logits=np.ones((1, 3)))
    with pytest.raises(ValueError, match="logits must have rank 1 or more"):
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=0, logits=1.0)
