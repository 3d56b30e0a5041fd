"""Maps over more elements than a block has threads, and the sums of gradients of ranges: against the cpu."""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np


def test_special_functions_far_from_the_samples(on_both: Any) -> None:
    x = np.linspace(-30.3, 300.1, 997)
    a = np.geomspace(1e-3, 1e6, 997)
    y = a * np.linspace(0.5, 1.5, 997)

    def make(x: Any, a: Any, y: Any) -> Any:
        unit = tf.sigmoid(x / 20)
        return (
            tf.lgamma(x),
            tf.digamma(x),
            tf.igamma(a, y),
            tf.igammac(a, y),
            tf.betainc(a / 1000, y / 900, unit),
            tf.zeta(1 + tf.abs(x) / 10, a / 10),
            tf.zeta(2 + tf.floor(unit * 2), -tf.floormod(y, 40.0) - 0.25),
            tf.gradients(tf.igamma(a, y), a)[0],
            tf.polygamma(tf.floor(tf.abs(x) / 50), a / 10),
        )

    for got, expected in on_both(make, x, a, y):
        assert np.allclose(got, expected, rtol=1e-9, atol=1e-12, equal_nan=True)


def test_gradients_of_learnt_ranges_are_summed_over_many_rows(on_both: Any) -> None:
    rng = np.random.default_rng(2)
    x, g = (rng.normal(size=(1500, 5)).astype(np.float32) * 4 for _ in range(2))
    low, high = -np.arange(1, 6, dtype=np.float32), np.arange(2, 7, dtype=np.float32)
    pairs = on_both(tf.fake_quant_with_min_max_vars_per_channel_gradient, g, x, low, high)
    for got, expected in pairs:
        assert np.allclose(got, expected, rtol=1e-4, atol=1e-3)


def test_bias_of_images(on_both: Any) -> None:
    rng = np.random.default_rng(2)
    x, bias = rng.normal(size=(3, 7, 11, 13)).astype(np.float32), rng.normal(size=7).astype(np.float32)
    ((got, expected),) = on_both(lambda x, b: tf.nn.bias_add(x, b, "NCHW"), x, bias)
    assert np.array_equal(got, expected)


def test_glimpses_with_noise(on_both: Any) -> None:
    x = np.random.default_rng(2).normal(size=(3, 20, 21, 2)).astype(np.float32)
    at = np.array([[0.9, -0.9], [0.0, 0.0], [-1.0, 1.0]], np.float32)

    def make(x: Any, at: Any) -> Any:
        tf.set_random_seed(4)
        return tf.image.extract_glimpse(x, [15, 16], at)

    ((got, expected),) = on_both(make, x, at)
    assert np.allclose(got, expected, rtol=1e-5, atol=1e-6)
