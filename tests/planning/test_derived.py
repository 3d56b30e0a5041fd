"""Values that a pass derives of a variable: made when it was written, kept from step to step, shared by plans."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import Pass, Rewriter, hookimpl
from graphdock.errors import UninitializedError
from graphdock.plugin.host import Host


class Halves:
    """A pass that reads half of each variable in its place, and notes when a half is made."""

    def __init__(self):
        self.made, self.fails = [], False

    def fill(self, array, room):
        if self.fails:
            self.fails = False
            raise ZeroDivisionError
        self.made.append(array.tolist())
        np.multiply(array, 0.5, out=room)

    def __call__(self, graph, context):
        with Rewriter(graph) as change:
            for node in graph.nodes:
                if node.verb == "read" and "half" not in node.name:
                    half = context.derive(node.outputs[0], "half", node.outputs[0].shape, self.fill)
                    if half is not None:
                        for each in (half.inputs[0].node, half):
                            change.insert(change.number(each), before=node)
                        change.replace(node, half.outputs)


@pytest.fixture
def halves():
    return Halves()


@pytest.fixture
def host(halves):
    class Plugin:
        @hookimpl
        def register_passes(self):
            return [Pass("halves", "chosen", 90, "half of what is read", halves)]

    made = Host()
    made.register("lab", Plugin())
    return made


@pytest.fixture(autouse=True)
def graph(host):
    with tf.Graph(host=host).as_default() as graph:
        yield graph


@pytest.fixture
def v():
    return tf.get_variable("v", initializer=[4.0, 8.0], use_resource=True)


def test_it_is_made_once_after_each_write(halves, host, v):
    doubled, y = v.assign(v * 2.0), v + 0.0
    with tf.Session(host=host) as session:
        session.run(v.initializer)
        assert [session.run(y).tolist() for _ in range(3)] == [[2.0, 4.0]] * 3
        session.run(doubled.op)  # a step that writes reads the variable itself
        assert session.run(y).tolist() == [4.0, 8.0]
        assert session.run(v * 3.0).tolist() == [12.0, 24.0]  # another plan, which shares it
        assert session.run(y).tolist() == [4.0, 8.0]
    assert halves.made == [[4.0, 8.0], [8.0, 16.0]]


def test_a_variable_without_a_value_is_named_although_nobody_reads_it_itself(halves, host, v):
    with tf.Session(host=host) as session:
        for _ in range(2):
            with pytest.raises(UninitializedError, match="variable 'v' is read before it was assigned"):
                session.run(v + 0.0)
        session.run(v.initializer)
        assert session.run(v + 0.0).tolist() == [2.0, 4.0]
    assert len(halves.made) == 1


def test_what_is_not_kept_is_read_as_it_is(halves, host, v):
    words = tf.get_variable("words", initializer=tf.constant(["a"]), use_resource=True)
    loose = tf.Variable([3.0], validate_shape=False, use_resource=True, name="loose")
    waits = tf.py_func(lambda a: a, [v + 0.0], tf.float32)
    with tf.Session(host=host) as session:
        session.run(tf.global_variables_initializer())
        assert session.run(words).tolist() == [b"a"]
        assert session.run(loose + 0.0).tolist() == [3.0]
        assert session.run(waits).tolist() == [4.0, 8.0]
    assert not halves.made


def test_what_fails_while_it_is_made_is_made_again(halves, host, v):
    y = v + 0.0
    with tf.Session(host=host) as session:
        session.run(v.initializer)
        halves.fails = True
        with pytest.raises(ZeroDivisionError):
            session.run(y)
        assert session.run(y).tolist() == [2.0, 4.0]


def test_containers_share_it_and_a_reset_drops_it(halves, host):
    with tf.container("test_derived"):
        v = tf.get_variable("v", initializer=[4.0], use_resource=True)
    y = v + 0.0
    with tf.Session(host=host) as a, tf.Session(host=host) as b:
        a.run(v.initializer)
        assert a.run(y) == b.run(y) == [2.0] and len(halves.made) == 1
        v.load([6.0], b)
        assert a.run(y) == b.run(y) == [3.0] and len(halves.made) == 2
        tf.Session.reset("", ["test_derived"], host=host)
        with pytest.raises(UninitializedError):
            a.run(y)
        v.load([8.0], a)
        assert a.run(y) == [4.0] and len(halves.made) == 3
