"""Graphs that are short and stand for much: imports take time and memory in proportion to the file, or refuse it."""

from __future__ import annotations

import graphdock as tf
import lies
import long_json
import numpy as np
import pytest
from graphdock.errors import GraphdockError, InvalidArgumentError
from graphdock_tensorflow.graphs.reading import read_graph
from graphdock_tensorflow.graphs.table import INPUTS

pytest.importorskip("google.protobuf")

import lying_graphs  # noqa: E402 - needs the library protobuf

FEW, MANY = 24, 192


@pytest.mark.parametrize("name", lying_graphs.FAMILIES)
@pytest.mark.sampled(12)
@pytest.mark.slow
def test_an_import_takes_steps_and_memory_in_proportion_to_the_file(name):
    ops = tf.get_default_graph().host.ops
    costs = []
    for n in (FEW, MANY):
        message = lying_graphs.FAMILIES[name](n)
        size = message.ByteSize()
        read = lambda message=message: read_graph(message, ops)  # noqa: E731
        lies.refused(read)  # what is made once
        costs.append((lies.steps(read) / size, lies.held(read) / size))
    (steps, memory), (more_steps, more_memory) = costs
    assert more_steps <= 1.5 * steps and more_memory <= 2.5 * memory, costs


@pytest.mark.parametrize("name", long_json.FAMILIES)
@pytest.mark.sampled(2)
def test_an_import_of_json_takes_steps_and_memory_in_proportion_to_the_text(name):
    costs = []
    for n in (FEW, MANY):
        text = long_json.FAMILIES[name](n)

        def run(text=text):
            with tf.Graph().as_default():
                tf.import_graph_def(text)

        lies.refused(run)  # what is made once
        costs.append((lies.steps(run) / len(text), lies.held(run) / len(text)))
    (steps, memory), (more_steps, more_memory) = costs
    assert more_steps <= 1.5 * steps and more_memory <= 2.5 * memory, costs


@pytest.mark.slow
def test_functions_that_call_one_another_twice_are_refused_before_they_are_many():
    """Each level doubles them; a file of 12 levels took half a minute, one of 24 had no end."""
    steps = []
    for levels in (14, 28):
        message = lying_graphs.call_tree(levels)

        def run(message=message):
            with tf.Graph().as_default(), pytest.raises(InvalidArgumentError, match="too many for a file of its size"):
                tf.import_graph_def(message)

        steps.append(lies.steps(run))
    assert steps[1] <= 2 * steps[0]


def test_a_shallow_tree_of_functions_is_read():
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        tf.import_graph_def(lying_graphs.call_tree(5), name="")
        assert len([op for op in graph.get_operations() if op.type == "Neg"]) == 32
        assert sess.run("top:0", {"x:0": 3.0}) == 3.0


def test_repeated_constants_share_one_limit():
    """Each of these is within the limit by itself."""
    message = lying_graphs.graph()
    for i in range(8):
        lying_graphs.constant(message.node, f"c{i}", (9 << 21,), values=2)
    assert message.ByteSize() < 500

    def run():
        with tf.Graph().as_default(), pytest.raises(GraphdockError, match="repeated elements are too many"):
            tf.import_graph_def(message)

    assert lies.held(run) < 160 << 20


def test_what_is_refused_takes_nothing_of_the_limit_from_others():
    message = lying_graphs.graph()
    lying_graphs.constant(message.node, "large", (9 << 23,), values=2)
    lying_graphs.constant(message.node, "small", (3,))
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(message, name="", allow_missing=True)
        assert [op.name for op in graph.get_operations()] == ["small"]


@pytest.mark.parametrize("name", ["max_pool", "avg_pool"])
def test_a_window_larger_than_the_image_is_the_image(name):
    """TensorFlow refuses windows of 2**31 and takes these. The plan took a step for each element of the window."""
    x = np.random.default_rng(3).normal(size=(2, 3, 5, 1)).astype(np.float32)
    for window in (16, 1 << 30):
        with tf.Graph().as_default(), tf.Session() as sess:
            fed = tf.placeholder(tf.float32, x.shape)
            y = getattr(tf.nn, name)(fed, [1, window, window, 1], [1, 1, 1, 1], "SAME")
            found = []
            steps = lies.steps(lambda: found.extend(sess.run([y, tf.gradients(y, fed)[0]], {fed: x})))  # noqa: B023
            assert steps < 100_000
        whole = x.max((1, 2), keepdims=True) if name == "max_pool" else x.mean((1, 2), keepdims=True)
        np.testing.assert_allclose(found[0], np.broadcast_to(whole, x.shape), rtol=1e-6)
        given = 15 * (x == whole) if name == "max_pool" else np.ones(x.shape)
        np.testing.assert_allclose(found[1], given, rtol=1e-5)


@pytest.mark.parametrize("op", INPUTS)
def test_a_node_without_its_inputs_is_refused(op):
    message = lying_graphs.graph()
    lying_graphs.node(message.node, "x", "Placeholder", dtype=lying_graphs.FLOAT)
    lying_graphs.node(message.node, "y", op, *["x"] * (INPUTS[op] - 1), T=lying_graphs.FLOAT)
    with tf.Graph().as_default() as graph, pytest.raises(InvalidArgumentError, match=f"'y' is no {op}"):
        tf.import_graph_def(message)
    assert graph.get_operations() == []


def test_a_variable_without_a_dtype_is_refused():
    message = lying_graphs.graph()
    lying_graphs.node(message.node, "v", "VariableV2", shape=())
    lying_graphs.node(message.node, "r", "Neg", "v", T=lying_graphs.FLOAT)
    with tf.Graph().as_default(), pytest.raises(InvalidArgumentError, match="'v' has no dtype"):
        tf.import_graph_def(message)


def test_what_reads_itself_is_refused():
    """Identities in a circle behind a sum, where the reshape that undoes it is looked for."""
    message = lying_graphs.sums(1)
    lying_graphs.node(message.node, "a", "Identity", "sum0", "b", T=lying_graphs.FLOAT)
    lying_graphs.node(message.node, "b", "Identity", "a", T=lying_graphs.FLOAT)
    with tf.Graph().as_default(), pytest.raises(GraphdockError):
        tf.import_graph_def(message)


def test_a_branch_that_takes_a_tensor_twice_can_be_written_again():
    """Each Switch of it was a placeholder in the body; those of one tensor stayed there, and no reader took them."""
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(lying_graphs.branches_beside(3), name="")
        text = graph.to_json()
    with tf.Graph().as_default() as again, tf.Session() as sess:
        tf.import_graph_def(text, name="")
        assert again.to_json() == text
        assert sess.run(["m0:0", "m2:0"], {"x:0": 3.0, "p:0": True}) == [-3.0, -3.0]
