"""Checks of actual shapes, called as a step calls them."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import ShapeError
from graphdock.planning.plan_shapes import infer_outputs
from graphdock.planning.translate import translate
from graphdock_executor.shape_checks import OutputCheck, RuleCheck, host_shape


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def node(tensor, *feeds):
    return translate([tensor], [], feeds).nodes[-1]


def rule_check(node, *reads):
    """The check of a node over host arrays: of each, the input and whether its elements count."""
    return RuleCheck(node, [(index, host_shape, counts) for index, counts in reads], infer_outputs)


def test_shapes_and_elements_are_taken_from_the_buffers_and_the_rest_from_the_plan():
    x, s = tf.placeholder(tf.float64, [None, 6]), tf.placeholder(tf.int32, [2])
    check = rule_check(node(tf.reshape(x, s), (x, (None, 6)), (s, (2,))), (0, False), (1, True))
    check(np.zeros((2, 6)), np.int32([3, 4]))
    check(np.zeros((2, 6)), np.int32([3, 4]))
    check(np.zeros((2, 6)), np.int32([-1, 2]))
    refused = check.refusal([np.zeros((2, 6)), np.int32([5, 2])])
    assert isinstance(refused, ShapeError) and "cannot reshape [2,6] (12 elements) to [5,2] (10)" in refused.message
    assert check.refusal([np.zeros((2, 6)), np.int32([6, 2])]) is None


def test_elements_are_told_apart_by_their_dtype_alone_never_by_their_address():
    x, s = tf.placeholder(tf.float64, [None]), tf.placeholder(tf.int64, [1])
    check = rule_check(node(tf.reshape(x, s), (x, (None,)), (s, (1,))), (0, False), (1, True))
    to = np.int64([3])
    check(np.zeros(3), to)
    to[0] = 4
    with pytest.raises(ShapeError):
        check(np.zeros(3), to)


def test_what_the_plan_says_of_the_output_must_come():
    x = tf.placeholder(tf.float64, [None])
    y = tf.identity(x)
    y.set_shape([4])
    check = rule_check(node(y, (x, (None,))), (0, False))
    check(np.zeros(4))
    with pytest.raises(ShapeError, match=r"\[4\] and \[3\] do not agree"):
        check(np.zeros(3))


def test_lists_and_absent_inputs_find_their_arguments():
    a, b, axis = tf.placeholder(tf.float64, [None]), tf.placeholder(tf.float64, [None]), tf.placeholder(tf.int32, [])
    made = node(tf.concat([a, b], axis), (a, (None,)), (b, (None,)), (axis, ()))
    check = rule_check(made, (0, False), (1, False), (2, True))
    check(np.zeros(2), np.zeros(3), np.int32(0))
    with pytest.raises(ShapeError, match="axis 1 is out of bounds"):
        check(np.zeros(2), np.zeros(3), np.int32(1))


def test_a_promise_is_compared_with_what_came():
    x = tf.placeholder(tf.float64, [None])
    y = tf.where(x > 0.0)
    y.set_shape([2, None])
    check = OutputCheck(node(y, (x, (None,))), 0, host_shape)
    check(np.zeros((2, 1)))
    with pytest.raises(ShapeError, match="promised by set_shape") as info:
        check(np.zeros((3, 1)))
    assert (info.value.expected, info.value.got) == ("[2,1]", "[3,1]")
