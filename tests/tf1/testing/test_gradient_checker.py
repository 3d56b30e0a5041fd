"""``tf.test.compute_gradient``: right gradients agree with differences, wrong ones are found."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest


def test_jacobians_of_a_product_are_the_matrix() -> None:
    a = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    with tf.Graph().as_default(), tf.Session():
        x = tf.constant(np.ones([2, 1]))
        y = tf.matmul(tf.constant(a), x)
        theoretical, numeric = tf.test.compute_gradient(x, [2, 1], y, [3, 1])
    np.testing.assert_allclose(theoretical, a.T)
    np.testing.assert_allclose(numeric, a.T, rtol=1e-9)


@pytest.mark.parametrize("function", [tf.tanh, tf.square, lambda x: x * tf.conj(x) * x])
def test_complex_numbers_are_pairs_of_reals(function) -> None:
    start = np.array([1 + 2j, 0.5 - 1j])
    with tf.Graph().as_default(), tf.Session():
        x = tf.constant(start)
        pair = tf.test.compute_gradient(x, [2], function(x), [2], x_init_value=start)
        assert pair[0].shape == (4, 4)
        assert tf.test.compute_gradient_error(x, [2], function(x), [2], x_init_value=start) < 1e-4


def test_a_wrong_gradient_is_found() -> None:
    @tf.custom_gradient
    def wrong(x):
        return tf.square(x), lambda dy: 3.0 * x * dy

    with tf.Graph().as_default(), tf.Session():
        x = tf.placeholder(tf.float64, [2])
        assert tf.test.compute_gradient_error(x, [2], tf.square(x), [2], [1.0, 2.0]) < 1e-6
        assert tf.test.compute_gradient_error(x, [2], wrong(x), [2], [1.0, 2.0]) == pytest.approx(2.0, abs=1e-6)


def test_lists_targets_and_feeds() -> None:
    with tf.Graph().as_default(), tf.Session():
        v = tf.Variable(2.0, dtype=tf.float64)
        k = tf.placeholder(tf.float64, [])
        a, b = tf.constant([1.0], tf.float64), tf.constant([3.0], tf.float64)
        found = tf.test.compute_gradient(
            [a, b],
            [[1], [1]],
            a * b * v * k,
            [1],
            [[1.0], [3.0]],
            init_targets=[v.initializer],
            extra_feed_dict={k: 5.0},
        )
    assert [float(t[0, 0]) for t, _ in found] == [30.0, 10.0]
    np.testing.assert_allclose([n[0, 0] for _, n in found], [30.0, 10.0], rtol=1e-9)


def test_the_gradient_of_an_empty_tensor_is_looked_at() -> None:
    """As TensorFlow, in its words."""

    def turned(x: tf.Tensor) -> tf.Tensor:
        return tf.custom_gradient(lambda x: (tf.identity(x), lambda dy: tf.transpose(dy)))(x)

    with tf.Graph().as_default(), tf.Session():
        x = tf.placeholder(tf.float32)
        found, numeric = tf.test.compute_gradient(x, (0, 3), tf.identity(x), (0, 3))
        assert found.shape == numeric.shape == (0, 0)
        with pytest.raises(ValueError, match=r"Empty gradient has wrong shape: expected \(0, 3\), got \(3, 0\)"):
            tf.test.compute_gradient_error(x, (0, 3), turned(x), (0, 3))


def test_bad_input_is_told() -> None:
    with tf.Graph().as_default():
        x = tf.constant([1.0])
        with pytest.raises(tf.errors.FailedPreconditionError, match="needs a default session"):
            tf.test.compute_gradient(x, [1], x, [1])
        with tf.Session():
            with pytest.raises(TypeError, match="neither floating nor complex"):
                tf.test.compute_gradient(tf.constant([1]), [1], x, [1])
            with pytest.raises(ValueError, match="another shape than x_shape"):
                tf.test.compute_gradient(x, [1], x, [1], [1.0, 2.0])
