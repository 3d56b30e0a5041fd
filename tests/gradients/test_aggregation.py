"""Names that programs pass to ``gradients`` and to optimizers."""

from __future__ import annotations

import graphdock as tf
import pytest


@pytest.mark.parametrize("name", ["ADD_N", "DEFAULT", "EXPERIMENTAL_TREE", "EXPERIMENTAL_ACCUMULATE_N"])
def test_every_way_to_sum_gives_the_sum(sess, name):
    x = tf.constant(2.0)
    method = getattr(tf.AggregationMethod, name)
    assert sess.run(tf.gradients([x * x, x * 3.0], x, aggregation_method=method)) == [7.0]
    v = tf.Variable(1.0)
    step = tf.train.GradientDescentOptimizer(0.5).minimize(v * v + v, aggregation_method=method)
    sess.run(tf.global_variables_initializer())
    sess.run(step)
    assert sess.run(v) == -0.5


def test_another_one_is_refused():
    x = tf.constant(2.0)
    with pytest.raises(ValueError, match="aggregation_method"):
        tf.gradients(x * x, x, aggregation_method=7)


def test_what_is_not_connected_is_none_or_zero(sess):
    x, y = tf.constant([1.0, 2.0]), tf.constant(3.0)
    assert tf.gradients(y * y, x, unconnected_gradients=tf.UnconnectedGradients.NONE) == [None]
    [zero] = tf.gradients(y * y, x, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    assert sess.run(zero).tolist() == [0.0, 0.0]
