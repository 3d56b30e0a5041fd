"""Learning-rate schedules against their formulas in Python, and moving averages."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import graphdock as tf
import numpy as np
import pytest


def restarts(n: int, length: int, longer: int, lower: float, alpha: float) -> float:
    """Warm restarts, by walking from one to the next."""
    height = 1.0
    while n >= length:
        n, length, height = n - length, length * longer, height * lower
    return 0.5 * ((1 - alpha) * height * 0.5 * (1 + math.cos(math.pi * n / length)) + alpha)


def line(n: int, periods: float, alpha: float, beta: float) -> float:
    n = min(n, 20)
    return 0.5 * ((alpha + 1 - n / 20) * 0.5 * (1 + math.cos(2 * math.pi * periods * n / 20)) + beta)


SCHEDULES: dict[str, tuple[Callable[[Any], Any], Callable[[int], float]]] = {
    "exponential": (lambda s: tf.train.exponential_decay(0.5, s, 10, 0.8), lambda n: 0.5 * 0.8 ** (n / 10)),
    "staircase": (
        lambda s: tf.train.exponential_decay(0.5, s, 10, 0.8, staircase=True),
        lambda n: 0.5 * 0.8 ** (n // 10),
    ),
    "natural": (lambda s: tf.train.natural_exp_decay(0.5, s, 10, 0.8), lambda n: 0.5 * math.exp(-0.8 * n / 10)),
    "inverse": (lambda s: tf.train.inverse_time_decay(0.5, s, 10, 0.8), lambda n: 0.5 / (1 + 0.8 * n / 10)),
    "polynomial": (
        lambda s: tf.train.polynomial_decay(0.5, s, 20, 0.1, power=2.0),
        lambda n: 0.4 * (1 - min(n, 20) / 20) ** 2 + 0.1,
    ),
    "cycle": (
        lambda s: tf.train.polynomial_decay(0.5, s, 20, 0.1, cycle=True),
        lambda n: 0.4 * (1 - n / (20 * max(1, math.ceil(n / 20)))) + 0.1,
    ),
    "cosine": (
        lambda s: tf.train.cosine_decay(0.5, s, 20, alpha=0.1),
        lambda n: 0.5 * (0.9 * 0.5 * (1 + math.cos(math.pi * min(n, 20) / 20)) + 0.1),
    ),
    "restarts": (
        lambda s: tf.train.cosine_decay_restarts(0.5, s, 5, t_mul=2.0, m_mul=0.8, alpha=0.1),
        lambda n: restarts(n, 5, 2, 0.8, 0.1),
    ),
    "restarts_alike": (
        lambda s: tf.train.cosine_decay_restarts(0.5, s, 5, t_mul=1.0, m_mul=0.9),
        lambda n: restarts(n, 5, 1, 0.9, 0.0),
    ),
    "linear_cosine": (
        lambda s: tf.train.linear_cosine_decay(0.5, s, 20, 1.5, 0.1, 0.01),
        lambda n: line(n, 1.5, 0.1, 0.01),
    ),
    "noiseless": (
        lambda s: tf.train.noisy_linear_cosine_decay(0.5, s, 20, initial_variance=0.0, alpha=0.1),
        lambda n: line(n, 0.5, 0.1, 0.001),
    ),
    "piecewise": (
        lambda s: tf.train.piecewise_constant(s, [10, 20], [1.0, 0.5, 0.25]),
        lambda n: 1.0 if n <= 10 else 0.5 if n <= 20 else 0.25,
    ),
}


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_schedule_follows_its_formula(name: str, dtype: str) -> None:
    build, formula = SCHEDULES[name]
    with tf.Graph().as_default():
        step = tf.placeholder(dtype, [])
        rate = build(step)
        assert rate.dtype is tf.float32 and rate.shape.as_list() == []
        with tf.Session() as session:
            got = [session.run(rate, {step: n}) for n in (0, 1, 9, 10, 11, 20, 21, 45)]
    np.testing.assert_allclose(got, [formula(n) for n in (0, 1, 9, 10, 11, 20, 21, 45)], rtol=2e-6, atol=1e-7)


def test_noise_has_the_variance_that_falls() -> None:
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        step = tf.placeholder(tf.int32, [])
        rate = tf.train.noisy_linear_cosine_decay(1.0, step, 100, 4.0, 0.5, num_periods=0.0)
        with tf.Session() as session:
            found = np.array([[session.run(rate, {step: n}) for _ in range(400)] for n in (0, 15)])
    np.testing.assert_allclose(found.mean(1), [1.001, 0.851], atol=0.35)
    np.testing.assert_allclose(found.std(1), [2.0, 1.0], rtol=0.15)


def test_a_schedule_drives_an_optimizer() -> None:
    with tf.Graph().as_default():
        count = tf.train.create_global_step()
        rate = tf.train.piecewise_constant(count, [1], [1.0, 0.25])
        v = tf.Variable(10.0)
        step = tf.train.GradientDescentOptimizer(rate).minimize(v * 1.0, global_step=count)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for _ in range(4):
                session.run(step)
            assert session.run(v) == 10.0 - 1 - 1 - 0.25 - 0.25


def test_mistakes_are_named() -> None:
    with tf.Graph().as_default():
        with pytest.raises(tf.errors.InvalidArgumentError, match="one value more"):
            tf.train.piecewise_constant(tf.constant(1), [1, 2], [1.0, 2.0])
        with pytest.raises(tf.errors.InvalidArgumentError, match="must increase"):
            tf.train.piecewise_constant(tf.constant(1), [2, 1], [1.0, 2.0, 3.0])
        with pytest.raises(tf.errors.InvalidArgumentError, match="needs a global_step"):
            tf.train.exponential_decay(0.1, None, 10, 0.5)


VALUES = [4.0, 2.0, 8.0, 0.0]


def test_average_of_a_variable() -> None:
    with tf.Graph().as_default():
        v = tf.Variable([1.0, -1.0], name="v")
        average = tf.train.ExponentialMovingAverage(0.75, zero_debias=True)  # of tensors only
        fed = tf.placeholder(tf.float32, [])
        with tf.control_dependencies([v.assign([fed, -fed]).op]):
            step = average.apply()
        assert tf.get_collection(tf.GraphKeys.MOVING_AVERAGE_VARIABLES) == [v]
        assert average.average_name(v) == "v/ExponentialMovingAverage"
        assert average.variables_to_restore() == {"v/ExponentialMovingAverage": v}
        assert isinstance(average.average(v), tf.Variable)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            shadow = 1.0
            for value in VALUES:
                session.run(step, {fed: value})
                shadow = 0.75 * shadow + 0.25 * value
                np.testing.assert_allclose(session.run(average.average(v)), [shadow, -shadow], rtol=1e-6)


@pytest.mark.parametrize("debias", [False, True])
def test_average_of_a_tensor(debias: bool) -> None:
    """As TensorFlow 1 computes it: from zero, corrected only where it is asked for."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2], name="x")
        average = tf.train.ExponentialMovingAverage(0.5, zero_debias=debias)
        step = average.apply([x])
        names = ["x/ExponentialMovingAverage"]
        names += [f"{names[0]}/biased", f"{names[0]}/local_step"] if debias else []
        assert sorted(v.op.name for v in tf.global_variables()) == names == sorted(average.variables_to_restore())
        want = [[2.0, 4.0], [14 / 3, 4 / 3], [18 / 7, 8 / 7]] if debias else [[1.0, 2.0], [3.5, 1.0], [2.25, 1.0]]
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for value, expected in zip([[2.0, 4.0], [6.0, 0.0], [1.0, 1.0]], want, strict=True):
                session.run(step, {x: value})
                np.testing.assert_allclose(session.run(average.average(x)), expected, rtol=1e-6)


def test_early_updates_decay_faster() -> None:
    with tf.Graph().as_default():
        v = tf.Variable(8.0)
        count = tf.placeholder(tf.int32, [])
        average = tf.train.ExponentialMovingAverage(0.999, num_updates=count)
        step = average.apply([v])
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run(v.assign(0.0))
            session.run(step, {count: 0})
            np.testing.assert_allclose(session.run(average.average(v)), 0.8, rtol=1e-6)


def test_what_has_no_average() -> None:
    with tf.Graph().as_default():
        average = tf.train.ExponentialMovingAverage(0.9)
        with pytest.raises(tf.errors.DTypeError):
            average.apply([tf.Variable(1)])
        assert average.average(tf.Variable(1.0)) is None
        two = tf.unstack(tf.constant([1.0, 2.0]))
        average.apply(two)
        assert average.average(two[0]) is not average.average(two[1])
