"""Variables by name, and other initial values."""

from __future__ import annotations

import graphdock as tf
import pytest
from graphdock import ops
from graphdock.errors import DTypeError, ShapeError


def test_what_get_variable_made_is_found_by_its_full_name():
    with tf.Graph().as_default():
        with tf.variable_scope("a"):
            v = tf.get_variable("v", [2])
        p = tf.get_variable("p", [4], partitioner=tf.fixed_size_partitioner(2))
        tf.Variable(1.0, name="other")
        assert ops.stored_variables() == {"a/v": v, "p": p}
    with tf.Graph().as_default():
        assert ops.stored_variables() == {}


def test_a_variable_begins_with_another_value():
    with tf.Graph().as_default(), tf.Session() as sess:
        v = tf.get_variable("v", [2])
        v.initialized_value()
        ops.set_initial_value(v, tf.constant([3.0, 4.0]))
        w = tf.Variable(v.initialized_value() * 2.0)
        sess.run(tf.global_variables_initializer())
        assert sess.run([v, w, v.initial_value])[1].tolist() == [6, 8]
        assert v.initializer.name == "v/Assign_1"


def test_a_value_that_does_not_fit_is_refused():
    with tf.Graph().as_default():
        v = tf.get_variable("v", [2])
        with pytest.raises(ShapeError, match="v:0"):
            ops.set_initial_value(v, tf.constant([1.0]))
        with pytest.raises(DTypeError, match="v:0"):
            ops.set_initial_value(v, tf.constant([1, 2]))
        assert v.initializer.name == "v/Assign"
