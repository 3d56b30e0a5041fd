"""tf.nn through a session: values against float64 formulas, gradients against differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphdock as tf
import numpy as np
import pytest


def run(build: Callable[..., Any], *arrays: np.ndarray) -> Any:
    with tf.Graph().as_default():
        feeds = [tf.placeholder(a.dtype, a.shape) for a in arrays]
        fetch = build(*feeds)
        with tf.Session() as session:
            return session.run(fetch, dict(zip(feeds, arrays, strict=True)))


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


RNG = np.random.default_rng(11)
X = RNG.normal(size=(3, 4, 5))


@pytest.mark.parametrize("axis", [None, -1, 0, 1, 2, -2])
def test_softmax_and_log_softmax_along_any_axis(axis: int | None) -> None:
    at = -1 if axis is None else axis
    np.testing.assert_allclose(run(lambda x: tf.nn.softmax(x, axis=axis), X), softmax(X, at), rtol=1e-12)
    np.testing.assert_allclose(run(lambda x: tf.nn.log_softmax(x, axis), X), np.log(softmax(X, at)), rtol=1e-12)


def test_softmax_names_an_axis_that_is_not_there() -> None:
    with tf.Graph().as_default(), pytest.raises(tf.errors.InvalidArgumentError, match="no such axis"):
        tf.nn.softmax(tf.zeros([2, 3]), axis=2)
    with tf.Graph().as_default(), pytest.raises(tf.errors.InvalidArgumentError, match="two names"):
        tf.nn.softmax(tf.zeros([2, 3]), axis=1, dim=1)


@pytest.mark.parametrize("axis", [-1, 1, 0])
def test_cross_entropy_along_any_axis(axis: int) -> None:
    labels = softmax(RNG.normal(size=X.shape), axis)
    got = run(lambda x, y: tf.nn.softmax_cross_entropy_with_logits(logits=x, labels=y, axis=axis), X, labels)
    np.testing.assert_allclose(got, -(labels * np.log(softmax(X, axis))).sum(axis), rtol=1e-12)


def test_cross_entropies_take_labels_and_logits_by_name() -> None:
    for function in (
        tf.nn.softmax_cross_entropy_with_logits,
        tf.nn.sparse_softmax_cross_entropy_with_logits,
        tf.nn.sigmoid_cross_entropy_with_logits,
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match="by name"):
            function(tf.zeros([2, 2]), tf.zeros([2, 2]))


def test_sparse_and_dense_cross_entropy_agree() -> None:
    labels = RNG.integers(0, 5, (3, 4))
    one_hot = np.eye(5)[labels]
    sparse = run(lambda x, y: tf.nn.sparse_softmax_cross_entropy_with_logits(logits=x, labels=y), X, labels)
    dense = run(lambda x, y: tf.nn.softmax_cross_entropy_with_logits(logits=x, labels=y), X, one_hot)
    np.testing.assert_allclose(sparse, dense, rtol=1e-12)


def test_a_wrong_label_ends_the_step_with_the_users_line() -> None:
    with tf.Graph().as_default():
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=tf.zeros([2, 3]), labels=[0, 3], name="xent")
        with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(loss)
    assert caught.value.op.name == "xent" and "nn/test_functions.py" in str(caught.value)


def derivative(build: Callable[..., Any], arrays: list[np.ndarray], index: int, step: float = 1e-6) -> np.ndarray:
    """Central differences of the sum of what ``build`` makes."""
    out = np.zeros_like(arrays[index])
    with tf.Graph().as_default():
        feeds = [tf.placeholder(a.dtype, a.shape) for a in arrays]
        total = tf.reduce_sum(build(*feeds))
        with tf.Session() as session:
            for at in np.ndindex(out.shape):
                ends = []
                for sign in (1, -1):
                    moved = [a.copy() for a in arrays]
                    moved[index][at] += sign * step
                    ends.append(session.run(total, dict(zip(feeds, moved, strict=True))))
                out[at] = (ends[0] - ends[1]) / (2 * step)
    return out


LABELS = softmax(RNG.normal(size=(2, 3)))
LOGITS = RNG.normal(size=(2, 3)) * 2
DIFFERENTIABLE = {
    "cross_entropy": (lambda x, y: tf.nn.softmax_cross_entropy_with_logits_v2(logits=x, labels=y), [LOGITS, LABELS]),
    "softmax": (lambda x: tf.nn.softmax(x) * np.arange(6.0).reshape(2, 3), [LOGITS]),
    "log_softmax": (lambda x: tf.nn.log_softmax(x) * np.arange(6.0).reshape(2, 3), [LOGITS]),
    "relu": (tf.nn.relu, [LOGITS]),
    "relu6": (tf.nn.relu6, [LOGITS * 4]),
    "elu": (tf.nn.elu, [LOGITS]),
    "selu": (tf.nn.selu, [LOGITS]),
    "leaky_relu": (lambda x: tf.nn.leaky_relu(x, alpha=0.3), [LOGITS]),
    "softplus": (tf.nn.softplus, [LOGITS]),
    "softsign": (tf.nn.softsign, [LOGITS]),
    "bias_add": (lambda x, b: tf.nn.bias_add(x, b) ** 2, [LOGITS, np.arange(3.0)]),
    "bias_add_nchw": (lambda x, b: tf.nn.bias_add(x, b, "NCHW") ** 2, [X, np.arange(4.0)]),
    "l2_loss": (tf.nn.l2_loss, [LOGITS]),
    "sigmoid_cross_entropy": (
        lambda x, y: tf.nn.sigmoid_cross_entropy_with_logits(logits=x, labels=y),
        [LOGITS, LABELS],
    ),
    "l2_normalize": (lambda x: tf.nn.l2_normalize(x, 1) * [1.0, 2.0, 3.0], [LOGITS]),
    "moments": (lambda x: tf.nn.moments(x, [0])[1] * [1.0, 2.0, 3.0], [LOGITS]),
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_agree_with_differences(name: str) -> None:
    build, arrays = DIFFERENTIABLE[name]
    grads = run(lambda *feeds: tf.gradients(build(*feeds), list(feeds)), *arrays)
    for index, grad in enumerate(grads):
        if name == "cross_entropy" and index == 0:
            continue  # labels move in derivative(1) only: backprop supposes that they sum to one, which they do here
        np.testing.assert_allclose(grad, derivative(build, arrays, index), rtol=1e-5, atol=1e-7)
    if name == "cross_entropy":
        np.testing.assert_allclose(grads[0], softmax(LOGITS) - LABELS, rtol=1e-12)


def test_second_derivatives_of_cross_entropy() -> None:
    def hessian_product(x: Any, y: Any, v: Any) -> Any:
        (first,) = tf.gradients(tf.nn.softmax_cross_entropy_with_logits(logits=x, labels=y), [x])
        return tf.gradients(tf.reduce_sum(first * v), [x])[0]

    v = RNG.normal(size=LOGITS.shape)
    p = softmax(LOGITS)
    want = p * (v - (p * v).sum(-1, keepdims=True))
    np.testing.assert_allclose(run(hessian_product, LOGITS, LABELS, v), want, rtol=1e-10)


def test_sigmoid_cross_entropy_at_zero_and_far_away() -> None:
    x, z = np.array([0.0, 40.0, -800.0, 800.0]), np.array([0.25, 1.0, 0.0, 0.0])
    loss, grad = run(
        lambda a, b: (
            tf.nn.sigmoid_cross_entropy_with_logits(logits=a, labels=b),
            tf.gradients(tf.nn.sigmoid_cross_entropy_with_logits(logits=a, labels=b), [a])[0],
        ),
        x,
        z,
    )
    np.testing.assert_allclose(loss, [np.log(2.0), np.exp(-40.0), 0.0, 800.0], rtol=1e-12)
    np.testing.assert_allclose(grad[0], 0.5 - 0.25)


def test_unasked_gradients_of_labels_cost_nothing() -> None:
    with tf.Graph().as_default():
        x, y = tf.placeholder(tf.float32, [4, 3]), tf.placeholder(tf.float32, [4, 3])
        w = tf.Variable(tf.ones([3, 3]))
        loss = tf.nn.softmax_cross_entropy_with_logits(logits=tf.matmul(x, w), labels=y)
        (grad,) = tf.gradients(loss, [w])
        ancestors, stack = set(), [grad.op]
        while stack:
            op = stack.pop()
            if op not in ancestors:
                ancestors.add(op)
                stack += [t.op for t in op.inputs]
        assert "LogSoftmax" not in {op.type for op in ancestors}


def test_dropout_keeps_the_expected_sum_and_the_seed() -> None:
    x = np.ones((100, 100), np.float32)
    first = run(lambda a: tf.nn.dropout(a, 0.75, seed=5), x)
    assert set(np.unique(first)) == {np.float32(0.0), np.float32(1 / 0.75)}
    assert abs(first.mean() - 1.0) < 0.03
    np.testing.assert_array_equal(first, run(lambda a: tf.nn.dropout(a, rate=0.25, seed=5), x))
    rows = run(lambda a: tf.nn.dropout(a, 0.5, noise_shape=[100, 1], seed=1), x)
    assert (rows == rows[:, :1]).all() and len(np.unique(rows)) == 2
    np.testing.assert_array_equal(run(lambda a: tf.nn.dropout(a, 1.0), x), x)


def test_dropout_drops_the_same_elements_in_its_gradient() -> None:
    def build(a: Any) -> Any:
        kept = tf.nn.dropout(a, 0.5, seed=3)
        return kept, tf.gradients(kept, [a])[0]

    kept, grad = run(build, np.ones((50,), np.float32))
    np.testing.assert_array_equal(kept, grad)


def test_dropout_rejects_what_is_no_probability() -> None:
    for arguments in ({"keep_prob": 0.0}, {"rate": 1.0}, {}, {"keep_prob": 0.5, "rate": 0.5}):
        with tf.Graph().as_default(), pytest.raises(tf.errors.InvalidArgumentError):
            tf.nn.dropout(tf.zeros([2]), **arguments)


def test_dropout_takes_a_scalar() -> None:
    """As TensorFlow, which refuses any other shape, and a wider dtype."""
    with tf.Graph().as_default():
        x = tf.zeros([2])
        for keep in (np.float64(0.5), np.array(0.5), tf.placeholder(tf.float32), tf.Variable(0.5)):
            assert tf.nn.dropout(x, keep).shape.as_list() == [2]
        for keep in ([0.0, 1.0], tf.placeholder(tf.float64), tf.placeholder(tf.float32, [2]), np.float32(1.5)):
            with pytest.raises(ValueError):
                tf.nn.dropout(x, keep)


@pytest.mark.parametrize("keep", [True, False])
def test_moments(keep: bool) -> None:
    mean, variance = run(lambda x: tf.nn.moments(x, [0, 2], keepdims=keep), X)
    np.testing.assert_allclose(mean, X.mean((0, 2), keepdims=keep), rtol=1e-12)
    np.testing.assert_allclose(variance, X.var((0, 2), keepdims=keep), rtol=1e-12)


def test_l2_normalize() -> None:
    got = run(lambda x: tf.nn.l2_normalize(x, axis=[0, 2]), X)
    np.testing.assert_allclose(got, X / np.sqrt((X**2).sum((0, 2), keepdims=True)), rtol=1e-12)
    np.testing.assert_array_equal(run(tf.nn.l2_normalize, np.zeros(3)), np.zeros(3))


TABLE = RNG.normal(size=(7, 3))
IDS = np.array([[0, 6, 3], [3, 5, 1]])


def shards_of(strategy: str, n: int) -> list[np.ndarray]:
    return [TABLE[k::n] for k in range(n)] if strategy == "mod" else np.array_split(TABLE, n)


@pytest.mark.parametrize("strategy", ["mod", "div"])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_embedding_lookup_in_shards_and_its_gradient(strategy: str, n: int) -> None:
    shards = shards_of(strategy, n)
    weights = RNG.normal(size=(2, 3, 3))

    def build(*feeds: Any) -> Any:
        rows = tf.nn.embedding_lookup(list(feeds), tf.constant(IDS), partition_strategy=strategy)
        return rows, [tf.convert_to_tensor(g) for g in tf.gradients(tf.reduce_sum(rows * weights), list(feeds))]

    rows, grads = run(build, *shards)
    np.testing.assert_array_equal(rows, TABLE[IDS])
    want = np.zeros_like(TABLE)
    np.add.at(want, IDS, weights)
    for k, grad in enumerate(grads):
        np.testing.assert_allclose(grad, want[k::n] if strategy == "mod" else np.array_split(want, n)[k], atol=1e-12)


@pytest.mark.parametrize("strategy", ["mod", "div"])
@pytest.mark.parametrize("wrong", [-1, 8])
def test_an_id_without_a_row_is_an_error(strategy: str, wrong: int) -> None:
    shards = shards_of(strategy, 2)
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(lambda *p: tf.nn.embedding_lookup(list(p), tf.constant([0, wrong]), strategy), *shards)


@pytest.mark.parametrize("strategy", ["mod", "div"])
def test_a_partitioned_table_is_its_shards(strategy: str) -> None:
    """As in TensorFlow: the parts follow the strategy, and their gradients are sparse."""
    table = tf.get_variable(f"table_{strategy}", [8, 3], tf.float64, partitioner=tf.fixed_size_partitioner(3))
    rows = tf.nn.embedding_lookup(table, IDS, partition_strategy=strategy)
    of_parts = tf.nn.embedding_lookup(list(table), IDS, partition_strategy=strategy)
    assert all(isinstance(gradient, tf.IndexedSlices) for gradient in tf.gradients(rows, list(table)))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(*sess.run([rows, of_parts]))


def test_embedding_lookup_clips_rows() -> None:
    got = run(lambda t: tf.nn.embedding_lookup(t, tf.constant(IDS), max_norm=1.0), TABLE)
    norms = np.linalg.norm(TABLE[IDS], axis=-1, keepdims=True)
    np.testing.assert_allclose(got, TABLE[IDS] / np.maximum(norms, 1.0), rtol=1e-12)


@pytest.mark.parametrize("strategy", ["div", "mod"])
def test_embeddings_in_shards_of_unknown_rank(strategy: str) -> None:
    """Which shard a row is in was compared column by column: the wrong elements, and no error."""
    low = np.arange(12.0).reshape(2, 3, 2)
    high = low + 100
    table = np.concatenate([low, high]) if strategy == "div" else np.stack([low, high], 1).reshape(4, 3, 2)
    shards = [tf.placeholder(tf.float64), tf.placeholder(tf.float64)]
    rows = tf.nn.embedding_lookup(shards, [[0, 3]], partition_strategy=strategy)
    with tf.Session() as sess:
        np.testing.assert_array_equal(sess.run(rows, dict(zip(shards, (low, high), strict=True))), table[[[0, 3]]])
