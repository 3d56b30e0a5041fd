"""Rematerializable nodes: draws, and what is computed of nothing else, wherever all who read it could compute it."""

from __future__ import annotations

import graphdock as tf
import pytest
from graphdock.contracts import DeviceSpec
from graphdock_fusion.regions.rematerializable import rematerializable
from graphdock_fusion.regions.spaces import BySpace

CPU = DeviceSpec.parse("/device:cpu:0")


def rematerialized(build):
    """Names of the ops that are rematerializable where ``build(x)`` is fetched."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [4, 6], name="x")
        with tf.Session() as sess:
            graph = sess.explain(build(x), {x: [[0.0] * 6] * 4}).plan.graph
    kinds = BySpace(lambda node: CPU)
    return sorted(n.op for n in rematerializable(graph, kinds.own))


def mask(rate=0.5, shape=(4, 6)):
    return tf.cast(tf.random_uniform(shape, seed=3) >= rate, tf.float32)


def test_a_mask_floats_whether_its_rate_is_known_or_not():
    assert rematerialized(lambda x: x * mask()) == ["Cast", "GreaterEqual", "RandomUniform"]
    assert rematerialized(lambda x: x * mask(tf.reduce_max(x))) == ["Cast", "GreaterEqual", "RandomUniform"]


@pytest.mark.parametrize(
    ("build", "left"),
    [
        (lambda x: [x * (m := mask()), m], ["GreaterEqual", "RandomUniform"]),  # fetched
        (lambda x: tf.matmul(x, mask(), transpose_b=True), ["GreaterEqual", "RandomUniform"]),  # read by no region
        (lambda x: x * mask(shape=(6,)), ["GreaterEqual", "RandomUniform"]),  # read in a wider space
        (lambda x: x * mask(x), ["RandomUniform"]),  # computed of what has a size
        (lambda x: x * tf.reduce_sum(mask()), ["Cast", "GreaterEqual", "RandomUniform"]),  # up to a reduction
        (lambda x: x * tf.random_uniform([], seed=3), []),  # a single number
        (lambda x: tf.tanh(x * 2.0), []),
    ],
)
def test_what_somebody_needs_as_it_stands_does_not_float(build, left):
    assert rematerialized(build) == left


def test_what_waits_or_is_waited_for_does_not_float():
    def build(x):
        drawn = tf.random_uniform([4, 6], seed=3)
        with tf.control_dependencies([tf.Print(x, [x])]):
            late = tf.random_uniform([4, 6], seed=4)
        return x * drawn * late

    assert rematerialized(build) == ["RandomUniform"]
