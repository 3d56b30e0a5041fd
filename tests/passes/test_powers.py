"""Powers by small constants are what TensorFlow makes of them: products, roots, quotients."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest

_NUMBERS = [-0.0, 0.0, -np.inf, np.inf, np.nan, -2.0, 1e-30, 1e30, 3.3]
#: Exponent -> what TensorFlow 2.15 gives for these, of a placeholder and a constant.
_POWERS = {
    2.0: [0.0, 0.0, np.inf, np.inf, np.nan, 4.0, 0.0, np.inf, 10.889999389648438],
    3.0: [-0.0, 0.0, -np.inf, np.inf, np.nan, -8.0, 0.0, np.inf, 35.93699645996094],
    4.0: [0.0, 0.0, np.inf, np.inf, np.nan, 16.0, 0.0, np.inf, 118.59209442138672],
    0.5: [-0.0, 0.0, np.nan, np.inf, np.nan, np.nan, 1.0000000036274937e-15, 999999986991104.0, 1.8165901899337769],
    -0.5: [-np.inf, np.inf, np.nan, 0.0, np.nan, np.nan, 999999986991104.0, 1.0000000036274937e-15, 0.550481915473938],
    -1.0: [-np.inf, np.inf, -0.0, 0.0, np.nan, -0.5, 9.999999394896025e29, 1.0000000031710769e-30, 0.3030303120613098],
}


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def ops(fetches, feed=None, **passes):
    with tf.Session(config=tf.SessionConfig(passes=passes)) as session:
        return [n.op for n in session.explain(fetches, feed).plan.graph.nodes if n.verb != "constant"]


@pytest.mark.parametrize("exponent", _POWERS)
def test_numbers_are_tensorflows(exponent):
    x = tf.placeholder(tf.float32, [None])
    y = tf.pow(x, tf.constant(exponent))
    assert "Pow" not in ops(y, {x: _NUMBERS}) and "Pow" in ops(y, {x: _NUMBERS}, powers=False)
    with tf.Session() as session, np.errstate(all="ignore"):
        got = session.run(y, {x: np.array(_NUMBERS, np.float32)})
    np.testing.assert_array_max_ulp(got, np.array(_POWERS[exponent], np.float32), 2)
    assert np.signbit(got[:2]).tolist() == np.signbit(_POWERS[exponent][:2]).tolist()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "complex64", "int32"])
def test_a_cube_is_two_products_and_its_gradient_takes_no_logarithm(dtype):
    x = tf.placeholder(dtype, [None, 3])
    y = x**3
    fetches = [y] if dtype == "int32" else [y, *tf.gradients(y, x, tf.ones_like(x))]
    feed = {x: np.array([[1, -2, 3]])}
    assert {"Pow", "Log"}.isdisjoint(ops(fetches, feed))
    assert ops([y, x * tf.constant(2, dtype)], feed).count("Mul") == 3
    with tf.Session() as session:
        got = session.run(fetches, feed)
    assert got[0].tolist() == [[1, -8, 27]] and got[1:] == [] or got[1].tolist() == [[3, 12, 27]]


def test_what_two_powers_have_in_common_is_computed_once():
    x = tf.placeholder(tf.float32, [3])
    assert ops([x**2, x**3, x**4]) == ["Mul", "Mul", "Square"]


@pytest.mark.parametrize(
    "exponent", [np.float32([[2.0], [2.0]]), np.float32([2.0, 2.0, 3.0]), np.float32(2.5), np.float32(1e30)]
)
def test_constants_that_stretch_differ_or_are_other_numbers_stay(exponent):
    x = tf.placeholder(tf.float32, [3])
    y = tf.pow(x, exponent)
    assert "Pow" in ops(y)
    with tf.Session() as session:
        got = session.run(y, {x: [0.5, 0.25, 0.75]})
    np.testing.assert_allclose(got, np.float32([0.5, 0.25, 0.75]) ** exponent, rtol=1e-6)


def test_a_constant_of_the_same_shape_and_powers_of_powers_in_bodies():
    x = tf.placeholder(tf.float32, [3])
    y = tf.cond(x[0] > 0.0, lambda: tf.pow(tf.pow(x, np.float32([2.0, 2.0, 2.0])), 3.0), lambda: x)
    with tf.Session() as session:
        plan = session.explain(y, {x: [1.0, 2.0, 3.0]}).plan
        assert not [n for level in plan.graph.all_graphs() for n in level.nodes if n.op == "Pow"]
        assert session.run(y, {x: [1.0, 2.0, 3.0]}).tolist() == [1.0, 64.0, 729.0]


def test_integers_to_negative_powers_are_still_an_error():
    x = tf.placeholder(tf.int32, [2])
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError):
        session.run(tf.pow(x, -1), {x: [1, 2]})
