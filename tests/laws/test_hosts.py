"""A graph and a session belong to one host; nothing below them asks for the process's own."""

import graphdock as tf
import graphdock.plugin.host as host_module
import numpy as np
import pytest
from graphdock.contracts import ArgDef, KernelDef, OpDef
from graphdock.plugin.host import Host
from graphdock_tensorflow.plain_data.writing import as_data


@pytest.fixture
def host():
    """A host with an op of its own."""
    host = Host()
    args = {"inputs": (ArgDef("x", "float32", "[*S]"),), "outputs": (ArgDef("y", "float32", "[*S]"),)}
    host.ops.add(OpDef("lab.Double", **args, package="lab"), "lab")

    def build(ctx):
        return (lambda x: x + x) if ctx.fresh else (lambda x, y: np.add(x, x, y))

    host.kernels.add(KernelDef("lab.Double", "cpu", build), "user", "lab")
    yield host
    host.close()


def refuse_default(monkeypatch):
    """Whoever asks for the default host fails."""

    def refuse():
        raise AssertionError("somebody asked for the default host")

    monkeypatch.setattr(host_module, "_default", None)
    monkeypatch.setattr(host_module, "configured_host", refuse)


def test_the_ops_of_a_graphs_host_can_be_built(host):
    with tf.Graph(host=host).as_default() as graph:
        y = graph.create_op("lab.Double", [tf.constant([1.0, 2.0])]).outputs[0]
        with tf.Session(host=host) as sess:
            assert sess.run(y).tolist() == [2.0, 4.0]
    with tf.Graph().as_default() as graph, pytest.raises(tf.errors.UnknownOpError):
        graph.create_op("lab.Double", [tf.constant([1.0])])


def test_a_session_takes_its_graphs_host(host):
    graph = tf.Graph(host=host)
    with graph.as_default():
        y = graph.create_op("lab.Double", [tf.constant([3.0])]).outputs[0]
    with tf.Session(graph=graph) as sess:
        assert sess.run(y).tolist() == [6.0]


def test_a_program_on_a_host_of_its_own_never_asks_for_the_default_one(host, monkeypatch):
    assert (
        program(host) == "VarHandleOp"
    )  # names below tf are the process's own: what plugins publish is looked up once
    refuse_default(monkeypatch)
    assert program(host) == "VarHandleOp"


def program(host):
    """Build, run, write and read a graph on a host; the type of its variable's operation as it was read."""
    with tf.Graph(host=host).as_default() as graph:
        x = tf.placeholder(tf.float32, [2], name="x")
        v = tf.Variable([1.0, 2.0], name="v")
        doubled = graph.create_op("lab.Double", [x]).outputs[0]
        looped = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * v), [0, x])[1]
        chosen = tf.cond(x[0] > 0.0, lambda: looped, lambda: x)
        (slope,) = tf.gradients(chosen, x)
        step = tf.train.GradientDescentOptimizer(0.5).minimize(tf.reduce_sum(tf.square(v)))
        folded = tf.constant(2.0) * 3.0
        with tf.Session(host=host) as sess:
            sess.run(tf.global_variables_initializer())
            got = sess.run([chosen, slope, folded, doubled], {x: [1.0, 1.0]})
            assert [a.tolist() for a in got] == [[1.0, 8.0], [1.0, 8.0], 6.0, [2.0, 2.0]]
            sess.run(step)
            assert sess.run(v).tolist() == [0.0, 0.0]
        again = tf.Graph(host=host)
        data = as_data(graph)
    with again.as_default():
        tf.import_graph_def(data, name="")
        return again.get_operation_by_name("v").type


def test_a_body_and_a_session_of_another_host_keep_to_the_graphs(host):
    with tf.Graph(host=host).as_default() as graph:
        x = tf.placeholder(tf.float32, [2])

        def body(i, a):
            inner = tf.get_default_graph()
            assert inner is not graph and inner.host is host
            return i + 1, inner.create_op("lab.Double", [a]).outputs[0]

        y = tf.while_loop(lambda i, a: i < 3, body, [0, x])[1]
        with tf.Session() as sess:
            assert sess.run(y, {x: [1.0, 2.0]}).tolist() == [8.0, 16.0]


def test_operators_are_those_of_the_graphs_host():
    with tf.Graph(host=Host(block=["std"])).as_default():
        x = tf.placeholder(tf.float32, [2])
        with pytest.raises(tf.errors.UnknownOpError, match="__add__"):
            x + x
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2])
        assert (x + x).op.type == "Add"


def test_containers_belong_to_a_host():
    one, other = Host(), Host()
    with tf.container("laws_hosts"):
        v = tf.Variable([1.0])
    with tf.Session(host=one) as first, tf.Session(host=one) as second, tf.Session(host=other) as third:
        first.run(v.initializer)
        assert second.run(v).tolist() == [1.0]
        with pytest.raises(tf.errors.UninitializedError):
            third.run(v)
        third.run(v.assign([2.0]))
        tf.Session.reset(containers=["laws_hosts"], host=one)
        assert third.run(v).tolist() == [2.0]
        with pytest.raises(tf.errors.UninitializedError):
            second.run(v)
