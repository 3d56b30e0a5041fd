"""Comparing arrays, and derivatives by central differences, against what is known by hand."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from graphdock_testing.numeric import central_differences, difference, same_bits


def test_bits_tell_more_than_values():
    one = np.array([0.0, np.nan])
    assert same_bits(one, one.copy()) and not same_bits([0.0], [-0.0])
    assert not same_bits(np.float32(1), np.float64(1)) and not same_bits([1], [[1]])
    assert same_bits(np.arange(6).reshape(2, 3).T, np.ascontiguousarray(np.arange(6).reshape(2, 3).T))
    assert same_bits(np.array([b"a"], object), np.array([b"a"], object))


@pytest.mark.parametrize(
    ("got", "want", "text"),
    [
        (np.float32(1), np.float64(1), "dtype is float32, expected float64"),
        (np.zeros(2), np.zeros((2, 1)), "shape is [2], expected [2, 1]"),
        (np.array([1, 2]), np.array([1, 3]), "1 of 2 elements differ; at [1]"),
        (np.array([1.0, np.nan]), np.array([1.0, 2.0]), "at [1]"),
        (np.float32(1.0001), np.float32(1), "1 of 1 elements differ; at []"),
        (np.array([b"a"], object), np.array([b"b"], object), "at [0]"),
    ],
)
def test_what_differs_is_said(got, want, text):
    assert text in (difference(got, want) or "")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", ml_dtypes.bfloat16])
def test_rounding_is_no_difference(dtype):
    want = np.linspace(0.1, 5, 50).astype(dtype)
    bits = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[want.dtype.itemsize if want.dtype.kind != "c" else 8]
    nearby = want.copy()
    if want.dtype.kind != "c":
        nearby = (want.view(bits) + bits(1)).view(want.dtype)  # the next number above
    assert difference(nearby, want) is None
    assert difference(np.array([np.nan], dtype), np.array([np.nan], dtype)) is None


def test_a_spec_may_allow_more():
    got, want = np.float32(1.01), np.float32(1)
    assert (
        difference(got, want)
        and difference(got, want, {"rtol": 0.02}) is None
        and difference(got, want, {"atol": 0.02}) is None
    )


def test_differences_of_functions_whose_derivative_is_known():
    x, y = np.array([0.3, 1.2, -0.7]), np.array([[2.0], [3.0]])
    np.testing.assert_allclose(central_differences(lambda a: float(np.sum(np.sin(a))), [x], 0), np.cos(x), rtol=1e-8)
    found = central_differences(lambda a, b: float(np.sum(b**3) * a[0]), [x, y], 1)
    np.testing.assert_allclose(found, 3 * y**2 * x[0], rtol=1e-7)
    assert x.tolist() == [0.3, 1.2, -0.7], "the arrays are as they were"
    assert central_differences(lambda a: float(a**2), [np.array(3.0)], 0).shape == ()
