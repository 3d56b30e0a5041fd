"""What is written for TensorFlow has its ops, attributes and functions, and comes back as the same program."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import UnknownOpError
from graphdock_tensorflow.graphs.writing import PRODUCER
from graphdock_tensorflow.plain_data.writing import as_data

X = np.array([[1.0, -2.0], [3.0, 0.5]], np.float32)


def back(graph):
    """The graph, through bytes."""
    message = tf.GraphDef()
    message.ParseFromString(graph.as_graph_def(add_shapes=True).SerializeToString())
    with tf.Graph().as_default() as again:
        tf.import_graph_def(message, name="")
    return again


def same(graph, fetches, feeds):
    found = []
    for each in (graph, back(graph)):
        with tf.Session(graph=each) as sess:
            if "init" in {op.name for op in each.get_operations()}:
                sess.run("init")
            found.append(sess.run(fetches, feeds))
    for ours, again in zip(*found, strict=True):
        np.testing.assert_array_equal(ours, again)


@pytest.fixture
def graph():
    with tf.Graph().as_default() as made:
        yield made


@pytest.fixture
def x(graph):
    return tf.placeholder(tf.float32, [None, 2], name="x")


def node(graph, name):
    return next(n for n in graph.as_graph_def().node if n.name == name)


def test_a_program_that_walks_the_nodes(graph, x):
    with tf.device("/cpu:0"), tf.control_dependencies([tf.no_op("first")]):
        tf.strided_slice(tf.matmul(x, [[1.0, 2.0], [3.0, 4.0]], name="m"), [0, 0], [1, 2], begin_mask=1, name="s")
    made = graph.as_graph_def()
    assert type(made) is tf.GraphDef and made.versions.producer == PRODUCER
    found = {n.name: n for n in made.node}
    assert found["m"].op == "MatMul" and list(found["m"].input) == ["x", "m/b", "^first"]
    assert found["m"].device == graph.get_operation_by_name("m").device
    assert (
        found["s"].attr["begin_mask"].i == 1 and found["m"].attr["T"].type == 1 and not found["m"].attr["transpose_a"].b
    )
    assert [d.size for d in found["x"].attr["shape"].shape.dim] == [-1, 2]
    assert found["m/b"].attr["value"].tensor.tensor_shape.dim[0].size == 2
    version = graph.version
    tf.identity(x, name="last")
    assert [n.name for n in graph.as_graph_def(from_version=version).node] == ["last"]


def test_names_of_ops_and_attributes_are_tensorflows(graph, x):
    tf.concat([x, x], 1, name="concat")
    tf.gather(x, [0], name="gather")
    tf.where(x > 0, x, -x, name="where")
    tf.matmul(tf.expand_dims(x, 0), tf.ones([1, 2, 2]), transpose_a=True, name="many")
    tf.pad(x, [[1, 0], [0, 0]], "REFLECT", name="pad")
    tf.squeeze(tf.expand_dims(x, 0), 0, name="squeeze")
    tf.get_variable("w", [2])
    ops = {n: node(graph, n) for n in ("concat", "gather", "where", "many", "pad", "squeeze", "w")}
    wanted = "ConcatV2 GatherV2 SelectV2 BatchMatMulV2 MirrorPad Squeeze VarHandleOp".split()
    assert [n.op for n in ops.values()] == wanted
    assert ops["gather"].attr["Tparams"].type == 1 and "T" not in ops["gather"].attr
    assert ops["many"].attr["adj_x"].b and "transpose_a" not in ops["many"].attr
    assert ops["pad"].attr["mode"].s == b"REFLECT" and len(ops["pad"].input) == 2
    assert list(ops["squeeze"].attr["squeeze_dims"].list.i) == [0] and ops["w"].attr["shared_name"].s == b"w"


def test_conds_loops_and_gradients_come_back(graph, x):
    w = tf.get_variable("w", [2, 2], initializer=tf.ones_initializer())
    with tf.control_dependencies([w.initializer]):
        tf.no_op("init")

    def step(i, h):
        return i + 1, tf.cond(tf.reduce_sum(h) > 0, lambda: tf.tanh(tf.matmul(h, w)), lambda: h * 0.5)

    _, h = tf.while_loop(lambda i, h: i < 9, step, [tf.constant(0), x], maximum_iterations=3)
    y = tf.logical_xor(tf.cond(x[0, 0] > 0, lambda: h, lambda: h + 1.0) > 0, x > 0, name="y")
    (g,) = tf.gradients(tf.reduce_sum(h + w[0]), w)
    same(graph, [h.name, y.name, g.name], {"x:0": X})
    ops = {n.op for n in graph.as_graph_def().node}
    assert {"While", "If", "NotEqual", "GraphdockWhile"} <= ops


def test_many_ops_come_back(graph, x):
    made = [
        tf.reduce_sum(x, 1, keepdims=True),
        tf.one_hot([0, 1], 2) + x,
        tf.cast(tf.argmax(x, 1), tf.float32),
        tf.stack(tf.split(x, 2, 1)) + tf.transpose(x)[:, None],
        tf.unsorted_segment_sum(x, [0, 0], 2),
        tf.sparse_segment_sum(x, [0, 1], [0, 0]),
        tf.nn.softmax(x) * tf.nn.elu(x),
        tf.tile(x, [2, 1]),
        tf.real(tf.fft(tf.complex(x, x))),
        tf.nn.top_k(x, 1)[0],
        tf.clip_by_value(x, -1.0, 1.0),
    ]
    same(graph, [t.name for t in made], {"x:0": X})


def test_a_python_function_is_named_and_not_read(graph):
    def mine(a):
        return a

    tf.py_func(mine, [tf.constant(1.0)], tf.float32, name="py")
    assert b"mine" in node(graph, "py").attr["token"].s
    with pytest.raises(UnknownOpError, match="Python function"):
        back(graph)


def test_where_nodes_stand_and_what_they_replace_comes_back(graph, x):
    a = tf.identity(x, name="a")
    with tf.colocate_with(a.op), graph.gradient_override_map({"Identity": "Other"}):
        tf.identity(x, name="b")
    again = back(graph)
    assert node(graph, "b").attr["_class"].list.s == [b"loc:@a"]
    for key in ("colocate", "gradient"):
        (ours,), (found,) = ([n[key] for n in as_data(g)["nodes"] if n["name"] == "b"] for g in (graph, again))
        assert ours == found
