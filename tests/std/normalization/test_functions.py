"""Normalisation against float64 formulas, and against what TensorFlow 1 gives for small tensors."""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock_std.reference import normalization as oracle

X = (np.arange(12).reshape(1, 2, 2, 3) ** 2 % 7).astype(np.float32)
WEIGHTS = (np.arange(12).reshape(1, 2, 2, 3) % 5).astype(np.float32)
SCALE, OFFSET = [1.0, 2.0, 0.5], [0.0, 1.0, -1.0]
MEAN, VARIANCE = [1.0, 2.0, 3.0], [1.0, 0.5, 2.0]


def run(fetches: Any, feeds: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(fetches, feeds)


def test_batch_norm_in_training_is_tensorflows() -> None:
    x, scale, offset = tf.constant(X), tf.constant(SCALE), tf.constant(OFFSET)
    y, mean, variance = tf.nn.fused_batch_norm(x, scale, offset, epsilon=0.5)
    gradients = tf.gradients(y * WEIGHTS, [x, scale, offset])
    second = tf.gradients(tf.reduce_sum(gradients[0] ** 2), [x, scale])
    got = run([y, mean, variance, *gradients, *second])
    want = [
        [
            -1.06749,
            0.5411686,
            -0.5774229,
            0.1524986,
            2.3764944,
            -0.5774229,
            -0.4574957,
            -1.2941573,
            -1.5916079,
            1.3724872,
        ]
        + [2.3764944, -1.2535462],
        [1.75, 1.25, 2.75],
        [2.9166667, 0.9166667, 2.25],
        [
            -0.326276,
            -1.3523453,
            0.3380617,
            0.4823211,
            4.0570359,
            -0.3380617,
            -0.2269746,
            0.5795766,
            0.2704494,
            0.0709296,
        ]
        + [-3.2842672, -0.2704493],
        [5.4899487, 0.2294159, -2.3664317],
        [8.0, 7.0, 6.0],
        [0.3542388, 3.4651663, 0.0156735, -0.5784298, -10.3954992, -0.2089796, 0.2573815, 15.3103781, 0.2251755]
        + [-0.0331906, -8.3800449, -0.0318694],
        [0.7912763, 29.4106998, 1.4994285],
    ]
    for value, expected in zip(got, want, strict=True):
        np.testing.assert_allclose(value.ravel(), expected, rtol=2e-5, atol=2e-6)


def test_batch_norm_in_inference_is_tensorflows() -> None:
    x, scale, offset = tf.constant(X), tf.constant(SCALE), tf.constant(OFFSET)
    y, mean, variance = tf.nn.fused_batch_norm(
        x, scale, offset, tf.constant(MEAN), tf.constant(VARIANCE), is_training=False
    )
    gradients = tf.gradients(y * WEIGHTS, [x, scale, offset])
    got = run([y, mean, variance, *gradients])
    want = [
        [
            -0.9995004,
            -1.825603,
            -0.6465349,
            0.9995004,
            1.0,
            -0.6465349,
            0.0,
            -4.651206,
            -1.7069302,
            2.9985013,
            1.0,
            -1.3534651,
        ],
        MEAN,
        VARIANCE,
        [
            0.0,
            2.825603,
            0.7069301,
            2.9985013,
            11.302412,
            0.0,
            0.9995004,
            5.651206,
            1.0603951,
            3.9980016,
            0.0,
            0.3534651,
        ],
        [14.9925071, -7.0640078, -3.5346506],
        [8.0, 7.0, 6.0],
    ]
    for value, expected in zip(got, want, strict=True):
        np.testing.assert_allclose(value.ravel(), expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("dtype", [tf.float16, tf.float32, tf.float64])
def test_batch_norm_of_many_blocks(data_format: str, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    shape = [3, 90, 40, 16] if data_format == "NHWC" else [3, 16, 90, 40]
    x = (rng.standard_normal(shape) * 2 + 100).astype(dtype.np)
    axes = (0, 1, 2) if data_format == "NHWC" else (0, 2, 3)
    feed = tf.placeholder(dtype, shape)
    y, mean, variance = tf.nn.fused_batch_norm(feed, np.ones(16), np.zeros(16), data_format=data_format)
    got, m, v = run([y, mean, variance], {feed: x})
    wide = x.astype(np.float64)
    np.testing.assert_allclose(m, wide.mean(axes), rtol=1e-6)
    np.testing.assert_allclose(v, wide.var(axes, ddof=1), rtol=1e-4)
    want = (wide - wide.mean(axes, keepdims=True)) / np.sqrt(wide.var(axes, keepdims=True) + 0.001)
    assert got.dtype == dtype.np and m.dtype == (np.float64 if dtype == tf.float64 else np.float32)
    np.testing.assert_allclose(got.astype(np.float64), want, atol=4e-3 if dtype == tf.float16 else 1e-4)


def test_statistics_of_a_batch_have_gradients() -> None:
    x = tf.constant(X.astype(np.float64))
    _, mean, variance = tf.nn.fused_batch_norm(x, np.ones(3), np.zeros(3))
    plain = tf.nn.moments(x, [0, 1, 2])
    got = run(tf.gradients([mean, variance], x)[0])
    np.testing.assert_allclose(got, run(tf.gradients([plain[0], plain[1] * (4 / 3)], x)[0]), rtol=1e-9)


def test_edge_cases_of_batches() -> None:
    y, mean, variance = run(tf.nn.fused_batch_norm(tf.zeros([0, 2, 2, 3]), SCALE, OFFSET))
    assert y.shape == (0, 2, 2, 3) and np.isnan(mean).all() and np.isnan(variance).all()
    y, mean, variance = run(tf.nn.fused_batch_norm(tf.ones([1, 1, 1, 3]), SCALE, OFFSET))
    assert y.ravel().tolist() == OFFSET and mean.tolist() == [1, 1, 1] and variance.tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="mean and variance"):
        tf.nn.fused_batch_norm(tf.zeros([1, 1, 1, 3]), SCALE, OFFSET, is_training=False)
    with pytest.raises(ValueError, match="rank 4"):
        tf.nn.fused_batch_norm(tf.zeros([2, 3]), SCALE, OFFSET)
    x = tf.placeholder(tf.float32)
    y, mean, _ = tf.nn.fused_batch_norm(x, SCALE, OFFSET)
    assert mean.shape.as_list() == [3]
    assert run([y, mean], {x: X})[1].tolist() == [1.75, 1.25, 2.75]


def test_local_response_normalization_is_tensorflows() -> None:
    x = tf.constant(X)
    y = tf.nn.lrn(x, depth_radius=1, bias=2.0, alpha=0.5, beta=0.75)
    got, gradient = run([y, tf.gradients(y * WEIGHTS, x)[0]])
    want = [0.0, 0.1714384, 0.6857535, 0.5216948, 0.2763337, 0.6204032, 0.5029734, 0.0, 0.5029734, 0.6204032, 0.2763337]
    np.testing.assert_allclose(got.ravel(), [*want, 0.5216948], rtol=1e-5)
    want = [
        0.0,
        0.061228,
        -0.0979648,
        0.2728423,
        0.0429677,
        -0.2368575,
        0.3520814,
        0.8773827,
        1.0562441,
        0.0,
        -0.4406253,
    ]
    np.testing.assert_allclose(gradient.ravel(), [*want, 0.1304237], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("radius", "beta"), [(5, 0.75), (2, 0.5), (7, 1.0), (100, 0.3)])
def test_local_response_normalization_of_many_channels(radius: int, beta: float) -> None:
    x = np.random.default_rng(1).standard_normal([2, 9, 40, 130])
    feed = tf.placeholder(tf.float64, x.shape)
    y = tf.nn.local_response_normalization(feed, radius, 1.5, 0.1, beta)
    squares = np.stack([(x[..., max(0, c - radius) : c + radius + 1] ** 2).sum(-1) for c in range(130)], -1)
    np.testing.assert_allclose(run(y, {feed: x}), x / (1.5 + 0.1 * squares) ** beta, rtol=1e-12)


def test_an_infinite_channel_stays_in_its_window() -> None:
    x = np.ones([1, 1, 1, 9], np.float32)
    x[..., 8] = np.inf
    got = run(tf.nn.lrn(tf.constant(x), depth_radius=2))
    assert np.isfinite(got[..., :6]).all() and got[..., 6:8].tolist() == [[[[0, 0]]]]


def test_the_second_order_of_local_response_normalization() -> None:
    x = tf.placeholder(tf.float64, [1, 1, 2, 4])
    y = tf.nn.lrn(x, depth_radius=1, bias=1.0, alpha=0.7, beta=0.6)
    first = tf.reduce_sum(tf.gradients(tf.sin(y), x)[0] ** 2)
    second = tf.gradients(first, x)[0]
    at = np.random.default_rng(2).standard_normal([1, 1, 2, 4])
    with tf.Session() as session:
        got = session.run(second, {x: at})
        for i in range(8):
            step = np.zeros(8)
            step[i] = 1e-6
            step = step.reshape(at.shape)
            slope = (session.run(first, {x: at + step}) - session.run(first, {x: at - step})) / 2e-6
            np.testing.assert_allclose(got.ravel()[i], slope, rtol=1e-5, atol=1e-7)


def test_statistics_are_tensorflows() -> None:
    x = tf.constant(X)
    made = tf.nn.sufficient_statistics(x, [0, 1, 2], shift=1.0, keep_dims=True)
    assert [t.shape.as_list() for t in made] == [[], [1, 1, 1, 3], [1, 1, 1, 3], []]
    got = run(list(made))
    assert [v.ravel().tolist() for v in got] == [[4.0], [3.0, 1.0, 7.0], [11.0, 3.0, 19.0], [1.0]]
    mean, variance = run(tf.nn.normalize_moments(*tf.nn.sufficient_statistics(x, [0, 1, 2], shift=1.0)))
    np.testing.assert_allclose([mean, variance], [X.mean((0, 1, 2)), X.var((0, 1, 2))], rtol=1e-6)
    count, total, _, shift = tf.nn.sufficient_statistics(tf.placeholder_with_default(X, [None, 2, None, 3]), [0, -2])
    assert shift is None and run([count, total])[0] == 2
    mean, variance = run(tf.nn.weighted_moments(x, [0, 1, 2], tf.constant([[[1.0], [0.0]], [[2.0], [3.0]]])))
    np.testing.assert_allclose(mean, [2.3333333, 1.1666667, 2.0], rtol=1e-6)
    np.testing.assert_allclose(variance, [2.8888886, 0.8055555, 1.0], rtol=1e-6)
    kept = tf.nn.weighted_moments(x, [1, 2], 0.0, keep_dims=True)
    assert kept[0].shape.as_list() == [1, 1, 1, 3] and not run(kept)[0].any()


def test_batch_normalization_under_both_names() -> None:
    x, mean, variance = tf.constant(X), tf.constant(MEAN), tf.constant(VARIANCE)
    plain = tf.nn.batch_normalization(x, mean, variance, OFFSET, SCALE, 0.01)
    older = tf.nn.batch_norm_with_global_normalization(x, mean, variance, OFFSET, SCALE, 0.01, True)
    named = tf.nn.batch_norm_with_global_normalization(
        input=x,
        mean=mean,
        variance=variance,
        beta=OFFSET,
        gamma=SCALE,
        variance_epsilon=0.01,
        scale_after_normalization=False,
    )
    want = (X - MEAN) / np.sqrt(np.array(VARIANCE) + 0.01)
    got = run([plain, older, named, tf.nn.batch_normalization(x, mean, variance, None, None, 0.01)])
    for value, factor, shift in zip(got, (SCALE, SCALE, 1.0, 1.0), (OFFSET, OFFSET, OFFSET, 0.0), strict=True):
        np.testing.assert_allclose(value, want * factor + shift, rtol=1e-5, atol=1e-6)
    assert tf.nn.batch_normalization(tf.zeros([2, 3], tf.float16), MEAN, VARIANCE, None, None, 0.1).dtype == tf.float16
    with pytest.raises(ValueError, match="input and t"):
        tf.nn.batch_norm_with_global_normalization(x, mean, variance, OFFSET, SCALE, 0.01, True, input=x)


@pytest.mark.parametrize("shape", [(0, 2, 2, 3), (2, 0, 2, 3), (2, 2, 2, 0)])
@pytest.mark.parametrize("training", [True, False])
def test_the_oracle_of_no_elements_is_the_kernel(shape: Any, training: bool) -> None:
    x, scale, vector = np.zeros(shape, np.float32), np.ones(shape[3], np.float32), np.zeros(shape[3], np.float32)
    given = {"epsilon": 0.001, "data_format": "NHWC", "is_training": training}
    stats = [vector[:0]] * 2 if training else [vector, scale]
    wanted = oracle.fused_batch_norm(x, scale, vector, *stats, **given)
    with tf.Graph().as_default():
        found = run(
            list(
                tf.ops.apply_op(
                    "FusedBatchNorm", x=x, scale=scale, offset=vector, mean=stats[0], variance=stats[1], **given
                )
            )
        )
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(a, b)
    inputs = {"y_backprop": x, "x": x, "scale": scale, "reserve_space_1": vector, "reserve_space_2": scale}
    wanted = oracle.fused_batch_norm_grad(**inputs, **given)
    with tf.Graph().as_default():
        found = run(list(tf.ops.apply_op("FusedBatchNormGrad", **inputs, **given)))
    for a, b in zip(found, wanted, strict=False):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("x", [None, [None] * 4])
def test_channels_are_known_from_scale_or_mean(layout: str, x: Any) -> None:
    """TensorFlow's shapes: channels of y are those of x, scale, or in inference of mean and variance."""
    with tf.Graph().as_default():
        images, seven, some = tf.placeholder(tf.float32, x), tf.ones([7]), tf.placeholder(tf.float32, [None])
        by_scale = tf.nn.fused_batch_norm(images, seven, seven, data_format=layout)
        by_mean = tf.nn.fused_batch_norm(images, some, some, seven, seven, data_format=layout, is_training=False)
        unknown = tf.nn.fused_batch_norm(images, some, some, data_format=layout)
    wanted = [None, None, None, 7] if layout == "NHWC" else [None, 7, None, None]
    for y, mean, variance in (by_scale, by_mean):
        assert [t.shape.as_list() for t in (y, mean, variance)] == [wanted, [7], [7]]
    assert [t.shape.as_list() for t in unknown] == [[None] * 4, [None], [None]]
