"""KMeans: Lloyd's steps by NumPy, a draw of rows to begin with, and the move of mini-batches."""

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import InvalidArgumentError, UnimplementedError

KMeans = tf.contrib.factorization.KMeans
X = np.concatenate([np.random.default_rng(0).normal(c, 0.1, (20, 2)) for c in (0.0, 3.0)]).astype(np.float32)


def test_a_step_is_lloyds_and_training_finds_the_clusters():
    rows = tf.placeholder(tf.float32, [None, 2])
    begin = X[[0, 1]]
    graph = KMeans(rows, 2, begin).training_graph()
    (distances,), (nearest,), (scores,), started, init_op, train_op = graph
    feed = {rows: X}
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert not sess.run(started)
        sess.run(init_op, feed)
        want = ((X[:, None] - begin) ** 2).sum(2)
        got = sess.run([distances, nearest, scores, train_op], feed)
        np.testing.assert_allclose(got[0], want, atol=1e-5)
        assert got[1].tolist() == want.argmin(1).tolist() and got[1].dtype == np.int64
        np.testing.assert_allclose(got[2], want.min(1), atol=1e-5)
        centers = tf.global_variables()[1]
        moved = [X[want.argmin(1) == k].mean(0) for k in range(2)]
        np.testing.assert_allclose(sess.run(centers), moved, rtol=1e-4)
        for _ in range(5):
            sess.run(train_op, feed)
        sess.run(init_op, feed)  # begins once
        assert sess.run(started) and sorted(np.round(sess.run(centers)[:, 0]).tolist()) == [0.0, 3.0]


def test_it_begins_with_rows_of_its_input():
    graph = KMeans([X[:20], X[20:]], 3, use_mini_batch=True).training_graph()
    assert len(graph[0]) == len(graph[1]) == len(graph[2]) == 2
    centers = tf.global_variables()[1]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(graph[4])
        before = sess.run(centers)
        assert all((row == X).all(1).any() for row in before)
        ids = np.concatenate(sess.run(list(graph[1])))
        sess.run(graph[5])
        means = [X[ids == k].mean(0) if (ids == k).any() else before[k] for k in range(3)]
        np.testing.assert_allclose(sess.run(centers), means, rtol=1e-4, atol=1e-6)


def test_cosine_distance_is_of_directions():
    graph = KMeans(X + 1.0, 2, [[1.0, 1.0], [1.0, -1.0]], distance_metric="cosine").training_graph()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(graph[4])
        unit = (X + 1.0) / np.linalg.norm(X + 1.0, axis=1, keepdims=True)
        np.testing.assert_allclose(sess.run(graph[2][0]), 1 - unit @ np.full(2, 0.5**0.5), atol=1e-5)


def test_what_is_not_here_is_refused():
    with pytest.raises(InvalidArgumentError, match="no distance_metric 'l1'"):
        KMeans(X, 2, distance_metric="l1")
    with pytest.raises(UnimplementedError, match="kmc2"):
        KMeans(X, 2, "kmc2")
    with pytest.raises(UnimplementedError, match="mini_batch_steps_per_iteration"):
        KMeans(X, 2, mini_batch_steps_per_iteration=3)
