"""The gradient of a maximum pool against windows taken one by one, for every way that the kernel goes."""

from __future__ import annotations

import itertools
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock_cpu.kernels import pool_max_grad


def reference(x: np.ndarray, g: np.ndarray, ksize: tuple[int, ...], strides: tuple[int, ...], same: bool) -> np.ndarray:
    """Each window gives its gradient to its first maximum; one with a NaN in it gives it to none. In float64."""
    dx = np.zeros(x.shape)
    before = [
        max(0, (-(-n // s) - 1) * s + k - n) // 2 if same else 0
        for n, k, s in zip(x.shape, ksize, strides, strict=True)
    ]
    for window in np.ndindex(g.shape):
        spans = [
            range(max(0, o * s - b), min(n, o * s - b + k))
            for o, s, b, k, n in zip(window, strides, before, ksize, x.shape, strict=True)
        ]
        inside = list(itertools.product(*spans))
        values = np.array([x[at] for at in inside], np.float64)
        if not np.isnan(values).any():
            dx[inside[int(values.argmax())]] += float(g[window])
    return dx


def gradient(
    x: np.ndarray, g: np.ndarray, ksize: tuple[int, ...], strides: tuple[int, ...], padding: str
) -> np.ndarray:
    pool = tf.nn.max_pool if x.ndim == 4 else tf.nn.max_pool3d
    with tf.Graph().as_default(), tf.Session() as sess:
        fed = tf.placeholder(tf.as_dtype(x.dtype), x.shape)
        y = pool(fed, ksize, strides, padding)
        assert tuple(y.shape.as_list()) == g.shape
        return np.asarray(sess.run(tf.gradients(y, fed, grad_ys=[tf.constant(g)])[0], {fed: x}))


#: Size, window and stride of each axis of space: an axis at a time or all at once, apart with and without gaps, wider than the map.
CASES = [
    ((7, 6), (3, 3), (1, 1)),
    ((9, 8), (3, 3), (2, 2)),
    ((8, 6), (2, 2), (2, 2)),
    ((9, 7), (2, 3), (3, 4)),
    ((6, 5), (1, 4), (1, 1)),
    ((2, 9), (5, 3), (1, 2)),
    ((5, 4, 6), (3, 2, 3), (1, 1, 1)),
]


@pytest.mark.parametrize("at_once", [1 << 17, 12], ids=["whole", "blocks"])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_the_first_maximum_of_each_window_gets_its_gradient(
    padding: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few values, so that most windows have several maxima; zeros of both signs are equal, NaN is no maximum, infinities stay."""
    monkeypatch.setattr(pool_max_grad, "AT_ONCE", at_once)
    rng = np.random.default_rng(5)
    values = np.array([-np.inf, -1.0, -0.0, 0.0, 1.0, 1.0, 2.0, np.inf, np.nan])
    for index, (size, window, stride) in enumerate(CASES):
        shape, ksize, strides = (2, *size, 2), (1, *window, 1), (1, *stride, 1)
        pooled = [
            -(-n // s) if padding == "SAME" else (n - k) // s + 1 for n, k, s in zip(size, window, stride, strict=True)
        ]
        if min(pooled) <= 0:
            continue
        x = rng.choice(values, size=shape, p=[0.02, *[0.137] * 7, 0.021])
        g = rng.integers(-8, 9, size=(2, *pooled, 2)).astype(float)
        g.flat[0] = np.inf
        for dtype in (np.float32, np.float64, np.float16):
            got = gradient(x.astype(dtype), g.astype(dtype), ksize, strides, padding)
            assert got.dtype == dtype
            expected = reference(x, g, ksize, strides, padding == "SAME")
            np.testing.assert_array_equal(got, expected.astype(dtype), err_msg=f"{CASES[index]} {dtype}")


def test_an_axis_at_a_time_where_that_is_less_to_do() -> None:
    """3x3 windows that overlap by two thirds go rows, then columns; those two apart all at once."""
    chosen: list[Any] = []
    for (size, window, stride), expected in zip(CASES[:3], (True, False, False), strict=True):
        out = [-(-n // s) for n, s in zip(size, stride, strict=True)]
        levels = [(1, *out, 2), (1, size[0], out[1], 2), (1, *size, 2)]
        axes = [
            pool_max_grad.Axis(at + 1, n, o, k, s, ((slice(0, o), slice(0, n)),) * k)
            for at, (n, o, k, s) in enumerate(zip(size, out, window, stride, strict=True))
        ]
        chosen.append(pool_max_grad._one_by_one(axes, levels) is expected)
    assert chosen == [True] * 3


@pytest.mark.parametrize("policy", ["exact", "generic"])
@pytest.mark.parametrize("rows", [0, 2])
def test_windows_of_padding_alone_are_the_lowest_number(rows, policy):
    """Also of images without rows, whose pool has some by its padding: nothing wrote those."""
    x = np.ones((2, rows, 3, 2), np.float32)
    with tf.Graph().as_default(), tf.Session(config=tf.SessionConfig(shape_policy=policy)) as sess:
        fed = tf.placeholder(tf.float32, [None, None, 3, None])
        y = tf.nn.max_pool(fed, [1, 2, 2, 1], [1, 1, 1, 1], [[0, 0], [3, 3], [0, 0], [0, 0]])
        got = sess.run(y, {fed: x})
    assert got.shape == (2, rows + 5, 2, 2)
    padded = np.full((2, rows + 6, 3, 2), -np.inf, np.float32)
    padded[:, 3 : rows + 3] = x
    windows = np.lib.stride_tricks.sliding_window_view(padded, (2, 2), (1, 2))
    np.testing.assert_array_equal(got, windows.max((-2, -1)))
