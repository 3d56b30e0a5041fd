"""Scopes as functions on the default graph, and the scope that leaves all bodies."""

from __future__ import annotations

import graphdock as tf
import pytest
from graphdock import ops


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def test_names_are_prefixed_and_the_prefix_is_yielded():
    with tf.name_scope("layer") as prefix:
        assert prefix == "layer/" and tf.constant(1.0, name="w").name == "layer/w:0"
        with ops.name_scope(None, "Default", [1]) as inner:
            assert inner == "layer/Default/"
    with tf.name_scope("layer") as again:
        assert again == "layer_1/"


def test_each_scope_acts_on_the_default_graph_of_the_moment():
    other = tf.Graph()
    with tf.device("cpu:1"), tf.container("mine"):
        with other.as_default():
            assert tf.constant(1.0).device == "" and tf.Variable(1.0).op.get_attr("container") == ""
        assert tf.constant(1.0).device == "/device:CPU:1" and tf.Variable(1.0).op.get_attr("container") == "mine"


def test_colocation_is_asked_of_an_operation():
    w = tf.Variable(1.0)
    with ops.colocate_with(w.op):
        x = tf.constant(1.0)
    assert w.op.name in str(x.op.colocation)


def test_init_scope_leaves_bodies_and_control_dependencies(graph):
    first = tf.no_op()
    seen = []

    def branch():
        with tf.control_dependencies([tf.no_op()]), tf.init_scope():
            seen.append(tf.constant(1.0))
        return tf.constant(2.0)

    with tf.control_dependencies([first]):
        tf.cond(tf.constant(True), branch, lambda: tf.constant(3.0))
    assert seen[0].graph is graph and seen[0].op.control_inputs == []


def test_variables_made_in_a_body_live_in_the_container_around_it(graph):
    made = []
    with graph.container("shared"):
        tf.cond(tf.constant(True), lambda: made.append(tf.Variable(lambda: tf.ones([]))) or 1, lambda: 2)
    assert made[0].op.get_attr("container") == "shared"
