"""Initializers of many variables, and reports of those that have no value yet."""

from __future__ import annotations

import graphdock as tf
import pytest
from graphdock.errors import InvalidArgumentError


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def test_each_initializer_takes_its_own_kind():
    shared = tf.Variable(1.0, name="shared")
    local = tf.Variable(2.0, name="local", trainable=False, collections=[tf.GraphKeys.LOCAL_VARIABLES])
    names = tf.report_uninitialized_variables()
    with tf.Session() as sess:
        assert sess.run(names).tolist() == [b"shared", b"local"]
        sess.run(tf.global_variables_initializer())
        assert sess.run(names).tolist() == [b"local"] and sess.run(shared) == 1.0
        sess.run(tf.local_variables_initializer())
        assert sess.run(names).tolist() == [] and sess.run(local) == 2.0
    assert tf.initialize_all_variables is tf.global_variables_initializer


def test_a_report_may_be_of_some():
    first, second = tf.Variable(1.0, name="first"), tf.Variable(1.0, name="second")
    some = tf.report_uninitialized_variables([second])
    none = tf.report_uninitialized_variables([])
    assert some.dtype is tf.string and some.shape == [None]
    with tf.Session() as sess:
        sess.run(first.initializer)
        assert sess.run(some).tolist() == [b"second"] and sess.run(none).tolist() == []


def test_one_variable_may_be_asked():
    v = tf.Variable(1.0)
    asked = tf.is_variable_initialized(v)
    with tf.Session() as sess:
        assert not sess.run(asked)
        sess.run(v.initializer)
        assert sess.run(asked)


def test_initializers_in_any_order_use_the_initial_values_of_the_others():
    first = tf.Variable(3.0)
    second = tf.Variable(first * 2.0)
    third = tf.Variable(second + first)
    with tf.Session() as sess:
        sess.run(tf.variables_initializer([third, second, first]))
        assert sess.run([first, second, third]) == [3.0, 6.0, 9.0]


@pytest.mark.parametrize("call", [tf.variables_initializer, lambda v: tf.is_variable_initialized(v[0])])
def test_only_variables_are_initialized(call):
    with pytest.raises(InvalidArgumentError, match="needs"):
        call([tf.constant(1.0)])
