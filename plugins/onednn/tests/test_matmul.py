"""Products of matrices beside the cpu's."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest


def fed(rng, shape, dtype=tf.float32):
    return tf.placeholder(dtype, shape), rng.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("tb", [False, True])
@pytest.mark.parametrize("sizes", [(1, 1, 1), (1, 7, 5), (33, 1, 2), (64, 65, 66), (300, 17, 1), (16, 512, 3)])
def test_a_product_is_the_cpus_in_every_order(both, rng, ta, tb, sizes):
    m, k, n = sizes
    (a, x), (b, y) = fed(rng, (k, m) if ta else (m, k)), fed(rng, (n, k) if tb else (k, n))
    assert both([tf.matmul(a, b, ta, tb)], {a: x, b: y}) == {"onednn.mat_mul": 1}


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ([4, 3, 5], [4, 5, 2]),
        ([2, 1, 3, 5], [4, 5, 2]),
        ([3, 5], [2, 2, 5, 4]),
        ([1, 3, 5], [6, 5, 1]),
        ([2, 3, 4, 5], [5, 7]),
    ],
)
def test_batches_are_broadcast(both, rng, left, right):
    (a, x), (b, y) = fed(rng, left), fed(rng, right)
    assert both([tf.matmul(a, b)], {a: x, b: y}) == {"onednn.mat_mul": 1}


def test_views_are_read_as_they_lie(both, rng):
    a, x = fed(rng, [2, 8, 3, 16])
    heads = tf.transpose(a, [0, 2, 1, 3])
    kernels = both([tf.matmul(heads, heads, transpose_b=True)], {a: x})
    assert kernels["onednn.mat_mul"] == 1
    b, y = fed(rng, [12, 9])
    strided, backwards = tf.strided_slice(b, [0, 0], [12, 9], [2, 2]), b[::-1]
    both([tf.matmul(strided, b[:5]), tf.matmul(backwards, b, transpose_a=True)], {b: y})


def test_arrays_that_begin_anywhere_are_taken(rng):
    a, b = tf.placeholder(tf.float32, [5, 6]), tf.placeholder(tf.float32, [6, 7])
    room = np.zeros(1000, np.uint8)
    x = np.ndarray((5, 6), np.float32, room, 1)
    y = np.ndarray((6, 7), np.float32, room, 203)
    x[...], y[...] = rng.normal(size=x.shape), rng.normal(size=y.shape)
    with tf.Session(config=tf.SessionConfig(backends=("onednn", "cpu"))) as sess:
        np.testing.assert_allclose(sess.run(tf.matmul(a, b), {a: x, b: y}), x @ y, rtol=1e-5, atol=1e-6)


def test_a_matrix_may_be_both_factors(both, rng):
    a, x = fed(rng, [40, 40])
    assert both([tf.matmul(a, a), tf.matmul(a, a, transpose_b=True)], {a: x}) == {"onednn.mat_mul": 2}


def test_nan_and_infinities_go_through(rng):
    a, b = tf.placeholder(tf.float32, [20, 20]), tf.placeholder(tf.float32, [20, 20])
    x, y = rng.normal(size=(2, 20, 20)).astype(np.float32)
    x[3, 4], x[5, 6] = np.nan, np.inf
    with tf.Session(config=tf.SessionConfig(backends=("onednn", "cpu"))) as sess:
        got = sess.run(tf.matmul(a, b), {a: x, b: y})
    assert np.isnan(got[3]).all() and np.isinf(got[5]).all() and np.isfinite(np.delete(got, [3, 5], 0)).all()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_narrow_floats_are_summed_up_in_float32(dtype, rng):
    a, b = (tf.placeholder(dtype, s) for s in ([8, 900], [900, 5]))
    x, y = np.abs(rng.normal(size=(8, 900))), np.abs(rng.normal(size=(900, 5)))
    with tf.Session(config=tf.SessionConfig(backends=("onednn", "cpu"))) as sess:
        product = tf.cast(tf.matmul(a, b), tf.float32)
        near = np.float32(
            np.asarray(sess.run(tf.cast(a, tf.float32), {a: x})) @ np.asarray(sess.run(tf.cast(b, tf.float32), {b: y}))
        )
        np.testing.assert_allclose(sess.run(product, {a: x, b: y}), near, rtol=1e-2)


@pytest.mark.parametrize("name", ["none", "relu", "tanh", "sigmoid"])
@pytest.mark.parametrize("kind", ["add", "bias_add"])
def test_a_dense_layer_is_one_kernel_and_its_gradients_are_the_parts(both, rng, name, kind):
    (a, x), (w, u), (b, v) = fed(rng, [6, 9]), fed(rng, [9, 4]), fed(rng, [4])
    product = tf.matmul(a, w)
    biased = product + b if kind == "add" else tf.nn.bias_add(product, b)
    y = {"none": tf.identity, "relu": tf.nn.relu, "tanh": tf.tanh, "sigmoid": tf.sigmoid}[name](biased)
    feed = {a: x, w: u, b: v}
    assert both([y], feed) == {"onednn.fused_mat_mul": 1}
    kernels = both([y, *tf.gradients(y, [a, w, b])], feed)
    assert kernels["onednn.fused_mat_mul"] == 1 and kernels["onednn.mat_mul"] == 2


def test_a_relu_keeps_nan(rng):
    a, w, b = (tf.placeholder(tf.float32, s) for s in ([2, 3], [3, 16], [16]))
    x = np.array([[np.nan, 0, 0], [-1, -2, -3]], np.float32)
    with tf.Session(config=tf.SessionConfig(backends=("onednn", "cpu"))) as sess:
        y = tf.nn.relu(tf.matmul(a, w) + b)
        feed = {a: x, w: np.ones((3, 16)), b: np.zeros(16)}
        assert sess.explain(y, feed).kernels() == {"onednn.fused_mat_mul": 1}
        got = sess.run(y, feed)
    assert np.isnan(got[0]).all() and (got[1] == 0).all()


def test_weights_that_never_change_are_brought_into_a_layout_once(both, rng):
    (a, x), (c, y) = fed(rng, [6, 64]), fed(rng, [3, 6, 64])
    w, v = (tf.constant(rng.normal(size=size).astype(np.float32)) for size in ((64, 32), (32, 64)))
    assert both([tf.matmul(a, w), tf.matmul(a, v, transpose_b=True)], {a: x}) == {"onednn.mat_mul": 2}
    assert both([tf.nn.relu(tf.matmul(a, w) + v[:, 0])], {a: x})["onednn.fused_mat_mul"] == 1
    assert both([tf.matmul(c, w)], {c: y}) == {"onednn.mat_mul": 1}


def test_shapes_that_are_not_known_stay_the_cpus_and_explain_says_so(rng):
    a = tf.placeholder(tf.float32, [None, 4])
    y = tf.matmul(a, tf.constant(np.ones((4, 3), np.float32)))
    with tf.Session(config=tf.SessionConfig(backends=("onednn", "cpu"), shape_policy="generic")) as sess:
        told = sess.explain(y)
        assert told.kernels() == {"cpu.mat_mul": 1} and "its shapes are not known" in told.table(lost=True)
    with tf.Session(config=tf.SessionConfig(backends=("onednn", "cpu"))) as sess:
        told = sess.explain(y, {a: np.ones((0, 4))})
        assert told.kernels() == {"cpu.mat_mul": 1} and "it has no elements" in told.table(lost=True)
        assert sess.run(y, {a: np.ones((0, 4))}).shape == (0, 3)
