"""What is not told by data is told by the order of the graph, in copies of it too."""

import graphdock as tf
import pytest
from graphdock_tensorflow.plain_data.writing import as_data


def read_late():
    """A read, made before an update, that a control input lets run after it; names of what is run and fetched."""
    v = tf.Variable(0.0, name="v")
    read = v.read_value()
    seen = tf.identity(read, name="seen")
    update = v.assign_add(1.0, read_value=False)
    late = tf.no_op(name="late")
    read.op._add_control_input(late)
    return v.initializer.name, seen.name, update.name


def run(graph, names):
    initializer, seen, update = names
    with tf.Session(graph=graph) as sess:
        sess.run(initializer)
        return sess.run([seen, update])[0]


def test_an_imported_graph_runs_in_the_order_of_its_file():
    with tf.Graph().as_default() as graph:
        names = read_late()
    with tf.Graph().as_default() as copy:
        tf.import_graph_def(as_data(graph), name="")
    assert run(graph, names) == run(copy, names) == 1.0


def test_imported_operations_are_numbered_by_their_place_in_the_file():
    def node(name, *inputs):
        return {"name": name, "op": "NoOp", "inputs": [f"^{i}" for i in inputs]}

    data = {"graphdock_graph": 1, "nodes": [node("first", "last"), node("a"), node("b", "a"), node("last"), node("c")]}
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(data, name="")
        assert [op.name for op in graph.get_operations()] == ["a", "b", "last", "first", "c"]


def test_the_copy_of_a_body_keeps_its_control_inputs():
    a = tf.Variable(2.0, name="a")
    doubled = a * 2.0

    def branch():
        with tf.control_dependencies([tf.no_op(name="before")]):
            return tf.identity(doubled, name="after")

    b = tf.Variable(tf.cond(tf.constant(True), branch, lambda: doubled), name="b")
    copy = b.initializer.inputs[1].op
    while copy.type != "Cond":
        copy = copy.inputs[0].op
    by_name = {op.name.rpartition("/")[2]: op for op in copy.bodies[0].get_operations()}
    assert [op.name.rpartition("/")[2] for op in by_name["after"].control_inputs] == ["before"]


def test_a_copied_operation_keeps_its_control_inputs():
    a = tf.Variable(2.0, name="a")
    before = tf.no_op(name="before")
    doubled = a * 2.0
    with tf.control_dependencies([before]):
        tripled = tf.identity(doubled, name="tripled")
    b = tf.Variable(tripled, name="b")
    copy = b.initializer.inputs[1].op
    assert copy is not tripled.op and copy.control_inputs == [before]


@pytest.mark.parametrize("first", ["a", "b", "c"])
def test_a_cycle_in_a_file_is_named_by_a_node_of_it(first):
    needs = {"a": ["b"], "b": ["c"], "c": ["b"], "d": ["a"]}
    names = [first, *(n for n in needs if n != first)]
    nodes = [{"name": n, "op": "NoOp", "inputs": [f"^{i}" for i in needs[n]]} for n in names]
    with pytest.raises(tf.errors.InvalidArgumentError, match="cycle through '[bc]'"):
        tf.import_graph_def({"graphdock_graph": 1, "nodes": nodes}, name="")
    assert tf.get_default_graph().get_operations() == []
