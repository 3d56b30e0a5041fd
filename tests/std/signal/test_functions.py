"""Frames, windows and short-time transforms; the numbers are TensorFlow's."""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def run(value: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(value, feed)


def test_windows() -> None:
    want = {1: [1.0], 4: [0.0, 0.5, 1.0, 0.5], 5: [0.0, 0.5, 1.0, 0.5, 0.0]}
    for length, values in want.items():
        np.testing.assert_allclose(run(tf.signal.hann_window(length)), values, atol=1e-6)
    np.testing.assert_allclose(run(tf.signal.hann_window(4, periodic=False)), [0, 0.75, 0.75, 0], atol=1e-6)
    np.testing.assert_allclose(run(tf.signal.hamming_window(4, dtype=tf.float64)), [0.08, 0.54, 1, 0.54], atol=1e-12)
    with pytest.raises(TypeError):
        tf.signal.hann_window(4, dtype=tf.int32)


@pytest.mark.parametrize("fed", [False, True])
def test_frames(fed: bool) -> None:
    x = np.arange(10.0)
    given: Any = tf.placeholder(tf.float64, [None]) if fed else x
    feed = {given: x} if fed else None
    whole = [[0, 1, 2, 3], [3, 4, 5, 6], [6, 7, 8, 9]]
    assert run(tf.signal.frame(given, 4, 3), feed).tolist() == whole
    padded = tf.signal.frame(given, 4, 3, pad_end=True, pad_value=-1)
    assert run(padded, feed).tolist() == [*whole, [9, -1, -1, -1]]
    assert run(tf.signal.frame(given, 12, 3), feed).shape == (0, 12)
    assert run(tf.signal.frame(np.arange(12).reshape(2, 3, 2), 2, 1, axis=1)).shape == (2, 2, 2, 2)


@pytest.mark.parametrize("shape", [[3, 4], [None, 4], [None, None]])
def test_overlap_and_add(shape: list[int | None]) -> None:
    x = np.arange(12.0).reshape(3, 4)
    fed = tf.placeholder(tf.float64, shape)
    y = tf.signal.overlap_and_add(fed, 2)
    assert run(y, {fed: x}).tolist() == [0, 1, 6, 8, 14, 16, 10, 11]
    assert y.shape.as_list() == [8 if None not in shape else None]
    batch = np.stack([x, 2 * x])
    np.testing.assert_array_equal(run(tf.signal.overlap_and_add(batch, 2))[1], 2 * run(y, {fed: x}))


def test_short_time_transforms() -> None:
    x = np.arange(8.0, dtype=np.float32)
    np.testing.assert_allclose(run(tf.signal.stft(x, 4, 2))[0], [4, -2 + 1j, 0], atol=1e-6)
    assert tf.signal.stft(x, 3, 2, pad_end=True).shape.as_list() == [4, 3]
    assert tf.signal.stft(x, 3, 2, fft_length=8, window_fn=None).shape.as_list() == [3, 5]


@pytest.mark.parametrize(("length", "step"), [(16, 4), (16, 8), (12, 5)])
def test_there_and_back(length: int, step: int) -> None:
    x = np.random.default_rng(0).normal(size=(2, 128))
    there = tf.signal.stft(x, length, step)
    back = run(tf.signal.inverse_stft(there, length, step, window_fn=tf.signal.inverse_stft_window_fn(step)))
    inside = slice(length, back.shape[-1] - length)
    np.testing.assert_allclose(back[:, inside], x[:, inside], atol=1e-6)


def test_mel_weights() -> None:
    want = [
        [0, 0, 0, 0],
        [0.8957, 0.1043, 0, 0],
        [0, 0.8691, 0.1309, 0],
        [0, 0.1092, 0.8908, 0],
        [0, 0, 0.5056, 0.4944],
        [0, 0, 0.0048, 0.9952],
        [0, 0, 0, 0.5769],
        [0, 0, 0, 0.2033],
        [0, 0, 0, 0],
    ]
    np.testing.assert_allclose(run(tf.signal.linear_to_mel_weight_matrix(4, 9)), want, atol=6e-5)
    for wrong in ({"num_mel_bins": 0}, {"sample_rate": -1}, {"upper_edge_hertz": 5000}, {"lower_edge_hertz": 4000}):
        with pytest.raises(ValueError):
            tf.signal.linear_to_mel_weight_matrix(**wrong)


def test_mfccs() -> None:
    got = run(tf.signal.mfccs_from_log_mel_spectrograms(np.arange(4.0, dtype=np.float32)))
    np.testing.assert_allclose(got, [4.2426, -2.2304, 0, -0.1585], atol=1e-4)


@pytest.mark.parametrize("given", [(3, 0), (3, -1), (-1, 2)])
def test_steps_of_frames_are_positive(given: tuple[int, int]) -> None:
    for signal in (tf.ones([16]), tf.placeholder(tf.float32, [None])):
        with pytest.raises(tf.errors.InvalidArgumentError, match="frame: frame_"):
            tf.contrib.signal.frame(signal, *given)
