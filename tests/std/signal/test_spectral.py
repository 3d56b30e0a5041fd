"""Fourier and cosine transforms against NumPy and SciPy."""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np
import pytest
import scipy.fft
from graphdock_testing.gradient_check import check_gradients


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def run(value: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(value, feed)


def draw(shape: tuple[int, ...], dtype: Any = np.float64) -> np.ndarray:
    rng = np.random.default_rng(0)
    values = rng.normal(size=shape)
    return np.asarray(values + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else values).astype(dtype)


def close(got: Any, want: Any) -> None:
    narrow = got.dtype in (np.float32, np.complex64)
    np.testing.assert_allclose(got, want, rtol=1e-4 if narrow else 1e-10, atol=1e-4 if narrow else 1e-12)


COMPLEX = {
    "fft": (tf.fft, 1, np.fft.fftn),
    "ifft": (tf.spectral.ifft, 1, np.fft.ifftn),
    "fft2d": (tf.signal.fft2d, 2, np.fft.fftn),
    "ifft2d": (tf.ifft2d, 2, np.fft.ifftn),
    "fft3d": (tf.fft3d, 3, np.fft.fftn),
    "ifft3d": (tf.ifft3d, 3, np.fft.ifftn),
}
REAL = {
    "rfft": (tf.spectral.rfft, 1, np.fft.rfftn),
    "rfft2d": (tf.signal.rfft2d, 2, np.fft.rfftn),
    "rfft3d": (tf.signal.rfft3d, 3, np.fft.rfftn),
    "irfft": (tf.spectral.irfft, 1, np.fft.irfftn),
    "irfft2d": (tf.signal.irfft2d, 2, np.fft.irfftn),
    "irfft3d": (tf.spectral.irfft3d, 3, np.fft.irfftn),
}


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("name", COMPLEX)
def test_transforms(name: str, dtype: Any) -> None:
    ours, rank, theirs = COMPLEX[name]
    for shape in [(3, 4, 5), (2, 3, 8, 1), (1, 64, 3)]:
        x = draw(shape, dtype)
        got = run(ours(x))
        assert got.dtype == np.dtype(dtype)
        close(got, theirs(x, axes=range(-rank, 0)))


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("name", REAL)
def test_transforms_of_real_numbers(name: str, wide: bool) -> None:
    ours, rank, theirs = REAL[name]
    half, whole = (np.complex128, np.float64) if wide else (np.complex64, np.float32)
    x = draw((3, 4, 6), half if name.startswith("i") else whole)
    for lengths in [None, [4, 5, 7][-rank:], [5, 3, 4][-rank:], [3, 4, 6][-rank:]]:
        got = run(ours(x, lengths))
        assert got.dtype == np.dtype(whole if name.startswith("i") else half)
        close(got, theirs(x, lengths, range(-rank, 0)))
        fed = tf.placeholder(x.dtype, [None] * 3)
        close(run(ours(fed, lengths), {fed: x}), theirs(x, lengths, range(-rank, 0)))


def test_static_shapes() -> None:
    x = tf.placeholder(tf.float32, [None, 8])
    assert tf.signal.rfft(x).shape.as_list() == [None, 5]
    assert tf.signal.irfft(tf.signal.rfft(x)).shape.as_list() == [None, 8]
    assert tf.signal.rfft(x, [6]).shape.as_list() == [None, 4]
    assert tf.signal.rfft(np.zeros((2, 0), np.float32)).shape.as_list() == [2, 0]
    with pytest.raises(TypeError):
        tf.signal.irfft(x)
    with pytest.raises(ValueError):
        tf.signal.rfft2d(np.zeros(3, np.float32))


@pytest.mark.parametrize("size", [1, 4, 7])
@pytest.mark.parametrize("norm", [None, "ortho"])
@pytest.mark.parametrize("kind", [2, 3, 4])
def test_cosine_transforms(kind: int, norm: Any, size: int) -> None:
    x = draw((2, size))
    close(run(tf.signal.dct(x, kind, norm=norm)), scipy.fft.dct(x, kind, norm=norm))
    factor = 1 if norm else 2 * size
    close(run(tf.spectral.idct(x, kind, norm=norm)) / factor, scipy.fft.idct(x, kind, norm=norm))
    both = run(tf.signal.idct(tf.signal.dct(x, kind, norm=norm), kind, norm=norm))
    close(both / factor, x)


def test_the_first_cosine_transform() -> None:
    x = draw((2, 5))
    close(run(tf.signal.dct(x, 1)), scipy.fft.dct(x, 1))
    for wrong in ({"type": 1, "norm": "ortho"}, {"type": 5}, {"axis": 0}, {"norm": "forward"}, {"n": 0}):
        with pytest.raises(ValueError):
            tf.signal.dct(x, **wrong)


@pytest.mark.parametrize("n", [3, 4, 6])
def test_cosine_transforms_cut_and_fill_up(n: int) -> None:
    x = draw((2, 4))
    close(run(tf.signal.dct(x, n=n)), scipy.fft.dct(x, n=n))
    fed = tf.placeholder(tf.float64, [None, None])
    close(run(tf.signal.dct(fed, 3, n=n), {fed: x}), scipy.fft.dct(x, 3, n=n))


@pytest.mark.parametrize("axes", [None, 0, -1, [0, 2]])
def test_shifts(axes: Any) -> None:
    x = np.arange(60).reshape(3, 4, 5)
    fed = tf.placeholder(tf.int64, [None, 4, None])
    for ours, theirs in [(tf.signal.fftshift, np.fft.fftshift), (tf.signal.ifftshift, np.fft.ifftshift)]:
        np.testing.assert_array_equal(run(ours(x, axes)), theirs(x, axes))
        np.testing.assert_array_equal(run(ours(fed, axes), {fed: x}), theirs(x, axes))


@pytest.mark.parametrize("kind", [1, 2, 3, 4])
def test_gradients_and_second_order(kind: int) -> None:
    x = tf.placeholder(tf.float64, [2, 4])
    (first,) = tf.gradients(tf.square(tf.signal.dct(x, kind)) * x, [x])
    check_gradients(first, {x: draw((2, 4))})


def test_second_order_through_fft() -> None:
    x = tf.placeholder(tf.float64, [6])
    y = tf.abs(tf.fft(tf.complex(x, tf.sin(x)))) ** 3
    (first,) = tf.gradients(y, [x])
    check_gradients(first, {x: draw((6,))})
