"""An operation: its facts, its control inputs, its parts by argument."""

from __future__ import annotations

import graphdock as tf
import pytest


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def test_an_operation_never_waits_for_itself():
    op = tf.constant(1.0).op
    op._add_control_input(op)
    assert op.control_inputs == []


def test_its_facts(graph):
    x, y = tf.placeholder(tf.float32, [2, 3], name="x"), tf.placeholder(tf.float32, [3, 4], name="y")
    op = tf.matmul(x, y, name="product").op
    assert (op.name, op.type, op.graph, list(op.inputs)) == ("product", "MatMul", graph, [x, y])
    assert op.outputs[0].shape == [2, 4] and op.get_attr("transpose_a") is False and op.get_attr("T") is tf.float32
    assert "product" in repr(op) and "MatMul" in repr(op)


def test_list_arguments_are_found_by_name():
    a, b = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.float32, [2])
    op = tf.stack([a, b]).op
    assert op.arg("values") == [a, b] and op.input_shapes() == (((2,), (2,)),)
    parts = tf.split(tf.placeholder(tf.float32, [4]), 2)
    assert parts[0].op.result("y") == parts


def test_control_inputs_are_kept_once_in_order():
    first, second = tf.no_op(), tf.no_op()
    with tf.control_dependencies([first, second, first]):
        op = tf.constant(1.0).op
    assert op.control_inputs == [first, second]


def test_an_operation_runs_in_the_default_session():
    v = tf.Variable(1.0)
    with tf.Session() as sess:
        v.initializer.run()
        assert sess.run(v) == 1.0
