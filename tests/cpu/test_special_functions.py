"""Special functions: values that mpmath gave to 50 digits, arguments far out, and when SciPy is loaded for them."""

import subprocess
import sys

import graphdock as tf
import numpy as np
import pytest
from scipy import special


def _run(*fetches):
    with tf.Session() as sess:
        return sess.run(list(fetches))


def _slope(a, x):
    return tf.gradients(tf.igamma(a, x), a)[0]


#: Arguments and the value. No library that kernels may call stands behind these.
VALUES = {
    tf.lgamma: [
        (1e-20, 46.051701859880914),
        (0.25, 1.2880225246980774),
        (1.0625, -0.03295710029357782),
        (2.5, 0.2846828704729192),
        (37.5, 97.52177522288821),
        (1e10, 220258509288.81058),
        (-0.75, 1.5757045971498584),
        (-20.5, -42.70719597482576),
    ],
    tf.digamma: [
        (1e-10, -10000000000.577215),
        (0.25, -4.2274535333762655),
        (1.5, 0.03648997397857652),
        (40.0, 3.676327374034843),
        (1e10, 23.025850929890456),
        (-0.75, -2.894120200042932),
        (-20.375, 4.339938134101686),
        (-2.999999999, -999999916.0035182),
    ],
    tf.zeta: [
        (1.0625, 1.0, 16.58174764665502),
        (2.0, 0.25, 17.19732915450711),
        (2.5, 3.0, 0.1647105619542803),
        (12.0, 0.5, 4096.007724435796),
        (3.0, -4.25, -61.99063218366379),
        (2.0, 1000.5, 0.0009999999166666958),
    ],
    tf.polygamma: [
        (0.0, 2.5, 0.7031566406452432),
        (1.0, 0.25, 17.19732915450711),
        (2.0, -0.5, -0.82879664423432),
        (3.0, 40.0, 3.24414001515635e-05),
        (10.0, 1.5, -42108.85876897549),
    ],
    tf.igamma: [
        (0.5, 0.25, 0.5204998778130465),
        (2.5, 1.0, 0.15085496391539036),
        (20.0, 12.0, 0.021279769383026628),
        (100.0, 110.0, 0.8417213299399129),
        (0.001, 0.5, 0.9994399333435292),
        (50000.0, 50200.0, 0.814533642938086),
        (1e6, 998000.0, 0.022696114006736802),
        (3.0, 30.0, 0.9999999999549898),
    ],
    tf.igammac: [
        (0.5, 0.25, 0.4795001221869535),
        (2.5, 30.0, 1.215456977718304e-11),
        (20.0, 12.0, 0.9787202306169733),
        (100.0, 130.0, 0.002750408367306526),
        (1e-10, 1e-10, 2.244863524002411e-09),
        (50000.0, 50200.0, 0.185466357061914),
        (1e6, 1002000.0, 0.022804095898769864),
    ],
    _slope: [
        (0.5, 0.25, -0.797947316783223),
        (2.5, 1.0, -0.1800996069540415),
        (2.5, 9.0, -0.004741679548193881),
        (20.0, 30.0, -0.010966166487459576),
        (100.0, 95.0, -0.035991134792831114),
        (0.01, 2.0, -0.05043446769316511),
    ],
    tf.betainc: [
        (0.5, 0.25, 0.125, 0.13935328411910122),
        (2.5, 1.5, 0.75, 0.6666666666666666),
        (30.0, 2.0, 0.5, 1.4901161193847656e-08),
        (5.0, 100.0, 0.0625, 0.7853104805849315),
        (1000.0, 1200.0, 0.4375, 0.053917059610413785),
    ],
    tf.math.bessel_i0e: [
        (0.25, 0.7910171621397194),
        (-3.0, 0.2430003541618254),
        (7.875, 0.14460728463168582),
        (30.0, 0.0731459464822373),
        (1e6, 0.00039894233026924577),
    ],
    tf.math.bessel_i1e: [
        (0.25, 0.09811262869736824),
        (-3.0, -0.19682671329730086),
        (7.875, 0.13508694525737153),
        (30.0, 0.07191633059864755),
        (1e-05, 4.999950000312499e-06),
    ],
    tf.math.ndtri: [
        (1e-30, -11.464024688443615),
        (0.001, -3.0902323061678136),
        (0.25, -0.6744897501960817),
        (0.625, 0.31863936396437514),
        (0.96875, 1.8627318674216515),
    ],
    tf.math.erfinv: [
        (1e-10, 8.862269254527581e-11),
        (0.25, 0.2253120550121781),
        (-0.75, -0.8134198475976185),
        (0.96875, 1.523019401996956),
        (-0.9999, -2.75106390571208),
    ],
    tf.erf: [
        (1e-10, 1.1283791670955126e-10),
        (0.25, 0.27632639016823696),
        (-0.75, -0.7111556336535151),
        (2.5, 0.999593047982555),
        (-4.0, -0.9999999845827421),
    ],
    tf.erfc: [
        (0.25, 0.7236736098317631),
        (-0.75, 1.7111556336535152),
        (2.5, 0.0004069520174449589),
        (9.0, 4.13703174651381e-37),
        (25.0, 8.300172571196523e-274),
    ],
}


#: Relative errors.
ERRORS = {"float64": 2e-13, "float32": 1e-6, "bfloat16": 8e-3, "float16": 1e-3}
CASES = [
    (f, t) for f in VALUES for t in ERRORS if f not in (tf.betainc, tf.zeta) or t.startswith(("float32", "float64"))
]


@pytest.mark.parametrize(("function", "dtype"), CASES, ids=lambda v: getattr(v, "__name__", v).strip("_"))
def test_values(function, dtype):
    *arguments, want = np.array(VALUES[function]).T
    kind = tf.as_dtype(dtype).np
    if dtype != "float64":  # arguments that are exact in the type, values that are normal numbers of it
        with np.errstate(over="ignore"):
            exact = np.all([a.astype(kind) == a for a in arguments], 0)
        chosen = exact & (np.abs(want) < 6e4) & (np.abs(want) > 1e-4)
        arguments, want = [a[chosen] for a in arguments], want[chosen]
    assert len(want) > 1
    (got,) = _run(function(*(tf.constant(a, dtype) for a in arguments)))
    assert got.dtype == kind
    np.testing.assert_allclose(got.astype(np.float64), want, ERRORS[dtype])


#: By a: Q(a, x) for x of PEAK standard deviations off a, integrated by mpmath.
PEAK = np.array([-4.0, -1.0, 0.0, 1e-3, 2.0, 4.0])
UPPER = {
    100000.0: [
        0.999970394815819,
        0.8413451502620919,
        0.4995794778896348,
        0.4991805366389578,
        0.022920595778153613,
        3.383811638688209e-05,
    ],
    3000000.0: [
        0.9999687134150226,
        0.841344759516859,
        0.49992322352219754,
        0.499524281434507,
        0.02278129464479268,
        3.205925931243143e-05,
    ],
    45000000.0: [
        0.9999684283973512,
        0.8413447469648982,
        0.49998017639870695,
        0.4995812342151729,
        0.022758179846325673,
        3.177110505917529e-05,
    ],
    100000000.0: [
        0.9999683956228838,
        0.8413447464718562,
        0.49998670192398587,
        0.49958775973035435,
        0.022755530774855204,
        3.173820736880889e-05,
    ],
    1000000000000.0: [
        0.999968329427313,
        0.8413447460685832,
        0.4999998670192399,
        0.4996009248055283,
        0.022750185939118726,
        3.1671910989289696e-05,
    ],
}


@pytest.mark.parametrize("a", UPPER)
def test_the_incomplete_gamma_functions_hold_near_their_peak(a):
    x, want = a + PEAK * np.sqrt(a), np.array(UPPER[a])
    lower, upper = _run(tf.igamma(np.full(6, a), x), tf.igammac(np.full(6, a), x))
    np.testing.assert_allclose(upper, want, 1e-9)
    np.testing.assert_allclose(lower, 1 - want, 1e-9)
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


PROGRAM = """\
import sys

import graphdock as tf

x = tf.constant([1.0, 2.0])
y = tf.placeholder(tf.float32, [None, 3])
with tf.Session() as sess:
    sess.run([tf.erf(x), tf.nn.relu(tf.matmul(y, tf.ones([3, 2])))], {y: [[1, 2, 3]]})
    print("scipy" in sys.modules)
    sess.run(tf.digamma(x))
    print("scipy.special" in sys.modules, "scipy.linalg" in sys.modules)
"""


def test_scipy_is_loaded_for_the_first_function_that_is_its():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "False"]
