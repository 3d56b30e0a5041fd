"""Parts of GraphDefs: frozen values, what is needed, what only training needs."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import ArgumentTypeError, InvalidArgumentError, NotFoundError, UninitializedError

pytest.importorskip("google.protobuf")
X = np.array([[1.0, -2.0], [3.0, 0.5]], np.float32)


@pytest.fixture
def graph():
    with tf.Graph().as_default() as made:
        yield made


@pytest.fixture
def program(graph):
    """``y`` of ``x``, ``w`` and ``b``, with ``w`` in a loop, in a cond of it, and ``b`` outside; ``u`` updates ``w``."""
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    w = tf.get_variable("w", [2, 2], initializer=tf.random_normal_initializer(seed=1))
    b = tf.get_variable("b", [2], initializer=tf.ones_initializer())

    def step(i, h):
        return i + 1, tf.cond(tf.reduce_sum(h) > 0, lambda: tf.matmul(h, w), lambda: h + 0.5)

    _, h = tf.while_loop(lambda i, h: i < 3, step, [tf.constant(0), x])
    y = tf.identity(h + b, name="y")
    tf.group(w.assign_add(w), name="u")
    tf.gradients(y, w)  # the loop keeps histories
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        yield sess, graph.as_graph_def(), sess.run(y, {x: X})


def run(graph_def, feeds):
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.import_graph_def(graph_def, name="")
        return sess.run("y:0", feeds)


def test_variables_become_constants_in_loops_and_conds_too(program):
    sess, graph_def, expected = program
    frozen = tf.graph_util.convert_variables_to_constants(sess, graph_def, ["y"])
    ops = {n.op for n in frozen.node} | {
        n.op for f in frozen.library.function for n in f.node_def if "else" not in f.signature.name
    }
    assert "VarHandleOp" not in ops and "GraphdockWhile" not in {n.op for n in frozen.node}
    np.testing.assert_array_equal(run(frozen, {"x:0": X}), expected)
    assert "VarHandleOp" in {n.op for n in graph_def.node}  # what was given is as it was


def test_the_values_are_read_without_anything_else(graph):
    v = tf.get_variable("v", [], initializer=tf.ones_initializer())
    y = tf.identity(v, name="y")
    fed = tf.placeholder(tf.float32, [], name="x")
    with tf.control_dependencies([fed]):
        data = v.read_value()  # which needs what nobody feeds here
    assert data is not y
    with tf.Session() as sess:
        sess.run(v.initializer)
        frozen = tf.graph_util.convert_variables_to_constants(sess, graph.as_graph_def(), ["y"])
        assert run(frozen, None) == 1
        v.load(2.0, sess)
        with tf.control_dependencies([v.assign_add(1.0)]):
            v.read_value()
        assert run(tf.graph_util.convert_variables_to_constants(sess, graph.as_graph_def(), ["y"]), None) == 2


def test_only_some_of_them(program):
    sess, graph_def, _ = program
    for more in ({"variable_names_whitelist": ["b"]}, {"variable_names_blacklist": ["w"]}):
        made = tf.graph_util.convert_variables_to_constants(sess, graph_def, ["y"], **more)
        assert [n.name for n in made.node if n.op == "VarHandleOp"] == ["w"]


def test_what_cannot_be_frozen(program):
    sess, graph_def, _ = program
    with pytest.raises(InvalidArgumentError, match=r"AssignAddVariableOp.* uses the variable 'w'"):
        tf.graph_util.convert_variables_to_constants(sess, graph_def, ["u"])
    with pytest.raises(NotFoundError, match="has no node 'yy'"):
        tf.graph_util.convert_variables_to_constants(sess, graph_def, ["yy"])
    with tf.Session(graph=sess.graph) as other, pytest.raises(UninitializedError):
        tf.graph_util.convert_variables_to_constants(other, graph_def, ["y"])


def test_what_some_nodes_need(graph):
    a = tf.constant(1.0, name="a")
    with tf.control_dependencies([tf.no_op("first")]):
        tf.negative(a, name="b")
    tf.negative(a, name="c")
    made = tf.graph_util.extract_sub_graph(graph.as_graph_def(), ["b"])
    assert [n.name for n in made.node] == ["a", "first", "b"] and made.versions == graph.as_graph_def().versions
    with pytest.raises(ArgumentTypeError):
        tf.graph_util.extract_sub_graph(made, "b")


def test_what_only_training_needs_goes(graph):
    x = tf.placeholder(tf.float32, [], name="x")
    checked = tf.identity(tf.check_numerics(x, "bad", name="n"), name="i")
    tf.negative(checked, name="y")
    with tf.control_dependencies([tf.identity(x, name="waited")]):
        tf.identity(checked, name="out")
    made = tf.graph_util.remove_training_nodes(graph.as_graph_def(), ["out"])
    assert [n.name for n in made.node] == ["x", "y", "waited", "out"]
    assert run(made, {"x:0": 2.0}) == -2 and list(made.node[3].input) == ["x", "^waited"]


def test_facts_of_nodes(graph):
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    words, number = tf.constant("a"), tf.constant(1.0)
    assert tf.graph_util.must_run_on_cpu(words.op) and not tf.graph_util.must_run_on_cpu(number.op)
    v = tf.get_variable("v", [1])
    node = next(n for n in graph.as_graph_def().node if n.name == "v")
    assert tf.graph_util.must_run_on_cpu(node, pin_variables_on_cpu=True) and not tf.graph_util.must_run_on_cpu(v.op)
    assert tf.graph_util.tensor_shape_from_node_def_name(graph, "x").as_list() == [None, 2] == x.shape.as_list()
