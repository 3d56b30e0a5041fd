"""Largest numbers in windows by the plugin's function, beside NumPy's."""

from __future__ import annotations

import cffi
import graphdock as tf
import numpy as np
import pytest
from graphdock_llvm.target import compiled
from graphdock_llvm.windows_text import text


def _pooled(x, window, stride, pads):
    """The largest of each window, of images with minus infinity around them."""
    around = np.pad(x, [(0, 0), *pads, (0, 0)], constant_values=-np.inf)
    views = np.lib.stride_tricks.sliding_window_view(around, window, (1, 2))[:, :: stride[0], :: stride[1]]
    return views.max((-2, -1))


def _same(size, window, stride):
    missing = max(0, (-(-size // stride) - 1) * stride + window - size)
    return missing // 2, missing - missing // 2


@pytest.mark.parametrize("seed", range(24))
def test_random_pools_agree_with_numpy(seed):
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
    with tf.Graph().as_default(), tf.Session(config=tf.SessionConfig(backends=("llvm", "cpu"))) as session:
        images, metadata = tf.placeholder(tf.float32, x.shape), tf.RunMetadata()
        made = tf.nn.max_pool2d(images, window, stride, padding)
        result = session.run(made, {images: x}, run_metadata=metadata)
        assert "llvm.max_pool" in {k.full_name for k in metadata.plan.placement.kernels.values()}
    np.testing.assert_array_equal(result, _pooled(x, window, stride, pads))


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("channels", [1, 16, 37, 130])
def test_other_widths_write_what_is_theirs_alone(lanes, channels):
    x, ffi = np.random.default_rng(channels).normal(size=(2, 7, 6, channels)).astype(np.float32), cffi.FFI()
    room = np.full(2 * 3 * 5 * channels + 64, 7.5, np.float32)
    numbers = np.array([1, 0, 4, 6, 3, 5, 7, 6, channels, 3, 2, 2, 1, 0, 0])
    function = ffi.cast("void (*)(void **, int64_t *)", compiled(text(lanes)))
    buffers = [ffi.from_buffer(a) for a in (x, room)]
    function(ffi.new("void *[]", buffers), ffi.cast("int64_t *", ffi.from_buffer(numbers)))
    wanted = _pooled(x, (3, 2), (2, 1), [(0, 0), (0, 0)])
    np.testing.assert_array_equal(room[:-64].reshape(wanted.shape), wanted)
    assert (room[-64:] == 7.5).all()
