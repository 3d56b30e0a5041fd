"""Fourier transforms of lengths that take each way: passes of all radices, two launches, chirps; over any axes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

Computed = Callable[..., list[np.ndarray]]


def assert_near(got: np.ndarray, want: np.ndarray, tolerance: float) -> None:
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, atol=tolerance * max(np.abs(want).max(), 1e-30))


@pytest.mark.parametrize("length", [1, 2, 8, 12, 61, 67, 128, 131, 1000, 1024, 4097, 10_000, 16_384, 20_011])
def test_any_length(computed: Computed, length: int) -> None:
    rng = np.random.default_rng(length)
    x = (rng.standard_normal((3, length)) + 1j * rng.standard_normal((3, length))).astype(np.complex64)
    (forward,) = computed("FFT", {"input": x})
    assert_near(forward, np.fft.fft(x), 2e-6)
    (back,) = computed("IFFT", {"input": forward})
    assert_near(back, x, 2e-6)


@pytest.mark.parametrize("length", [6, 7, 128, 131, 9000, 20_011])
def test_half_of_a_spectrum(computed: Computed, length: int) -> None:
    x = np.random.default_rng(length).standard_normal((2, length))
    lengths = np.array([length], np.int32)
    (half,) = computed("RFFT", {"input": x, "fft_length": lengths}, Tout="complex128")
    assert_near(half, np.fft.rfft(x), 1e-13)
    (back,) = computed("IRFFT", {"input": half, "fft_length": lengths}, Tout="float64")
    assert_near(back, x, 1e-13)


@pytest.mark.parametrize("shape", [(2, 33, 20), (5, 3, 67), (300, 2, 3)])
def test_several_axes(computed: Computed, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((2, *shape)) + 1j * rng.standard_normal((2, *shape))
    for op, want in (("FFT2D", np.fft.fft2(x)), ("IFFT3D", np.fft.ifftn(x, axes=(1, 2, 3)))):
        (y,) = computed(op, {"input": x})
        assert_near(y, want, 1e-13)


@pytest.mark.parametrize("lengths", [(5, 8), (9, 3), (4, 20)])
def test_axes_are_cut_and_filled_up(computed: Computed, lengths: tuple[int, int]) -> None:
    x = np.random.default_rng(1).standard_normal((3, 7, 9))
    given = np.array(lengths, np.int32)
    (half,) = computed("RFFT2D", {"input": x, "fft_length": given}, Tout="complex128")
    assert_near(half, np.fft.rfft2(x, lengths), 1e-13)
    (back,) = computed("IRFFT2D", {"input": half[:, :3, :2], "fft_length": given}, Tout="float64")
    assert_near(back, np.fft.irfft2(half[:, :3, :2], lengths), 1e-13)


def test_an_axis_in_the_middle_that_takes_two_launches(computed: Computed) -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((16_384, 3)) + 1j * rng.standard_normal((16_384, 3))
    (y,) = computed("FFT2D", {"input": x})
    assert_near(y, np.fft.fft2(x), 1e-13)
