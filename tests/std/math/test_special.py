"""Special functions against SciPy, their edges against TensorFlow 1, and functions of several ops."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import graphdock as tf
import numpy as np
import pytest
import scipy.special as special

INF, NAN = math.inf, math.nan
RNG = np.random.default_rng(0)


def run(fetches: Any, feeds: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(fetches, feeds)


POSITIVE = np.concatenate([RNG.uniform(0, 20, 2000), np.geomspace(1e-6, 1e6, 500)])
NEGATIVE = -RNG.uniform(0, 30, 1000)
A, X = RNG.uniform(1e-2, 30, 2000), RNG.uniform(0, 40, 2000)
LARGE = np.geomspace(50, 1e5, 100)
UNIT = np.concatenate([RNG.uniform(0, 1, 1000), np.geomspace(1e-30, 0.4, 200)])

#: The function, SciPy's, arguments, and the relative and absolute error in float64.
ACCURACY: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[np.ndarray, ...], float, float]] = {
    "lgamma": (tf.lgamma, special.gammaln, (POSITIVE,), 2e-14, 1e-15),
    "lgamma of negatives": (tf.lgamma, special.gammaln, (NEGATIVE,), 1e-13, 1e-13),
    "digamma": (tf.digamma, special.digamma, (POSITIVE,), 1e-13, 2e-15),
    "digamma of negatives": (tf.digamma, special.digamma, (NEGATIVE,), 1e-12, 1e-13),
    "zeta": (tf.zeta, special.zeta, (RNG.uniform(1.001, 40, 2000), RNG.uniform(1e-3, 60, 2000)), 1e-14, 0),
    "polygamma": (tf.polygamma, special.polygamma, (np.arange(500) % 20.0, RNG.uniform(0.01, 50, 500)), 5e-14, 0),
    "igamma": (tf.igamma, special.gammainc, (A, X), 1e-12, 1e-300),
    "igammac": (tf.igammac, special.gammaincc, (A, X), 1e-11, 1e-300),
    "igamma of large": (tf.igamma, special.gammainc, (LARGE, LARGE * RNG.uniform(0.9, 1.1, 100)), 2e-11, 1e-300),
    "betainc": (tf.betainc, special.betainc, (A, X + 0.1, RNG.uniform(0, 1, 2000)), 1e-11, 1e-300),
    "bessel_i0e": (tf.math.bessel_i0e, special.i0e, (np.concatenate([POSITIVE, NEGATIVE]),), 5e-15, 0),
    "bessel_i1e": (tf.math.bessel_i1e, special.i1e, (np.concatenate([POSITIVE, NEGATIVE]),), 5e-15, 0),
    "ndtri": (tf.math.ndtri, special.ndtri, (UNIT,), 5e-15, 0),
    "erfinv": (tf.math.erfinv, special.erfinv, (np.concatenate([UNIT, -UNIT]),), 5e-15, 0),
}


@pytest.mark.parametrize("name", ACCURACY)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_accuracy_against_scipy(name: str, dtype: str) -> None:
    function, scipys, arguments, rtol, atol = ACCURACY[name]
    narrow = [a.astype(dtype) for a in arguments]
    exact = [a.astype(np.float64) for a in narrow]
    if "polygamma" in name:
        exact[0] = exact[0].astype(np.int64)
    got, want = run(function(*map(tf.constant, narrow))), scipys(*exact)
    assert got.dtype == dtype
    if dtype == "float32":
        with np.errstate(over="ignore", under="ignore"):
            want = want.astype(np.float32)
        rtol, atol = 3e-7, 1e-37
    np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)


def test_the_derivative_by_the_parameter_of_igamma() -> None:
    a, x = tf.constant(A), tf.constant(X)
    got = run([tf.gradients(tf.igamma(a, x), a)[0], tf.gradients(tf.igammac(a, x), a)[0]])
    h = 1e-4 * A
    near, far = (special.gammainc(A + d, X) - special.gammainc(A - d, X) for d in (h, 2 * h))
    np.testing.assert_allclose(got[0], (8 * near - far) / (12 * h), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(got[1], -got[0], rtol=1e-12)


#: What TensorFlow 1 gives at poles, borders and outside of the domain.
EDGES = [
    (tf.digamma, ([0, -1, -0.5, INF, -INF, NAN],), [NAN, NAN, 0.03648997397857645, INF, NAN, NAN]),
    (tf.lgamma, ([0, -1, -0.5, INF, -INF, NAN],), [INF, INF, 1.2655121234846454, INF, INF, NAN]),
    (tf.zeta, ([1, 0.5, 2, 2, 2.5, 3], [1, 1, 0, -1, -1.5, -1.5]), [INF, NAN, INF, INF, NAN, 0.11810202582086413]),
    (
        tf.polygamma,
        ([0, -1, 0.5, 1, 2, 1], [2, 2, 2, 0, -0.5, -1]),
        [0.42278433509846747, NAN, NAN, INF, -0.82879664423432, INF],
    ),
    (tf.igamma, ([-1, 1, 1, INF, 1], [1, 0, INF, 1, -1]), [NAN, 0, 1, 0, NAN]),
    (tf.igammac, ([-1, 1, 1, INF, 1, 0], [1, 0, INF, 1, -1, 0]), [NAN, 1, 0, 1, NAN, NAN]),
    (tf.betainc, ([1, 1, 0, 1, -1, 1, 1], [1, 2, 1, 0, 1, 1, 1], [0, 1, 0.5, 0.5, 0.5, -0.1, 1.1]), [0, 1, *[NAN] * 5]),
    (tf.math.xlogy, ([0, 0, 0, 1], [0, -1, NAN, -1]), [0, 0, 0, NAN]),
    (tf.math.xdivy, ([0, 1, 0], [0, 0, NAN]), [0, INF, 0]),
    (tf.math.multiply_no_nan, ([NAN, INF, 2], [0, 0, 0]), [0, 0, 0]),
    (tf.math.reciprocal_no_nan, ([0, 4, INF],), [0, 0.25, 0]),
    (tf.math.bessel_i0e, ([INF, -INF, NAN, 0],), [0, 0, NAN, 1]),
    (tf.math.bessel_i1e, ([INF, -INF, NAN, 0, -1],), [0, 0, NAN, 0, -0.20791041534970844]),
    (tf.math.ndtri, ([0, 1, 0.5, -1, 2],), [-INF, INF, 0, NAN, NAN]),
    (tf.math.erfinv, ([-1, 1, 0, 2],), [-INF, INF, 0, NAN]),
    (tf.truncatediv, ([-7.5, 7.5], [2, -2]), [-3, -3]),
    (tf.truncatemod, ([-7.5, 7.5], [2, -2]), [-1.5, 1.5]),
]


@pytest.mark.parametrize(("function", "arguments", "want"), EDGES, ids=lambda v: getattr(v, "__name__", ""))
def test_edges_are_tensorflows(function: Any, arguments: Any, want: list[float]) -> None:
    got = run(function(*(tf.constant(a, tf.float64) for a in arguments)))
    np.testing.assert_allclose(got, want, rtol=1e-12)


def test_integers_are_divided_towards_zero() -> None:
    x, y = tf.constant([-7, 7, -7, 5]), tf.constant([2, -2, -2, 0])
    assert [v.tolist() for v in run([tf.truncatediv(x, y), tf.truncatemod(x, y)])] == [[-3, -3, 3, 0], [-1, 1, -1, 0]]
    least = tf.constant([-(2**63)], tf.int64)
    assert run(tf.truncatediv(least, tf.constant([3], tf.int64))).tolist() == [-3074457345618258602]


def test_second_derivatives() -> None:
    x = tf.placeholder(tf.float64, [])
    b = tf.constant(2.5, tf.float64)
    functions = {
        "lgamma": tf.lgamma(x),
        "bessel_i0": tf.math.bessel_i0(x),
        "bessel_i1": tf.math.bessel_i1(x),
        "igamma": tf.igamma(b, x),
        "betainc": tf.betainc(b, b, x / 4),
        "zeta": tf.zeta(b, x),
        "xlogy": tf.math.xlogy(x, x),
        "ndtri": tf.math.ndtri(x / 4),
        "erfinv": tf.math.erfinv(x / 4),
    }
    firsts = {name: tf.gradients(y, x)[0] for name, y in functions.items()}
    seconds = {name: tf.gradients(g, x)[0] for name, g in firsts.items()}
    with tf.Session() as session:
        got, low, high = (
            session.run(seconds, {x: 1.3}),
            session.run(firsts, {x: 1.3 - 1e-5}),
            session.run(firsts, {x: 1.3 + 1e-5}),
        )
    for name, value in got.items():
        np.testing.assert_allclose(value, (high[name] - low[name]) / 2e-5, rtol=1e-6, err_msg=name)


def test_bessel_functions_at_zero() -> None:
    x = tf.constant(0.0, tf.float64)
    assert run(tf.gradients(tf.math.bessel_i1e(x), x)[0]) == 0.5
    assert run(tf.gradients(tf.math.bessel_i0e(x), x)[0]) == 0


def test_the_beta_function_and_polynomials() -> None:
    np.testing.assert_allclose(run(tf.lbeta([[1.0, 2.0, 3.0]])), [-4.0943446], rtol=1e-6)
    assert run(tf.math.lbeta(tf.zeros([2, 0]))).tolist() == [-INF, -INF]
    assert run(tf.math.polyval([1.0, 2.0, 3.0], tf.constant([2.0, 3.0]))).tolist() == [11, 18]
    assert run(tf.math.polyval([], tf.constant([2.0, 3.0]))).tolist() == [0, 0]
    with pytest.raises(ValueError, match="list"):
        tf.math.polyval(tf.constant([1.0]), tf.constant([2.0]))


def test_cross_products() -> None:
    a, b = RNG.standard_normal((2, 4, 3)), RNG.standard_normal((2, 4, 3))
    np.testing.assert_allclose(run(tf.cross(a, b)), np.cross(a, b), rtol=1e-12)
    assert run(tf.linalg.cross([1, 0, 0], [0, 1, 0])).tolist() == [0, 0, 1]
    x = tf.constant(a)
    np.testing.assert_allclose(run(tf.gradients(tf.cross(x, b), x)[0]), np.cross(b, np.ones_like(b)), rtol=1e-12)


def test_norms_and_orders() -> None:
    assert run(tf.math.reduce_euclidean_norm([[3.0, 4.0], [0.0, 0.0]], 1)).tolist() == [5, 0]
    assert run(tf.math.reduce_euclidean_norm([[3.0, 4.0]], keepdims=True)).tolist() == [[5]]
    values = {"up": [1, 2, 3], "level": [1, 1], "down": [2, 1], "one": [7]}
    strictly = {k: bool(run(tf.is_strictly_increasing(v))) for k, v in values.items()}
    assert strictly == {"up": True, "level": False, "down": False, "one": True}
    weakly = {k: bool(run(tf.math.is_non_decreasing(v))) for k, v in values.items()}
    assert weakly == {"up": True, "level": True, "down": False, "one": True}


def test_neighbours() -> None:
    got = run(tf.math.nextafter(tf.constant([1.0, 0.0], tf.float64), tf.constant([2.0, -1.0], tf.float64)))
    assert got.tolist() == [np.nextafter(1.0, 2.0), np.nextafter(0.0, -1.0)]


def test_derivatives_by_parameters() -> None:
    a, b = RNG.uniform(0.3, 40, 50), RNG.uniform(0.3, 40, 50)
    x, s = RNG.uniform(0.1, 0.9, 50), RNG.uniform(1.1, 9, 50)

    def slope(function: Callable[[np.ndarray], np.ndarray], at: np.ndarray) -> np.ndarray:
        near, far = (function(at + d) - function(at - d) for d in (2e-3 * (at > 0), 4e-3 * (at > 0)))
        return (8 * near - far) / (12 * 2e-3)

    at = [tf.constant(v) for v in (a, b, x, s)]
    got = run([*tf.gradients(tf.betainc(*at[:3]), at[:2]), tf.gradients(tf.zeta(at[3], at[0]), at[3])[0]])
    want = [
        slope(lambda v: special.betainc(v, b, x), a),
        slope(lambda v: special.betainc(a, v, x), b),
        slope(lambda v: special.zeta(v, a), s),
    ]
    for value, expected in zip(got, want, strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-9)
    narrow = tf.constant(s.astype(np.float32))
    np.testing.assert_allclose(run(tf.gradients(tf.zeta(narrow, a.astype(np.float32)), narrow)[0]), got[2], rtol=1e-4)


@pytest.mark.parametrize("x", [5e-324, -5e-324, 1e-310, -2e-308, 1e-300, 0.0, -0.0])
def test_lgamma_next_to_zero_is_what_the_c_library_says(x):
    with tf.Session() as sess:
        got = sess.run(tf.lgamma(tf.placeholder_with_default(np.array([x, 0.5]), [2])))
    np.testing.assert_allclose(got, [math.lgamma(x) if x else math.inf, math.lgamma(0.5)], rtol=1e-15)
