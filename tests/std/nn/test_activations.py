"""Activations of several ops, and dropout, against their formulas and TensorFlow 1's values."""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np
import pytest
import scipy.special


def run(fetches: Any, feeds: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(fetches, feeds)


def test_crelu_joins_both_parts() -> None:
    assert run(tf.nn.crelu([[1.0, -2.0]])).tolist() == [[1, 0, 0, 2]]
    assert run(tf.nn.crelu([[1.0, -2.0]], axis=0)).tolist() == [[1, 0], [0, 2]]
    assert tf.nn.crelu(tf.placeholder(tf.float32, [None, 3])).shape.as_list() == [None, 6]


def test_swish_and_the_logarithm_of_the_logistic_function() -> None:
    x = np.array([-800.0, -30.0, -1.0, 0.0, 2.0, 50.0])
    at = tf.constant(x)
    swish, log, slope = run([tf.nn.swish(at), tf.log_sigmoid(at), tf.gradients(tf.math.log_sigmoid(at), at)[0]])
    np.testing.assert_allclose(swish, x * scipy.special.expit(x), rtol=1e-12)
    np.testing.assert_allclose(log, scipy.special.log_expit(x), rtol=1e-12)
    np.testing.assert_allclose(slope, scipy.special.expit(-x), rtol=1e-12)


def test_zero_fraction() -> None:
    got = run([tf.nn.zero_fraction([0, 1, 0, 3]), tf.nn.zero_fraction(tf.zeros([0]))])
    assert got[0] == 0.5 and got[0].dtype == np.float32 and np.isnan(got[1])


def test_the_poisson_loss_is_tensorflows() -> None:
    targets, rates = tf.constant([0.0, 1.0, 2.0, 5.0]), tf.constant([0.1, 0.2, 0.3, 0.4])
    full = tf.nn.log_poisson_loss(targets, rates, True)
    np.testing.assert_allclose(run(full), [1.105171, 1.0214027, 1.4016653, 4.2626719], rtol=1e-6)
    short, slope = run([tf.nn.log_poisson_loss(targets, rates), tf.gradients(full, targets)[0]])
    np.testing.assert_allclose(short, np.exp([0.1, 0.2, 0.3, 0.4]) - np.array([0, 0.2, 0.6, 2.0]), rtol=1e-6)
    assert np.isfinite(slope).all()
    with pytest.raises(ValueError, match="the same shape"):
        tf.nn.log_poisson_loss(tf.zeros([2]), tf.zeros([3]))


@pytest.mark.parametrize("dtype", [tf.bfloat16, tf.float16, tf.float32])
@pytest.mark.parametrize("keep", [0.001, 0.01, 0.999])
def test_dropout_keeps_its_share_in_every_dtype(dtype: Any, keep: float) -> None:
    x = tf.ones([200, 1000], dtype)
    kept, by_tensor = (tf.nn.dropout(x, k, seed=1) for k in (keep, tf.constant(keep)))
    assert by_tensor.shape.as_list() == [200, 1000] and by_tensor.dtype == dtype
    for value in run([kept, by_tensor]):
        share = np.count_nonzero(value) / value.size
        assert abs(share - keep) < 5 * np.sqrt(keep * (1 - keep) / value.size)


def test_dropout_keeps_a_static_shape() -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    assert tf.nn.dropout(x, tf.placeholder(tf.float32, [])).shape.as_list() == [None, 3]
    assert tf.nn.dropout(x, 0.5, noise_shape=[None, 1]).shape.as_list() == [None, 3]


def test_exponential_units_at_zero_are_tensorflows() -> None:
    x = tf.constant([-1.0, 0.0, 2.0])
    for function, first, second in (
        (tf.nn.elu, [0.3678794, 1.0, 1.0], [0.3678794, 0.0, 0.0]),
        (tf.nn.selu, [0.6467686, 1.050701, 1.050701], [0.6467686, 0.0, 0.0]),
    ):
        (slope,) = tf.gradients(function(x), x)
        got = run([slope, tf.gradients(slope, x)[0]])
        np.testing.assert_allclose(got, [first, second], rtol=1e-6)


def test_leaky_relu_takes_integers() -> None:
    got = run(tf.nn.leaky_relu(tf.constant([-1, 2])))
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, [-0.2, 2])


def test_results_have_tensorflows_names() -> None:
    with tf.Graph().as_default():
        x = tf.ones([2, 3])
        made = [*tf.nn.moments(x, [0], keep_dims=True), tf.nn.l2_normalize(x, 0, name="unit"), tf.log_sigmoid(x)]
        made += [tf.nn.zero_fraction(x), *tf.nn.sufficient_statistics(x, [0], name="s")[1:3]]
        want = ["moments/mean:0", "moments/variance:0", "unit:0", "LogSigmoid:0", "zero_fraction/fraction:0"]
        assert [t.name for t in made] == [*want, "s/mean_ss:0", "s/var_ss:0"]
    with pytest.raises(ValueError, match="two names"):
        tf.nn.moments(tf.ones([2]), [0], keep_dims=True, keepdims=True)


@pytest.mark.parametrize("nothing", [{"keep_prob": 1e-10}, {"keep_prob": 0.0}, {"rate": 1.0}], ids=str)
def test_dropout_that_keeps_nothing_is_zero(nothing: dict[str, float]) -> None:
    (name, number), x = next(iter(nothing.items())), np.array([[-3.0, 0.0, 1e5]], np.float32)
    with tf.Graph().as_default(), tf.Session() as sess:
        a = tf.constant(x)
        y = tf.nn.dropout(a, **{name: tf.constant(number)}, seed=1)
        assert [v.tolist() for v in sess.run([y, tf.gradients(y, a)[0]])] == [[[0, 0, 0]], [[0, 0, 0]]]


def test_dropout_scales_by_one_by_the_probability_itself() -> None:
    """``1 - (1 - p)`` is another number than ``p`` where p is small."""
    p = 1e-5
    with tf.Graph().as_default(), tf.Session() as sess:
        drawn = sess.run([tf.nn.dropout(tf.ones([500_000]), k, seed=1) for k in (p, tf.constant(p))])
    for y in drawn:
        np.testing.assert_allclose(y[y > 0], 1 / p, rtol=1e-6)
        assert (y > 0).any()


X = [-1.0, 0.0, 2.0, np.nan, np.inf, -np.inf]


def test_the_gradient_of_a_leaky_relu_is_an_op_with_a_gradient_to_both() -> None:
    """TensorFlow 2.21's answers."""
    with tf.Graph().as_default():
        x, arriving = tf.constant(X), tf.constant([1.0, np.nan, np.inf, 3.0, 4.0, 5.0])
        first = tf.gradients(tf.nn.leaky_relu(x, 0.5), x, arriving)[0]
        assert first.op.type == "LeakyReluGrad"
        np.testing.assert_array_equal(run(first), [0.5, np.nan, np.inf, 1.5, 4, 2.5])
        np.testing.assert_array_equal(run(tf.gradients(first, x)[0]), np.zeros(6))
        np.testing.assert_array_equal(run(tf.gradients(first, arriving)[0]), [0.5, 0.5, 1, 0.5, 1, 0.5])
        np.testing.assert_array_equal(run(tf.nn.leaky_relu(x, np.inf)), [-np.inf, np.nan, 2, np.nan, np.inf, -np.inf])


@pytest.mark.parametrize(("name", "slope"), [("elu", 1.0), ("selu", 1.0507009873554805)])
def test_second_gradients_of_exponential_units_do_not_meet_what_is_not_finite(name: str, slope: float) -> None:
    with tf.Graph().as_default():
        x = tf.constant([3.0, np.nan, np.inf, -np.inf])
        first = tf.gradients(tf.square(getattr(tf.nn, name)(x)), x)[0]
        second = run(tf.gradients(first, x)[0])
    np.testing.assert_allclose(second, [2 * slope**2] * 3 + [0], rtol=1e-6)
