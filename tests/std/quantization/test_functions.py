"""tf.quantization through a session: TensorFlow 1's numbers, round trips, and gradients that pass straight through."""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np
import pytest

from tests.std.image.support import run

X = np.array([-7, -2.6, -0.1, 0.4, 3.3, 6.2], np.float32)


@pytest.mark.parametrize(
    ("low", "high", "narrow", "expected"),
    [
        (-3.0, 4.5, False, [-3.21429, -2.14286, 0.0, 0.0, 3.21429, 4.28571]),
        (-3.0, 4.5, True, [-2.5, -2.5, 0.0, 0.0, 3.75, 5.0]),
        (1.0, 5.0, False, [0.0, 0.0, 0.0, 0.57143, 3.42857, 4.0]),
    ],
)
def test_fake_quantisation_gives_tensorflows_numbers(low: float, high: float, narrow: bool, expected: Any) -> None:
    got = run(lambda x: tf.fake_quant_with_min_max_args(x, low, high, 3, narrow), X)
    np.testing.assert_allclose(got, expected, atol=1e-5)
    learnt = run(
        lambda x, a, b: tf.fake_quant_with_min_max_vars(x, a, b, 3, narrow), X, np.float32(low), np.float32(high)
    )
    np.testing.assert_array_equal(learnt, got)


def test_what_is_outside_moves_the_ends() -> None:
    weights = np.arange(1.0, 7.0, dtype=np.float32)
    by_x, by_low, by_high = run(
        lambda x, a, b: tf.gradients(tf.fake_quant_with_min_max_vars(x, a, b, 3) * weights, [x, a, b]),
        X,
        np.float32(-3),
        np.float32(4.5),
    )
    assert by_x.tolist() == [0, 2, 3, 4, 5, 0] and by_low == 1 and by_high == 6
    inside = run(lambda x: tf.gradients(tf.fake_quant_with_min_max_args(x, -3.0, 4.5, 3) * weights, x)[0], X)
    assert inside.tolist() == by_x.tolist()


def test_channels_have_ranges_of_their_own() -> None:
    x = np.stack([X, X * 0.5, X], 1)
    low, high = np.array([-3, -1, 0], np.float32), np.array([4.5, 1, 0], np.float32)
    got, *slopes = run(
        lambda v, a, b: [
            (y := tf.fake_quant_with_min_max_vars_per_channel(v, a, b)),
            *tf.gradients(y, [v, a, b]),
        ],
        x,
        low,
        high,
    )
    for d in range(2):
        alone, *parts = run(
            lambda v, a, b: [(y := tf.fake_quant_with_min_max_vars(v, a, b)), *tf.gradients(y, [v, a, b])],
            x[:, d],
            low[d],
            high[d],
        )
        np.testing.assert_array_equal(got[:, d], alone)
        np.testing.assert_array_equal(slopes[0][:, d], parts[0])
        assert (slopes[1][d], slopes[2][d]) == (parts[1], parts[2])
    assert not got[:, 2].any() and slopes[0][:, 2].all()


def test_the_gradient_is_linear_in_what_comes_in_and_says_so() -> None:
    low, high = np.float32(-3), np.float32(4.5)
    with tf.Graph().as_default(), tf.Session() as session:
        x, g = tf.constant(X), tf.placeholder(tf.float32, [6])
        made = tf.quantization.fake_quant_with_min_max_vars_gradient(g, x, low, high, 3)
        total = tf.reduce_sum(made[0] * X) + 5 * made[1] + 7 * made[2]
        (slope,) = session.run(tf.gradients(total, [g]), {g: np.zeros(6)})
        units = [session.run(total, {g: row}) for row in np.eye(6)]
    np.testing.assert_allclose(slope, units)


def test_a_range_must_be_one() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="min must be below max"):
        run(lambda x: tf.fake_quant_with_min_max_vars(x, 2.0, 1.0), X)
    with pytest.raises(tf.errors.InvalidArgumentError, match="no range"):
        run(lambda x: tf.quantize(x, 2.0, 1.0, tf.uint8), X)


@pytest.mark.parametrize(
    ("mode", "dtype", "expected", "low"),
    [
        ("MIN_COMBINED", tf.uint8, [0, 14, 99, 116, 214, 255], -3.0),
        ("MIN_COMBINED", tf.int8, [-128, -114, -29, -12, 86, 127], -3.0),
        ("MIN_FIRST", tf.uint8, [0, 14, 99, 116, 214, 255], -3.0),
        ("SCALED", tf.int8, [-128, -73, -3, 11, 93, 127], -4.53543),
    ],
)
def test_integers_are_tensorflows(mode: str, dtype: Any, expected: Any, low: float) -> None:
    output, first, last = run(lambda x: list(tf.quantize(x, -3.0, 4.5, dtype, mode=mode)), X)
    assert output.dtype == dtype.np and output.tolist() == expected
    assert first == pytest.approx(low, abs=1e-5) and last == 4.5


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "int32"])
@pytest.mark.parametrize("mode", ["MIN_COMBINED", "MIN_FIRST", "SCALED"])
def test_what_is_quantised_comes_back_within_half_a_step(dtype: str, mode: str) -> None:
    x = np.random.default_rng(0).uniform(0 if mode == "SCALED" and dtype[0] == "u" else -2, 3, 50).astype(np.float32)

    def there_and_back(v: Any) -> Any:
        made = tf.quantize(v, -2.0, 3.0, dtype, mode=mode)
        return tf.dequantize(made.output, made.output_min, made.output_max, mode=mode)

    step = 6.0 / (2 ** np.iinfo(dtype).bits - 1)
    assert np.abs(run(there_and_back, x) - x).max() <= step / 2 + 1e-6


def test_ranges_hold_zero_and_are_wide_enough() -> None:
    _, low, high = run(lambda x: list(tf.quantize(x, 5.0, 5.0, tf.uint8)), X)
    assert (low, high) == (0, 5)
    _, low, high = run(lambda x: list(tf.quantize_v2(x, 0.0, 0.0, tf.uint8)), X)
    assert low == 0 and high == pytest.approx(0.01)
    output, low, high = run(lambda x: list(tf.quantize(x, -5.0, -1.0, tf.uint8, mode="SCALED")), X)
    assert not output.any() and (low, high) == (0, 0)


def test_there_and_back_gives_tensorflows_numbers_and_passes_gradients() -> None:
    def through(x: Any, **options: Any) -> Any:
        return tf.quantization.quantize_and_dequantize(x, -3.0, 4.5, num_bits=4, **options)

    given = run(lambda x: through(x, range_given=True), X)
    np.testing.assert_allclose(given, [-5.14286, -2.57143, 0, 0.64286, 3.21429, 4.5], atol=1e-5)
    own = run(through, X)
    np.testing.assert_allclose(own, [-7.08571, -2.65714, 0, 0, 3.54286, 6.2], atol=1e-5)
    half = np.array([-7, -0.5, 0.5, 1.5, 7], np.float32)
    to_even = run(lambda x: through(x, narrow_range=True), half)
    assert to_even.tolist() == [-7, 0, 0, 2, 7]
    up = run(lambda x: through(x, narrow_range=True, round_mode="HALF_UP"), half)
    assert up.tolist() == [-7, 0, 1, 2, 7]
    assert run(lambda x: tf.gradients(through(x), x)[0], X).tolist() == [1] * 6
    assert not run(through, np.zeros(3, np.float32)).any()
