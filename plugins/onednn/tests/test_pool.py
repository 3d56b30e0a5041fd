"""Pools and their gradients beside the cpu's, with what is no number among them."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest

POOLS = {"max": tf.nn.max_pool, "avg": tf.nn.avg_pool}


def pooled(kind, x, window, strides, padding, **more):
    return POOLS[kind](x, [1, *window, 1], [1, *strides, 1], padding, **more)


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(
    ("window", "strides"), [((2, 2), (2, 2)), ((3, 3), (2, 2)), ((3, 2), (1, 1)), ((1, 1), (3, 2)), ((5, 4), (4, 5))]
)
@pytest.mark.parametrize("channels", [1, 16, 19])
def test_a_pool_and_its_gradient_are_the_cpus(both, rng, kind, padding, window, strides, channels):
    x = tf.placeholder(tf.float32, [2, 9, 7, channels])
    y = pooled(kind, x, window, strides, padding)
    kernels = both([y, tf.gradients(y * y, x)[0]], {x: rng.normal(size=(2, 9, 7, channels))})
    assert kernels[f"onednn.{kind}_pool"] == kernels[f"onednn.{kind}_pool_grad"] == 1


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_pooled_as_on_the_cpu(both, rng, value, padding):
    x = tf.placeholder(tf.float32, [2, 9, 7, 16])
    u = rng.normal(size=(2, 9, 7, 16)).astype(np.float32)
    u[0, 3, 2], u[1, 0:4, 0:4, 3] = value, value
    y = pooled("max", x, (3, 2), (2, 2), padding)
    both([y, tf.gradients(y, x)[0]], {x: u})


def test_the_first_of_equal_elements_gets_the_gradient(both):
    x = tf.placeholder(tf.float32, [1, 4, 4, 16])
    y = pooled("max", x, (2, 2), (2, 2), "VALID")
    (slope,) = tf.gradients(y, x)
    both([slope], {x: np.zeros((1, 4, 4, 16))})


def test_channels_may_stand_first(both, rng):
    x = tf.placeholder(tf.float32, [2, 5, 8, 6])
    y = tf.nn.max_pool(x, [1, 1, 2, 3], [1, 1, 2, 2], "SAME", data_format="NCHW")
    both([y, tf.gradients(y, x)[0]], {x: rng.normal(size=(2, 5, 8, 6))})


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (([1, 1, 1, 3], [1, 1, 1, 3], "VALID"), "it pools over the batch or the channels"),
        (([1, 2, 2, 1], [1, 1, 1, 1], [[0, 0], [2, 0], [0, 0], [0, 0]]), "a window may lie in the padding alone"),
    ],
)
def test_what_it_does_not_pool_is_the_cpus_and_explain_says_why(arguments, reason):
    x = tf.placeholder(tf.float32, [1, 6, 6, 6])
    y = tf.nn.max_pool(x, *arguments)
    with tf.Session(config=tf.SessionConfig(backends=("onednn", "cpu"))) as sess:
        told = sess.explain(y, {x: np.ones((1, 6, 6, 6))})
    assert told.kernels() == {"cpu.max_pool": 1} and reason in told.table(lost=True)
