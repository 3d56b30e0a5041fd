"""Variables as VariableDefs: the fields that TensorFlow writes, and the same variable of them."""

from __future__ import annotations

import graphdock as tf
import pytest
from graphdock.errors import InvalidArgumentError, NotFoundError

pytest.importorskip("google.protobuf")


@pytest.fixture
def graph():
    with tf.Graph().as_default() as made:
        yield made


def test_the_fields_are_those_of_tensorflow(graph):
    with tf.variable_scope("a"):
        v = tf.get_variable("v", [2], trainable=False, initializer=tf.zeros_initializer())
    made = v.to_proto()
    assert made.variable_name == "a/v:0" and made.initializer_name == "a/v/Assign"
    assert made.snapshot_name == "a/v/Read/ReadVariableOp:0" and made.is_resource and not made.trainable
    assert made.initial_value_name == v.initial_value.name
    inner = v.to_proto("a")
    assert (inner.variable_name, inner.snapshot_name) == ("v:0", "v/Read/ReadVariableOp:0")
    assert v.to_proto("b") is None


def test_the_variable_of_its_operations(graph):
    parts = tf.get_variable("p", [4, 2], partitioner=tf.fixed_size_partitioner(2))
    defs = [part.to_proto() for part in parts]
    data = graph.as_graph_def()
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.import_graph_def(data, name="in")
        again = [tf.Variable.from_proto(d, "in") for d in defs]
        assert [a.name for a in again] == ["in/p/part_0:0", "in/p/part_1:0"] and again[0].shape == [2, 2]
        assert again[1]._save_slice_info.spec == "4 2 2,2:0,2" and again[1]._save_slice_info.full_name == "in/p"
        assert tf.Variable.from_proto(defs[0], "in") is again[0]
        sess.run([a.initializer for a in again])
        before = sess.run(again[0])
        assert sess.run(again[0].assign_add(tf.ones([2, 2]))).tolist() == (before + 1).tolist()
        assert sess.run("in/p/part_0:0").tolist() == (before + 1).tolist()


def test_what_is_no_variable(graph):
    v = tf.get_variable("v", [2])
    made = v.to_proto()
    made.variable_name = "v/Assign"
    with pytest.raises(InvalidArgumentError, match="v/Assign is no variable"):
        tf.Variable.from_proto(made)
    with pytest.raises(NotFoundError):
        tf.Variable.from_proto(made, "elsewhere")
    with tf.Graph().as_default():
        tf.import_graph_def(graph.as_graph_def(), name="")
        tf.placeholder(tf.float32, name="x")
        made.variable_name, made.initializer_name = "v:0", "x"
        with pytest.raises(InvalidArgumentError, match="x initializes nothing"):
            tf.Variable.from_proto(made)


def test_a_variable_without_a_shared_read_gets_one(graph):
    tf.get_variable("v", [2])
    made = tf.global_variables()[0].to_proto()
    data = graph.as_graph_def()
    kept = [n for n in data.node if "Read" not in n.name]
    del data.node[:]
    data.node.extend(kept)
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.import_graph_def(data, name="")
        v = tf.Variable.from_proto(made)
        sess.run(v.initializer)
        assert sess.run(v * 1.0).shape == (2,)
