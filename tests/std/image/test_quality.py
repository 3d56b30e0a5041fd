"""tf.image's measures: TensorFlow 1's numbers, and plain loops over windows."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest

from tests.std.image.support import run

_RNG = np.random.RandomState(3)
A = _RNG.uniform(0, 1, (1, 24, 26, 1)).astype(np.float32)
B = np.clip(A + _RNG.uniform(-0.2, 0.2, A.shape), 0, 1).astype(np.float32)


def test_measures_give_tensorflows_numbers() -> None:
    np.testing.assert_allclose(run(lambda a, b: tf.image.psnr(a, b, 1.0), A, B), [19.34454], rtol=1e-6)
    np.testing.assert_allclose(run(lambda a, b: tf.image.ssim(a, b, 1.0), A, B), [0.93014], atol=1e-5)
    small = run(lambda a, b: tf.image.ssim(a, b, 1.0, filter_size=5, filter_sigma=0.8, k1=0.02, k2=0.1), A, B)
    np.testing.assert_allclose(small, [0.92343], atol=1e-5)
    scales = run(lambda a, b: tf.image.ssim_multiscale(a, b, 1.0, power_factors=(0.4, 0.6)), A, B)
    np.testing.assert_allclose(scales, [0.92192], atol=1e-5)


def test_bytes_are_measured_as_floats() -> None:
    a, b = (np.round(x * 255).astype(np.uint8) for x in (A, B))
    for measure in (tf.image.psnr, tf.image.ssim):
        bytes_ = run(lambda a, b, m=measure: m(a, b, 255), a, b)
        floats = run(lambda a, b, m=measure: m(a, b, 1.0), a / np.float32(255), b / np.float32(255))
        np.testing.assert_allclose(bytes_, floats, rtol=1e-5)


def test_an_image_is_like_itself() -> None:
    np.testing.assert_allclose(run(lambda a: tf.image.ssim(a, a, 1.0), A), [1], atol=1e-6)
    assert run(lambda a: tf.image.psnr(a, a, 1.0), A) == np.inf


def test_similarity_broadcasts_over_lead_dims_and_sends_gradients() -> None:
    many = np.stack([A[0], B[0], A[0] * 0.5])
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = tf.placeholder(tf.float32, [3, 24, 26, 1]), tf.placeholder(tf.float32, [24, 26, 1])
        value = tf.image.ssim(x, y, 1.0)
        assert value.shape.as_list() == [3]
        got, slope = session.run([value, tf.gradients(value, x)[0]], {x: many, y: A[0]})
    assert got[0] == pytest.approx(1) and got[1] > got[2]
    assert np.abs(slope[0]).max() < 1e-4 < np.abs(slope[1]).max()


def test_variation_and_differences() -> None:
    batch = np.random.default_rng(0).normal(size=(2, 4, 5, 3))
    down, along = np.diff(batch, axis=1), np.diff(batch, axis=2)
    expected = np.abs(down).sum((1, 2, 3)) + np.abs(along).sum((1, 2, 3))
    np.testing.assert_allclose(run(tf.image.total_variation, batch), expected)
    np.testing.assert_allclose(run(tf.image.total_variation, batch[0]), expected[0])
    dy, dx = run(tf.image.image_gradients, batch)
    np.testing.assert_array_equal(dy, np.pad(down, [(0, 0), (0, 1), (0, 0), (0, 0)]))
    np.testing.assert_array_equal(dx, np.pad(along, [(0, 0), (0, 0), (0, 1), (0, 0)]))


def test_sobel_is_a_correlation_with_a_mirrored_margin() -> None:
    batch = np.random.default_rng(0).normal(size=(2, 4, 5, 3))
    kernel = np.array([[-1, -2, -1], [0, 0, 0], [1, 2, 1]])
    x = np.pad(batch, [(0, 0), (1, 1), (1, 1), (0, 0)], "reflect")
    got = run(tf.image.sobel_edges, batch)
    assert got.shape == (2, 4, 5, 3, 2)
    for i in range(4):
        for j in range(5):
            window = x[:, i : i + 3, j : j + 3]
            np.testing.assert_allclose(got[:, i, j, :, 0], np.einsum("bhwc,hw->bc", window, kernel), atol=1e-12)
            np.testing.assert_allclose(got[:, i, j, :, 1], np.einsum("bhwc,wh->bc", window, kernel), atol=1e-12)


def test_sizes_are_checked() -> None:
    with pytest.raises(ValueError, match="differ"):
        tf.image.psnr(tf.zeros([4, 4, 1]), tf.zeros([4, 5, 1]), 1.0)
    with pytest.raises(ValueError, match="smaller than the filter"):
        tf.image.ssim(tf.zeros([4, 4, 1]), tf.zeros([4, 4, 1]), 1.0)
    with pytest.raises(ValueError, match="rank"):
        tf.image.sobel_edges(tf.zeros([4, 4, 1]))
