"""Largest numbers in windows, and their gradients, by the plugin's functions, beside NumPy's."""

from __future__ import annotations

import cffi
import graphdock as tf
import numpy as np
import pytest
from graphdock_llvm import window_gradients_text, windows_text
from graphdock_llvm.target import compiled


def _pooled(x, window, stride, pads):
    """The largest of each window, of images with minus infinity around them."""
    around = np.pad(x, [(0, 0), *pads, (0, 0)], constant_values=-np.inf)
    views = np.lib.stride_tricks.sliding_window_view(around, window, (1, 2))[:, :: stride[0], :: stride[1]]
    return views.max((-2, -1))


def _same(size, window, stride):
    missing = max(0, (-(-size // stride) - 1) * stride + window - size)
    return missing // 2, missing - missing // 2


def _gradient(x, pool, grad, window, stride, pads):
    """The gradient of the images: each window's is added to its first element that equals the pool's, window after window."""
    around = np.pad(x, [(0, 0), *pads, (0, 0)], constant_values=np.nan)
    made = np.zeros_like(around)
    count, every = np.arange(len(x))[:, None], np.arange(x.shape[3])
    for i, j in np.ndindex(pool.shape[1:3]):
        top, left = i * stride[0], j * stride[1]
        taps = around[:, top : top + window[0], left : left + window[1]].reshape(len(x), -1, x.shape[3])
        same = taps == pool[:, i, j][:, None]
        first = same.argmax(1)
        places = count, top + first // window[1], left + first % window[1], every
        made[places] += np.where(same.any(1), grad[:, i, j], np.float32(0))
    return made[:, pads[0][0] : pads[0][0] + x.shape[1], pads[1][0] : pads[1][0] + x.shape[2]]


def _drawn(seed):
    """Images, window, stride, padding and its elements, of a random pool."""
    rng = np.random.default_rng(seed)
    window, stride = ([int(n) for n in rng.integers(1, 5, 2)] for _ in range(2))
    sides = [int(rng.integers(k, 40)) for k in window]
    x = rng.normal(size=(int(rng.integers(1, 4)), *sides, int(rng.choice([1, 5, 16, 64, 70, 150])))).astype(np.float32)
    if seed % 3 == 0:
        x[rng.random(x.shape) < 0.02] = np.nan
        x[rng.random(x.shape) < 0.3] = -np.inf
    padding, pads = "VALID", [(0, 0), (0, 0)]
    if seed % 3 == 1:
        padding, pads = "SAME", [_same(*facts) for facts in zip(sides, window, stride, strict=True)]
    elif seed % 3 == 2:
        pads = [tuple(int(n) for n in rng.integers(0, k, 2)) for k in window]
        padding = [[0, 0], *pads, [0, 0]]
    return x, window, stride, padding, pads


@pytest.mark.parametrize("seed", range(24))
def test_random_pools_agree_with_numpy(seed):
    x, window, stride, padding, pads = _drawn(seed)
    with tf.Graph().as_default(), tf.Session(config=tf.SessionConfig(backends=("llvm", "cpu"))) as session:
        images, metadata = tf.placeholder(tf.float32, x.shape), tf.RunMetadata()
        made = tf.nn.max_pool2d(images, window, stride, padding)
        result = session.run(made, {images: x}, run_metadata=metadata)
        assert "llvm.max_pool" in {k.full_name for k in metadata.plan.placement.kernels.values()}
    np.testing.assert_array_equal(result, _pooled(x, window, stride, pads))


@pytest.mark.parametrize("seed", range(24))
def test_random_gradients_agree_with_numpy(seed):
    x, window, stride, padding, pads = _drawn(seed)
    if seed % 2:
        x = np.round(x)  # many are as large as others
    pool = _pooled(x, window, stride, pads)
    grad = np.random.default_rng(seed).normal(size=pool.shape).astype(np.float32)
    grad[..., :1] = np.inf  # what is not the largest gets 0, not a product by 0
    with tf.Graph().as_default(), tf.Session(config=tf.SessionConfig(backends=("llvm", "cpu"))) as session:
        images, back, metadata = tf.placeholder(tf.float32, x.shape), tf.constant(grad), tf.RunMetadata()
        made = tf.gradients(tf.nn.max_pool2d(images, window, stride, padding), images, back)
        (result,) = session.run(made, {images: x}, run_metadata=metadata)
        assert "llvm.max_pool_grad" in {k.full_name for k in metadata.plan.placement.kernels.values()}
    np.testing.assert_array_equal(result, _gradient(x, pool, grad, window, stride, pads))


def _called(text, lanes, arrays, numbers):
    """Call the function of a module for a vector of so many lanes."""
    ffi = cffi.FFI()
    function = ffi.cast("void (*)(void **, int64_t *)", compiled(text(lanes)))
    buffers = [ffi.from_buffer(a) for a in arrays]
    function(ffi.new("void *[]", buffers), ffi.cast("int64_t *", ffi.from_buffer(np.array(numbers))))


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("channels", [1, 16, 37, 130])
def test_other_widths_write_what_is_theirs_alone(lanes, channels):
    x = np.random.default_rng(channels).normal(size=(2, 7, 6, channels)).astype(np.float32)
    room = np.full(2 * 3 * 5 * channels + 64, 7.5, np.float32)
    _called(windows_text.text, lanes, [x, room], [1, 0, 4, 6, 3, 5, 7, 6, channels, 3, 2, 2, 1, 0, 0])
    wanted = _pooled(x, (3, 2), (2, 1), [(0, 0), (0, 0)])
    np.testing.assert_array_equal(room[:-64].reshape(wanted.shape), wanted)
    assert (room[-64:] == 7.5).all()


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("parts", [1, 3, 5, 14, 20])
@pytest.mark.parametrize(("window", "stride"), [((3, 2), (2, 1)), ((1, 2), (3, 2)), ((4, 4), (1, 1))])
def test_parts_of_a_gradient_write_their_rows_alone(lanes, parts, window, stride):
    x = np.random.default_rng(parts).integers(0, 4, size=(2, 7, 6, 21)).astype(np.float32)
    pool = _pooled(x, window, stride, [(0, 0), (0, 0)])
    grad = np.random.default_rng(1).normal(size=pool.shape).astype(np.float32)
    room = np.full(x.size + 64, 7.5, np.float32)
    numbers = [1, 0, parts, 14, *pool.shape[1:3], 7, 6, 21, *window, *stride, 0, 0]
    _called(window_gradients_text.text, lanes, [x, pool, grad, room], numbers)
    np.testing.assert_array_equal(
        room[:-64].reshape(x.shape), _gradient(x, pool, grad, window, stride, [(0, 0), (0, 0)])
    )
    assert (room[-64:] == 7.5).all()
