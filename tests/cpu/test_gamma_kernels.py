"""Incomplete gamma functions of large arguments, and zeta far from 0 on either side."""

import graphdock as tf
import numpy as np
import pytest
from scipy import special


def _run(*fetches):
    with tf.Session() as sess:
        return sess.run(list(fetches))


@pytest.mark.parametrize("a", [1e5, 3e6, 45e6, 1e8, 1e12])
def test_the_incomplete_gamma_functions_hold_near_their_peak(a):
    x = a + np.array([-4.0, -1.0, 0.0, 1e-3, 2.0, 4.0]) * np.sqrt(a)
    lower, upper = _run(tf.igamma(np.full(6, a), x), tf.igammac(np.full(6, a), x))
    np.testing.assert_allclose(lower, special.gammainc(a, x), 1e-9)
    np.testing.assert_allclose(upper, special.gammaincc(a, x), 1e-9)
    np.testing.assert_allclose(lower + upper, 1.0, 1e-14)


def test_of_equal_large_arguments_half_lies_below():
    a = np.array([1e16, 1e20, 1e300])
    (lower,) = _run(tf.igamma(a, a))
    np.testing.assert_allclose(lower, 0.5, 1e-8)


def test_far_from_the_peak_of_a_large_argument_all_or_nothing_lies_below():
    a, x = np.full(4, 1e6), np.array([1e-300, 1e3, 2e6, 1e300])
    lower, upper = _run(tf.igamma(a, x), tf.igammac(a, x))
    assert lower.tolist() == [0, 0, 1, 1] and upper.tolist() == [1, 1, 0, 0]


def test_the_series_and_the_expansion_meet():
    a = np.array([np.nextafter(1e5, 0), 1e5])
    for x in np.linspace(1e5 - 1500, 1e5 + 1500, 7):
        x = np.full(2, x)
        s = tf.constant(a)
        values = _run(tf.igamma(s, x), tf.igammac(s, x), tf.gradients(tf.igamma(s, x), s)[0])
        for below, above in values:
            np.testing.assert_allclose(above, below, 1e-9)


def test_zeta_far_below_zero_is_what_the_terms_add_up_to():
    s, q = np.array([2.0, 3.0, 4.0, 2.0]), np.array([-12.25, -200.3, -9000.3, -123456.7])
    (got,) = _run(tf.zeta(s, q))
    terms = np.arange(200_000)
    want = [np.sum((b + terms) ** -a) + special.zeta(a, b + 200_000) for a, b in zip(s, q, strict=True)]
    np.testing.assert_allclose(got, want, 1e-12)


def test_zeta_of_a_large_exponent_is_its_first_term():
    s, q = np.array([1e20, 1e20, 1e300, np.inf, np.inf, 1e20]), np.array([0.5, 3.0, 1.0, 0.5, 1.0, 1e30])
    (got,) = _run(tf.zeta(s, q))
    assert got.tolist() == [np.inf, 0, 1, np.inf, 1, 0]


def test_zeta_and_the_derivatives_of_digamma_vanish_at_infinity():
    x = tf.constant(np.array([np.inf, 1e100]))
    zeta, trigamma, gradient = _run(
        tf.zeta(tf.constant([2.0, 2.0], tf.float64), x),
        tf.polygamma(tf.ones_like(x), x),
        tf.gradients(tf.digamma(x), x)[0],
    )
    for value in (zeta, trigamma, gradient):
        np.testing.assert_allclose(value, [0, 1e-100], 1e-12)
