"""Complex tensors: what is public, which dtypes result, and gradients with their conjugations."""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np
import pytest

Z = np.array([1 + 2j, -3 + 0.5j, -0.25 - 1j, 4 + 0j])
PARTS = {np.complex64: np.float32, np.complex128: np.float64}


def run(*values: Any) -> Any:
    with tf.Session() as session:
        return session.run(values[0] if len(values) == 1 else list(values))


@pytest.mark.parametrize("dtype", PARTS)
@pytest.mark.parametrize(
    ("ours", "theirs"), [(tf.real, np.real), (tf.imag, np.imag), (tf.abs, np.abs), (tf.angle, np.angle)]
)
def test_parts_are_real(ours: Any, theirs: Any, dtype: Any) -> None:
    got = run(ours(tf.constant(Z.astype(dtype))))
    assert got.dtype == PARTS[dtype]
    np.testing.assert_allclose(got, theirs(Z), rtol=1e-6)


def test_real_tensors_are_taken_too() -> None:
    x = tf.constant([-2.0, 3.0])
    assert tf.real(x) is x and tf.conj(x) is x
    np.testing.assert_array_equal(run(tf.imag(x)), [0, 0])
    np.testing.assert_allclose(run(tf.angle(x)), [np.pi, 0])
    with pytest.raises(TypeError, match="number"):
        tf.conj(tf.constant([True]))


def test_complex_is_made_of_its_parts() -> None:
    z = tf.complex(tf.constant([1.0, 2.0]), tf.constant(3.0))
    assert z.dtype == tf.complex64
    np.testing.assert_array_equal(run(z), [1 + 3j, 2 + 3j])
    assert tf.complex(np.ones(2), np.ones(2)).dtype == tf.complex128
    with pytest.raises(TypeError, match="float32 or float64"):
        tf.complex(tf.constant(1), tf.constant(2))


def test_arithmetic_is_numpys() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=(2, 3, 3)) + 1j * rng.normal(size=(2, 3, 3)) for _ in "ab")
    x, y = tf.constant(a), tf.constant(b)
    got = run(x + y, x - y, x * y, x / y, -x, x**2, x @ y, abs(x), tf.exp(x), tf.tanh(y), tf.sqrt(x), tf.pow(x, y))
    want = [a + b, a - b, a * b, a / b, -a, a**2, a @ b, abs(a), np.exp(a), np.tanh(b), np.sqrt(a), a**b]
    for mine, right in zip(got, want, strict=True):
        np.testing.assert_allclose(mine, right, rtol=1e-12)
    sums = run(tf.reduce_sum(x, 1), tf.reduce_mean(x), tf.reduce_prod(x, [0, 2]), tf.cumsum(x, 1))
    for mine, right in zip(sums, [a.sum(1), a.mean(), a.prod((0, 2)), a.cumsum(1)], strict=True):
        np.testing.assert_allclose(mine, right, rtol=1e-12)
    assert run(tf.equal(x, x)).all() and not run(tf.not_equal(x, x)).any()


def test_transposes_conjugate() -> None:
    z = np.arange(6).reshape(2, 3) * (1 + 2j)
    x = tf.constant(z)
    for got in run(tf.transpose(x, conjugate=True), tf.matrix_transpose(x, conjugate=True), tf.linalg.adjoint(x)):
        np.testing.assert_array_equal(got, z.conj().T)


def test_casts_take_the_real_part() -> None:
    x = tf.constant(Z)
    np.testing.assert_array_equal(run(tf.cast(x, tf.float64)), Z.real)
    np.testing.assert_array_equal(run(tf.cast(x, tf.int32)), Z.real.astype(int))
    np.testing.assert_array_equal(run(tf.cast(tf.constant([1, 2]), tf.complex64)), [1, 2])
    np.testing.assert_array_equal(run(tf.cast(tf.constant([0, 1j]), tf.bool)), [False, True])


def test_gradients_are_conjugated_as_in_tensorflow() -> None:
    """What TensorFlow 1.15 gives for the same graph."""
    z = tf.constant([1 + 2j, -1 + 0.5j])
    (size,) = tf.gradients(tf.reduce_sum(tf.abs(z)), [z])
    np.testing.assert_allclose(run(size), run(tf.sign(z)), rtol=1e-12)
    (square,) = tf.gradients(tf.square(z), [z], [tf.constant([1j, 1 + 1j])])
    np.testing.assert_allclose(run(square), [1j * 2 * (1 - 2j), (1 + 1j) * 2 * (-1 - 0.5j)], rtol=1e-12)
    (through,) = tf.gradients(tf.real(z * z), [z])
    np.testing.assert_allclose(run(through), 2 * np.conj([1 + 2j, -1 + 0.5j]), rtol=1e-12)
    (imaginary,) = tf.gradients(tf.imag(z), [z])
    np.testing.assert_allclose(run(imaginary), [1j, 1j])
    x = tf.constant([1.0, 2.0])
    (back,) = tf.gradients(tf.abs(tf.complex(x, 2 * x)), [x])
    np.testing.assert_allclose(run(back), [5**0.5] * 2, rtol=1e-6)


def test_a_complex_y_needs_its_gradient() -> None:
    z = tf.constant([1j])
    with pytest.raises(TypeError, match="grad_ys"):
        tf.gradients(tf.square(z), [z])


def test_second_order() -> None:
    z = tf.Variable(np.array([1 + 2j]))
    loss = tf.reduce_sum(tf.real(tf.exp(z)))
    (first,) = tf.gradients(loss, [z])
    (second,) = tf.gradients(tf.real(first), [z])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_allclose(session.run(second), np.exp(np.conj([1 + 2j])), rtol=1e-12)


A, B = np.array([1 + 2j, 3 - 1j, 0, 0, 1j]), np.array([2 - 2j, 1j, 0, 1, 1])
G = np.array([1, 1j, 1 + 1j, 2, 3])


def _no_nan(formula: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.where(A == 0, 0, formula())


@pytest.mark.parametrize(
    ("name", "value", "to_a", "to_b"),
    [
        ("squared_difference", lambda: abs(A - B) ** 2, None, None),
        ("xdivy", lambda: _no_nan(lambda: A / B), lambda: 1 / B, lambda: -A / B**2),
        ("xlogy", lambda: _no_nan(lambda: A * np.log(B)), lambda: np.log(B), lambda: A / B),
    ],
)
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_ops_where_zero_wins(name: str, value: Any, to_a: Any, to_b: Any, dtype: Any) -> None:
    """NumPy's values; gradients take the conjugate of the derivative."""
    a, b = tf.constant(A.astype(dtype)), tf.constant(B.astype(dtype))
    z = getattr(tf.math, name)(a, b)
    found, *slopes = run(z, *tf.gradients(z, [a, b], [tf.constant(G.astype(dtype))]))
    assert found.dtype == dtype
    np.testing.assert_allclose(found, value(), rtol=1e-5, atol=1e-6)
    if to_a is not None:
        for slope, derivative in zip(slopes, (to_a, to_b), strict=True):
            np.testing.assert_allclose(slope, _no_nan(lambda d=derivative: G * np.conj(d())), rtol=1e-5, atol=1e-6)


def test_a_product_with_a_complex_zero_is_zero() -> None:
    a, b = tf.constant([1 + 2j, np.nan, np.inf]), tf.constant([2 - 2j, 0, 0])
    z = tf.math.multiply_no_nan(a, b)
    found, slope = run(z, tf.gradients(z, [a], [tf.ones_like(a)])[0])
    np.testing.assert_allclose(found, [6 + 2j, 0, 0])
    np.testing.assert_allclose(slope, [2 + 2j, 0, 0])


def test_complex_powers_of_zero_are_those_of_c() -> None:
    x = tf.constant(np.array([0, 0, 0, 1 + 1j]))
    found = run(tf.pow(x, tf.constant(np.array([0, -1, 2, 0], complex))))
    assert np.isnan(found[0].real) and np.isnan(found[0].imag) and found[1].real == np.inf
    np.testing.assert_array_equal(found[2:], [0, 1])
