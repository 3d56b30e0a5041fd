"""The check of gradients finds wrong ones, and gives the Jacobians that are known by hand."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import DTypeError, InvalidArgumentError
from graphdock_testing.gradient_check import (
    check_gradients,
    compute_gradient,
    compute_gradient_error,
    gradient_differences,
)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def test_a_right_gradient_passes():
    x, w = tf.placeholder(tf.float64, [3]), tf.placeholder(tf.float64, [3])
    assert check_gradients(tf.sin(x) * w, {x: [0.1, 2.0, -1.0], w: [1.0, 2.0, 3.0]}) < 1e-7


def test_a_wrong_gradient_is_named_with_both_numbers(graph):
    from graphdock.gradients import registry

    state = registry.snapshot()
    try:
        tf.RegisterGradient("Wrong")(lambda op, grad: 1.01 * grad * tf.cos(op.inputs[0]))
        x = tf.placeholder(tf.float64, [2], name="x")
        with graph.gradient_override_map({"Sin": "Wrong"}):
            y = tf.sin(x)
        with pytest.raises(AssertionError, match="the gradient by x:0 is .* differences say .*relative error"):
            check_gradients(y, {x: [0.3, 0.4]})
    finally:
        registry.restore(state)


def test_a_gradient_that_stops_is_zero_and_differs():
    x = tf.placeholder(tf.float64, [])
    (first, _) = gradient_differences(tf.stop_gradient(x) * 2.0, {x: 1.0})
    assert first.symbolic == 0 and abs(first.numeric) > 0 and first.error > 0


def test_rows_of_a_gather_count_as_the_whole_gradient():
    table = tf.placeholder(tf.float64, [4, 2])
    assert check_gradients(tf.square(tf.gather(table, [1, 1, 3])), {table: np.arange(8.0).reshape(4, 2)}) < 1e-6


def test_only_float64_can_be_checked():
    x = tf.placeholder(tf.float32, [], name="x")
    with pytest.raises(DTypeError, match="output .* must be float64"):
        check_gradients(x * 2.0, {x: 1.0})
    with pytest.raises(InvalidArgumentError, match="at least one tensor"):
        check_gradients(tf.constant(1.0, tf.float64), {})


def test_the_jacobians_of_a_linear_map_are_its_matrix():
    a = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    x = tf.placeholder(tf.float64, [3, 1])
    y = tf.matmul(tf.constant(a), x)
    symbolic, numeric = compute_gradient(x, [3, 1], y, [2, 1])
    np.testing.assert_allclose(symbolic, a.T)
    np.testing.assert_allclose(numeric, a.T, rtol=1e-9)
    assert compute_gradient_error(x, [3, 1], y, [2, 1]) < 1e-9


def test_the_point_may_be_given():
    x = tf.placeholder(tf.float64, [2])
    symbolic, _ = compute_gradient(x, [2], x * x, [2], x_init_value=[3.0, 5.0])
    np.testing.assert_allclose(symbolic, np.diag([6.0, 10.0]))
