"""Gradients of one's own, second derivatives, and overrides, as TensorFlow 1 has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock.gradients import registry


@pytest.fixture(autouse=True)
def graph() -> Iterator[Any]:
    state = registry.snapshot()
    with tf.Graph().as_default() as g:
        yield g
    registry.restore(state)


def run(fetch: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetch, feed)


@tf.custom_gradient
def log1pexp(x: Any) -> Any:
    e = tf.exp(x)
    return tf.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))


def test_the_gradient_is_what_the_function_says() -> None:
    x = tf.constant([0.0, 100.0])
    y = log1pexp(x)
    found = run([y, *tf.gradients(y, x)])
    np.testing.assert_allclose(found[0], [np.log(2), np.inf])
    np.testing.assert_allclose(found[1], [0.5, 1.0])
    assert log1pexp.__name__ == "log1pexp"


def test_it_has_a_gradient_itself_and_works_in_bodies() -> None:
    x = tf.placeholder(tf.float32, [])
    slope = tf.gradients(log1pexp(x) * 3.0, x)[0]
    curve = tf.gradients(slope, x)[0]
    _, looped = tf.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, log1pexp(y)), [0, x])
    chosen = tf.cond(x > 5, lambda: x, lambda: log1pexp(x))
    s = 1 / (1 + np.exp(-0.3))
    inner = np.log1p(np.exp(0.3))
    want = [3 * s, 3 * s * (1 - s), s / (1 + np.exp(-inner)), s]
    np.testing.assert_allclose(
        run([slope, curve, tf.gradients(looped, x)[0], tf.gradients(chosen, x)[0]], {x: 0.3}), want, rtol=1e-5
    )


def test_several_arguments_and_results() -> None:
    @tf.custom_gradient
    def f(a: Any, b: Any, k: Any) -> Any:
        def grad(of_product: Any, of_k: Any, of_sum: Any) -> Any:
            assert of_k is None
            return of_product * 10.0 + of_sum, [of_sum[0], of_sum[0] * 7.0], None

        return {"sum": tf.stack([a, a]) + b, "rest": (a * a, k)}, grad

    a, b, k = tf.constant(2.0), tf.constant([3.0, 4.0]), tf.constant(5)
    made = f(a, b, k)
    assert set(made) == {"sum", "rest"} and isinstance(made["rest"], tuple)
    assert run([made["rest"], made["sum"]])[0] == (4.0, 5)
    np.testing.assert_array_equal(run(tf.gradients(made["sum"], b, [tf.constant([2.0, 3.0])])[0]), [2, 14])
    with pytest.raises(ValueError, match="shape"):
        tf.gradients(made["sum"], a)
    assert run(tf.gradients(tf.custom_gradient(lambda a, k: (a * 1.0, lambda d: (d * 9.0, None)))(a, k), a)) == [9.0]


def test_variables_are_handed_to_who_takes_them() -> None:
    w = tf.Variable(3.0, name="w")
    other = tf.Variable(7.0, trainable=False)

    @tf.custom_gradient
    def scaled(x: Any) -> Any:
        def grad(dy: Any, variables: Any = None) -> Any:
            assert variables == [w]
            return dy * 100.0, [dy * 1000.0]

        return x * w * other, grad

    x = tf.constant(2.0)
    y = scaled(x)
    assert run([y, *tf.gradients(y, [x, w])]) == [42.0, 100.0, 1000.0]

    @tf.custom_gradient
    def careless(x: Any) -> Any:
        return x * w, lambda dy: dy

    with pytest.raises(TypeError, match="'variables'"):
        careless(x)


def test_mistakes_are_named() -> None:
    x = tf.constant(1.0)
    with pytest.raises(ValueError, match="must return a result and a function"):
        tf.custom_gradient(lambda x: x)(x)
    y = tf.custom_gradient(lambda a, b: (a * b, lambda dy: dy))(x, x)
    with pytest.raises(ValueError, match="wrong number"):
        tf.gradients(y, x)


def test_the_map_of_overrides() -> None:
    @tf.RegisterGradient("Clipped")
    def clipped(op: Any, grad: Any) -> Any:
        return tf.clip_by_value(grad, -0.5, 0.5)

    x = tf.constant([2.0, 0.1])
    with tf.get_default_graph().gradient_override_map({"Identity": "Clipped"}):
        y = tf.identity(x)
    z = tf.identity(x)
    np.testing.assert_allclose(run(tf.gradients([y * y, z * z], x)[0]), [4.5, 0.4], rtol=1e-6)


def test_hessian_of_a_quadratic_form() -> None:
    a = np.array([[1.0, 2.0, -1.0], [0.5, 3.0, 0.25], [4.0, 0.0, 1.0]], np.float32)
    x = tf.placeholder(tf.float32, [3])
    y = tf.reduce_sum(tf.matmul(tf.matmul(x[None, :], a), x[:, None]))
    [h] = tf.hessians(y, x)
    assert h.shape.as_list() == [3, 3]
    np.testing.assert_allclose(run(h, {x: [1.0, 2.0, 3.0]}), a + a.T, rtol=1e-6)


def test_hessians_of_matrices_and_of_several() -> None:
    x, s = tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.Variable(2.0)
    [of_x, of_s] = tf.hessians(tf.reduce_sum(x * x * x) * s * s, [x, s])
    assert of_x.shape.as_list() == [2, 2, 2, 2] and of_s.shape.as_list() == []
    found_x, found_s = run([of_x, of_s])
    np.testing.assert_allclose(found_x.reshape(4, 4), np.diag([24.0, 48.0, 72.0, 96.0]), rtol=1e-6)
    assert found_s == pytest.approx(200.0)
    with pytest.raises(ValueError, match="do not depend"):
        tf.hessians(x * 2.0, tf.constant(1.0))


def test_hessian_of_an_unknown_shape() -> None:
    x = tf.placeholder(tf.float32, [None])
    [h] = tf.hessians(tf.reduce_prod(x), x)
    np.testing.assert_allclose(run(h, {x: [2.0, 3.0, 5.0]}), [[0, 5, 3], [5, 0, 2], [3, 2, 0]], rtol=1e-5)
