"""Layer and instance normalisation against float64 formulas, and against what PyTorch gives for small tensors."""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock import ops

X = (np.arange(12).reshape(2, 2, 3) ** 2 % 7).astype(np.float64)
WEIGHTS = (np.arange(12).reshape(2, 2, 3) % 5).astype(np.float64)
GAMMA, BETA = np.array([1.0, 2.0, 0.5]), np.array([0.0, 1.0, -1.0])


def run(fetches: Any, feeds: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(fetches, feeds)


def expected(x: Any, begin: int, epsilon: float, gamma: Any = 1.0, beta: Any = 0.0) -> np.ndarray:
    x = np.asarray(x).astype(np.float64)
    axes = tuple(range(begin % x.ndim, x.ndim))
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon) * gamma + beta


def close(got: Any, want: Any) -> None:
    for value, numbers in zip(got, want, strict=True):
        np.testing.assert_allclose(np.ravel(value), numbers, rtol=1e-6, atol=2e-7)


def test_values_and_both_orders_of_gradients_are_pytorchs() -> None:
    x, gamma, beta = tf.constant(X), tf.constant(GAMMA), tf.constant(BETA)
    y = tf.nn.layer_norm(x, gamma, beta, epsilon=0.5)
    gradients = tf.gradients(y * WEIGHTS, [x, gamma, beta])
    second = tf.gradients(tf.reduce_sum(gradients[0] ** 2), [x, gamma])
    want = [
        [-0.9053575, 0.275714, -0.3662498, -0.5656854, -0.1313708, -0.4343146, 0.3922323, -0.5689291, -0.8038839]
        + [1.1313708, -0.1313708, -1.2828427],
        [-0.4541629, 0.5788351, -0.1246722, -1.5612918, 2.6813489, -1.1200571, -1.0409241, 1.4934998, -0.4525757]
        + [0.7636753, -0.5939697, -0.1697056],
        [3.2206594, -4.1938138, 3.1460123],
        [8.0, 7.0, 6.0],
        [0.2368654, 0.0014872, -0.2383526, -3.9304397, 13.3034803, -9.3730406, -4.1330486, 6.2833934, -2.1503449]
        + [-1.737216, 1.456128, 0.281088],
        [-9.8162948, 21.2697853, -1.7571972],
    ]
    close(run([y, *gradients, *second]), want)


def test_rows_of_two_dims_are_pytorchs() -> None:
    x, gamma = tf.constant(X), tf.constant(np.arange(6).reshape(2, 3) / 2.0)
    y = tf.nn.layer_norm(x, gamma, np.ones((2, 3)), begin_norm_axis=1, epsilon=1e-5)
    want = [
        [1.0, 0.6011389, 2.2535634, 0.8290595, 0.7720794, 4.1339085, 1.0, 0.331849, 0.4654792, 3.806234, 1.5345208]
        + [1.668151],
        [-1.5939649, -1.3053638, -0.4395607, 1.3764037, 3.7695702, -1.8070845, -1.0308656, 0.7301833, 1.3744779]
        + [0.9020182, -1.9901333, 0.0143196],
        [-0.5345208, -3.470326, 0.9035645, 7.1414098, -0.4558412, 0.2672604],
    ]
    close(run([y, *tf.gradients(y * WEIGHTS, [x, gamma])]), want)


@pytest.mark.parametrize("data_format", ["NCHW", "NHWC"])
def test_instances_are_pytorchs(data_format: str) -> None:
    images = (np.arange(16).reshape(2, 2, 2, 2) ** 2 % 11).astype(np.float64)
    weights = (np.arange(16).reshape(2, 2, 2, 2) % 5).astype(np.float64)
    there = (0, 1, 2, 3) if data_format == "NCHW" else (0, 2, 3, 1)
    back = (0, 1, 2, 3) if data_format == "NCHW" else (0, 3, 1, 2)
    x = tf.constant(images.transpose(there))
    y = tf.nn.instance_norm(x, [2.0, 0.5], [1.0, -1.0], 0.25, data_format)
    got = run([y, tf.gradients(y * weights.transpose(there), x)[0]])
    want = [
        [-0.979899, -0.4142136, 1.2828427, 4.1112698, -0.5527864, -1.4472136, -1.4472136, -0.5527864]
        + [4.1112698, 1.2828427, -0.4142136, -0.979899, -1.6454972, -1.1290994, -0.2684365, -0.9569669],
        [-0.2545584, 0.1414214, 0.1979899, -0.0848528, 0.559017, -0.3354102, 0.1118034, -0.3354102]
        + [-0.3676955, 1.046518, -0.7071068, 0.0282843, 0.0956292, 0.1568319, 0.1440814, -0.3965425],
    ]
    close([v.transpose(back) for v in got], want)


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32, tf.float64])
@pytest.mark.parametrize("shape, begin", [([3, 90, 40], -1), ([3, 90, 40], 1), ([2, 70000], -1), ([40000, 3], 1)])
def test_many_blocks(shape: list[int], begin: int, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    x = (rng.standard_normal(shape) * 2 + 10).astype(dtype.np)
    gamma, beta = rng.standard_normal(shape[begin:]), rng.standard_normal(shape[begin:])
    got = run(tf.nn.layer_norm(tf.constant(x), gamma, beta, begin, 1e-3))
    assert got.dtype == dtype.np and got.shape == x.shape
    tolerance = {tf.float16: 1e-2, tf.bfloat16: 5e-2, tf.float32: 2e-5, tf.float64: 1e-12}[dtype]
    want = expected(x, begin, 1e-3, gamma, beta)
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=tolerance, atol=tolerance)


def test_gradients_over_many_blocks_are_the_formulas() -> None:
    rng = np.random.default_rng(1)
    x, dy, gamma = rng.standard_normal((700, 200)), rng.standard_normal((700, 200)), rng.standard_normal(200)
    tensors = [tf.constant(v, tf.float32) for v in (x, gamma, np.zeros(200))]
    y = tf.nn.layer_norm(*tensors, epsilon=1e-5)
    dx, dgamma, dbeta = run(tf.gradients(y, tensors, tf.constant(dy, tf.float32)))
    normal, h = expected(x, -1, 1e-5), dy * gamma
    inverse = 1 / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    want = inverse * (h - h.mean(1, keepdims=True) - normal * (h * normal).mean(1, keepdims=True))
    np.testing.assert_allclose(dx, want, rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(dgamma, (dy * normal).sum(0), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(dbeta, dy.sum(0), rtol=1e-4, atol=1e-4)


def test_statistics_have_gradients() -> None:
    x = tf.constant(X)
    made = ops.apply_op("LayerNorm", x=x, gamma=GAMMA, beta=BETA, epsilon=0.5)
    mean, variance = tf.nn.moments(x, [-1])
    for got, want in (
        (made.mean, mean),
        (made.inverse, tf.rsqrt(variance + 0.5)),
        (made.inverse**2, 1 / (variance + 0.5)),
    ):
        first, plain = tf.gradients(got * [1.0, 3.0], x)[0], tf.gradients(want * [1.0, 3.0], x)[0]
        np.testing.assert_allclose(*run([first, plain]), rtol=1e-9, atol=1e-12)
    both = run(tf.gradients([made.y * WEIGHTS, made.mean], x)[0])
    np.testing.assert_allclose(both, run(sum(tf.gradients(v, x)[0] for v in (made.y * WEIGHTS, mean))), rtol=1e-9)


def test_gamma_and_beta_may_be_missing() -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    plain, scaled, moved = tf.nn.layer_norm(x), tf.nn.layer_norm(x, gamma=GAMMA), tf.nn.layer_norm(x, beta=BETA)
    unknown = tf.nn.layer_norm(tf.placeholder_with_default(X[0].astype(np.float32), None))
    assert plain.shape.as_list() == [None, 3] and unknown.shape.ndims is None
    got = run([plain, scaled, moved, unknown], {x: X[0]})
    for value, (gamma, beta) in zip(got, [(1, 0), (GAMMA, 0), (1, BETA), (1, 0)], strict=True):
        np.testing.assert_allclose(value, expected(X[0], -1, 1e-12, gamma, beta), rtol=2e-6, atol=1e-6)
    x = tf.placeholder(tf.float32, [2, None, None])
    np.testing.assert_allclose(run(tf.nn.layer_norm(x, begin_norm_axis=1), {x: X}), expected(X, 1, 0), atol=1e-5)
    x = tf.placeholder(tf.float32, [None, None, 3])
    y = tf.nn.instance_norm(x, gamma=GAMMA)
    np.testing.assert_allclose(run(y, {x: X})[0], expected(X[0].T, -1, 1e-6).T * GAMMA, rtol=1e-5, atol=1e-6)


def test_narrow_instances_are_computed_in_float32() -> None:
    x = (np.random.default_rng(3).standard_normal((2, 30, 30, 4)) + 100).astype(np.float16)
    got = run(tf.nn.instance_norm(tf.constant(x), [1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 1.0, 1.0]))
    wide = x.astype(np.float64)
    want = (wide - wide.mean((1, 2), keepdims=True)) / np.sqrt(wide.var((1, 2), keepdims=True) + 1e-6)
    assert got.dtype == np.float16
    np.testing.assert_allclose(got, want * [1, 2, 3, 4] + [0, 0, 1, 1], rtol=2e-3, atol=2e-3)


def test_empty_tensors() -> None:
    x, gamma = tf.zeros([0, 3]), tf.ones([3])
    y = tf.nn.layer_norm(x, gamma)
    value, dx, dgamma = run([y, *tf.gradients(y, [x, gamma])])
    assert value.shape == dx.shape == (0, 3) and dgamma.tolist() == [0, 0, 0]
    assert run(tf.nn.layer_norm(tf.zeros([2, 0]))).shape == (2, 0)
    assert run(tf.nn.instance_norm(tf.zeros([0, 2, 2, 3]))).shape == (0, 2, 2, 3)


def test_names() -> None:
    with tf.Graph().as_default():
        x = tf.zeros([2, 2, 3])
        assert tf.nn.layer_norm(x, name="a").name == "a:0"
        assert tf.nn.layer_norm(x).name == "layer_norm:0"
        assert tf.nn.instance_norm(x, name="b").name == "b:0"


def test_what_does_not_fit_is_refused() -> None:
    x = tf.zeros([2, 2, 3])
    with pytest.raises(ValueError, match=r"gamma has shape \[2\]"):
        tf.nn.layer_norm(x, np.ones(2), np.zeros(2))
    with pytest.raises(ValueError, match="axis 3 is out of bounds"):
        tf.nn.layer_norm(x, begin_norm_axis=3)
    with pytest.raises(ValueError, match="no axis -1"):
        tf.nn.layer_norm(tf.constant(1.0))
    with pytest.raises(TypeError, match="not floating"):
        tf.nn.layer_norm(tf.constant([1, 2]))
    with pytest.raises(TypeError, match="not floating"):
        tf.nn.instance_norm(tf.zeros([1, 1, 1], tf.int32))
    with pytest.raises(ValueError, match="spatial"):
        tf.nn.instance_norm(tf.zeros([2, 3]))
    with pytest.raises(ValueError, match="unknown rank"):
        tf.nn.instance_norm(tf.placeholder(tf.float32))
    with pytest.raises(ValueError, match="gamma is no vector of the channels"):
        tf.nn.instance_norm(x, gamma=np.ones(2))
    with pytest.raises(ValueError, match="data_format"):
        tf.nn.instance_norm(x, data_format="NCW")
