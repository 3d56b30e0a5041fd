"""tf.image's colours and ranges: TensorFlow 1's numbers, colorsys, and gradients against differences."""

from __future__ import annotations

import colorsys
from collections.abc import Callable
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock_testing.numeric import central_differences

from tests.std.image.support import run

RGB = np.array([[[0.1, 0.5, 0.9], [0.8, 0.2, 0.2]]], np.float32)
BYTES = np.array([[[10, 120, 250], [200, 40, 40]]], np.uint8)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda x: tf.image.adjust_hue(x, 0.25), [[0.9, 0.1, 0.9], [0.5, 0.8, 0.2]]),
        (lambda x: tf.image.adjust_saturation(x, 0.5), [[0.5, 0.7, 0.9], [0.8, 0.5, 0.5]]),
        (lambda x: tf.image.adjust_contrast(x, 2.0), [[-0.25, 0.65, 1.25], [1.15, 0.05, -0.15]]),
        (lambda x: tf.image.adjust_brightness(x, 0.5), RGB[0] + np.float32(0.5)),
        (lambda x: tf.image.adjust_gamma(x, 2.0, 0.5), [[0.005, 0.125, 0.405], [0.32, 0.02, 0.02]]),
        (tf.image.rgb_to_hsv, [[0.58333, 0.88889, 0.9], [0.0, 0.75, 0.8]]),
        (tf.image.rgb_to_grayscale, [[0.42599], [0.37932]]),
        (tf.image.rgb_to_yiq, [[0.426, -0.3669, 0.03986], [0.3794, 0.35754, 0.12689]]),
        (tf.image.rgb_to_yuv, [[0.426, 0.23326, -0.28599], [0.3794, -0.08828, 0.36899]]),
    ],
)
def test_floats_give_tensorflows_numbers(change: Callable, expected: Any) -> None:
    got = run(change, RGB)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got[0], expected, atol=1e-5)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda x: tf.image.adjust_hue(x, 0.25), [[250, 10, 240], [120, 200, 40]]),
        (lambda x: tf.image.adjust_saturation(x, 0.5), [[130, 185, 250], [200, 120, 120]]),
        (lambda x: tf.image.adjust_contrast(x, 2.0), [[0, 160, 255], [255, 0, 0]]),
        (lambda x: tf.image.adjust_brightness(x, 0.2), [[61, 171, 255], [251, 91, 91]]),
        (lambda x: tf.image.adjust_gamma(x, 0.5), [[50, 175, 252], [226, 101, 101]]),
        (tf.image.rgb_to_grayscale, [[102], [87]]),
    ],
)
def test_bytes_are_scaled_there_and_back(change: Callable, expected: Any) -> None:
    got = run(change, BYTES)
    assert got.dtype == np.uint8
    np.testing.assert_array_equal(got[0], expected)


def test_standardisation_has_mean_0_and_deviation_1() -> None:
    expected = [[-1.12272, 0.11227, 1.57181], [1.01045, -0.78591, -0.78591]]
    np.testing.assert_allclose(run(tf.image.per_image_standardization, BYTES)[0], expected, atol=1e-5)
    assert not run(tf.image.per_image_standardization, np.full((2, 3, 3, 1), 7, np.uint8)).any()
    batch = np.random.default_rng(0).normal(5, 3, (3, 8, 8, 3)).astype(np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, None, None, 3])
        got = session.run(tf.image.per_image_standardization(x), {x: batch})
    np.testing.assert_allclose(got.mean((1, 2, 3)), 0, atol=1e-6)
    np.testing.assert_allclose(got.std((1, 2, 3)), 1, atol=1e-5)


def test_hue_saturation_value_agree_with_colorsys() -> None:
    pixels = np.random.default_rng(4).uniform(0, 1, (50, 3))
    pixels[:3] = [[0, 0, 0], [0.5, 0.5, 0.5], [1, 0, 1]]
    np.testing.assert_allclose(run(tf.image.rgb_to_hsv, pixels), [colorsys.rgb_to_hsv(*p) for p in pixels], atol=1e-12)
    np.testing.assert_allclose(run(tf.image.hsv_to_rgb, pixels), [colorsys.hsv_to_rgb(*p) for p in pixels], atol=1e-12)


@pytest.mark.parametrize(("there", "back"), [("rgb_to_yiq", "yiq_to_rgb"), ("rgb_to_yuv", "yuv_to_rgb")])
def test_luma_goes_there_and_back(there: str, back: str) -> None:
    got = run(lambda x: getattr(tf.image, back)(getattr(tf.image, there)(x)), RGB)
    np.testing.assert_allclose(got, RGB, atol=1e-4)


@pytest.mark.parametrize(
    ("have", "want", "value", "expected"),
    [
        ("uint8", "float32", [0, 51, 255], [0, 0.2, 1]),
        ("float32", "uint8", [0, 0.2, 1], [0, 51, 255]),
        ("uint8", "int16", [0, 3, 255], [0, 384, 32640]),
        ("int16", "uint8", [0, 300, 32767], [0, 2, 255]),
        ("float64", "float16", [0.5], [0.5]),
    ],
)
def test_dtypes_are_converted_by_their_largest_value(have: str, want: str, value: Any, expected: Any) -> None:
    got = run(lambda x: tf.image.convert_image_dtype(x, want), np.array(value, have))
    assert got.dtype == want
    np.testing.assert_allclose(got.astype(float), expected, rtol=1e-6)


def test_saturation_clips_in_place_of_wrapping() -> None:
    wide = np.array([-3e9, -1.0, 0.5, 300.0, 3e9, np.inf], np.float32)
    assert run(lambda x: tf.saturate_cast(x, tf.uint8), wide).tolist() == [0, 0, 0, 255, 255, 255]
    top = run(lambda x: tf.saturate_cast(x, tf.int32), wide)
    assert top[0] == -(2**31) and 2**31 - 1 - 128 <= top[4] <= 2**31 - 1 and top[5] == top[4]
    assert run(lambda x: tf.saturate_cast(x, tf.int8), np.array([200, 5], np.uint8)).tolist() == [127, 5]
    assert run(lambda x: tf.saturate_cast(x, tf.uint8), np.array([-200, 5], np.int16)).tolist() == [0, 5]
    half = run(lambda x: tf.saturate_cast(x, tf.int32), np.array([np.inf, -np.inf], np.float16))
    assert half.tolist() == [65504, -65504]
    assert run(lambda x: tf.image.convert_image_dtype(x, tf.uint8, saturate=True), wide[1:4]).tolist() == [0, 127, 255]


@pytest.mark.parametrize(
    ("change", "argument"),
    [(tf.image.adjust_hue, 0.15), (tf.image.adjust_saturation, 0.7), (tf.image.adjust_contrast, 1.3)],
)
def test_gradients_by_image_and_factor(change: Callable, argument: float) -> None:
    """The op in float64, by its pixels and by its float32 factor, against differences; twice by the pixels."""
    x = np.random.default_rng(6).uniform(0.1, 0.9, (2, 2, 3)).astype(np.float32)
    weights = np.random.default_rng(7).uniform(0.5, 1.5, x.shape).astype(np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        image, factor = tf.placeholder(tf.float32, x.shape), tf.placeholder(tf.float32, [])
        loss = tf.reduce_sum(tf.square(change(image, factor)) * weights)
        by_image, by_factor = tf.gradients(loss, [image, factor])
        (second,) = tf.gradients(tf.reduce_sum(by_image * by_image), image)
        feed = {image: x, factor: argument}
        got, scale, again = session.run([by_image, by_factor, second], feed)

        def value(a: Any, b: Any = argument) -> float:
            return float(session.run(loss, {image: a, factor: b}))

        numeric = central_differences(value, [x], 0, 1e-3)
        np.testing.assert_allclose(got, numeric, atol=3e-2)
        np.testing.assert_allclose(scale, (value(x, argument + 1e-3) - value(x, argument - 1e-3)) / 2e-3, atol=3e-2)
        assert np.isfinite(again).all() and again.shape == x.shape


def test_a_factor_that_depends_on_the_image_is_counted_once() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [1, 1, 3])
        loss = tf.reduce_sum(tf.image.adjust_saturation(x, 2 * tf.reduce_mean(x)))
        at = np.array([[[0.2, 0.3, 0.4]]], np.float32)
        numeric = central_differences(lambda v: float(session.run(loss, {x: v})), [at], 0, 1e-3)
        np.testing.assert_allclose(session.run(tf.gradients(loss, x)[0], {x: at}), numeric, atol=2e-3)


def test_random_forms_stay_in_their_range_and_follow_seeds() -> None:
    gray = np.full((1, 2, 2, 3), 0.5, np.float32)
    gray[0, 0] = 0.25
    with tf.Graph().as_default(), tf.Session() as session:
        bright = tf.image.random_brightness(tf.constant(gray), 0.2, seed=3)
        deltas = [session.run(bright)[0, 1, 1, 1] - 0.5 for _ in range(50)]
        assert min(deltas) < -0.1 and max(deltas) > 0.1 and np.abs(deltas).max() <= 0.2
        contrast = tf.image.random_contrast(tf.constant(gray), 0.5, 1.5, seed=3)
        spreads = [np.ptp(session.run(contrast)) / 0.25 for _ in range(50)]
        assert min(spreads) < 0.75 and max(spreads) > 1.25 and min(spreads) >= 0.5 and max(spreads) <= 1.5
        for random in (
            tf.image.random_hue(tf.constant(RGB), 0.3, seed=3),
            tf.image.random_saturation(tf.constant(RGB), 0.5, 1.5, seed=3),
        ):
            assert random.shape.as_list() == [1, 2, 3]
            assert not np.array_equal(session.run(random), session.run(random))
    for wrong in (
        lambda: tf.image.random_brightness(gray, -0.1),
        lambda: tf.image.random_hue(gray, 0.6),
        lambda: tf.image.random_contrast(gray, 2.0, 1.0),
        lambda: tf.image.random_saturation(gray, -1.0, 1.0),
        lambda: tf.image.adjust_gamma(gray, -1.0),
    ):
        with tf.Graph().as_default(), pytest.raises(ValueError):
            wrong()


def test_channels_are_checked() -> None:
    assert run(tf.image.grayscale_to_rgb, RGB[..., :1]).shape == (1, 2, 3)
    with pytest.raises(ValueError, match="3 channels"):
        tf.image.adjust_hue(tf.zeros([2, 2, 4]), 0.1)
    with pytest.raises(ValueError, match="1 channels"):
        tf.image.grayscale_to_rgb(tf.zeros([2, 2, 3]))


@pytest.mark.parametrize("known", [None, [None, None, None]])
@pytest.mark.parametrize(
    ("function", "channels", "out"),
    [(tf.image.grayscale_to_rgb, 1, 3), (tf.image.rgb_to_grayscale, 3, 1), (tf.image.rgb_to_hsv, 3, 3)],
)
def test_channels_that_turn_out_otherwise_are_refused(known, function, channels, out) -> None:
    """Three channels of an unknown number became nine, and one was summed as three."""
    image = tf.placeholder(tf.float32, known)
    made = function(image)
    with tf.Session() as sess:
        assert sess.run(made, {image: np.zeros((2, 4, channels))}).shape == (2, 4, out)
        with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
            sess.run(made, {image: np.zeros((2, 4, 4 - channels))})


@pytest.mark.parametrize("shape", [(3,), (4, 3)], ids=str)
@pytest.mark.parametrize("function", [tf.image.adjust_hue, tf.image.adjust_saturation, tf.image.random_hue])
def test_hue_and_saturation_are_of_images(function: Any, shape: tuple[int, ...]) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        with pytest.raises(ValueError, match="images"):
            function(tf.zeros(shape), 0.1)
        late = function(tf.placeholder_with_default(np.zeros(shape, np.float32), None), 0.1)
        with pytest.raises(tf.errors.InvalidArgumentError, match="images"):
            session.run(late)
