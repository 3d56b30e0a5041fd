"""Graphs as TensorBoard draws them: every name that a node reads is a node, bodies stand in their scopes."""

from __future__ import annotations

import graphdock as tf
import numpy as np
from graphdock_tensorflow.graphs.drawing import draw


def nodes(graph):
    made = {}
    for node in draw(graph).node:
        assert node.name not in made, "names are unique"
        made[node.name] = node
    for node in made.values():
        for name in node.input:
            assert name.lstrip("^").split(":")[0] in made, (node.name, name)
    return made


def attrs(node):
    return dict(node.attr)


def test_devices_scopes_inputs_and_attributes():
    with tf.Graph().as_default() as graph:
        with tf.name_scope("layer"), tf.device("/cpu:1"):
            x = tf.placeholder(tf.float32, [None, 3], name="x")
            first, second = tf.split(x, [1, 2], 1)
            with tf.control_dependencies([first]), tf.colocate_with(x):
                y = tf.transpose(second, name="y", perm=[1, 0])
        tf.constant(np.zeros(1000, np.float32), name="large")
        tf.constant(["a", "bc"], name="words")
        found = nodes(graph)
    assert len(found) == len(graph.get_operations())
    assert found["layer/x"].device == "/device:CPU:1" and found["layer/x"].op == "Placeholder"
    assert found["layer/y"].input[0] == f"{first.op.name}:1" and found["layer/y"].input[-1] == f"^{first.op.name}"
    told = attrs(found["layer/x"])
    assert told["dtype"].type == 1 and [d.size for d in told["shape"].shape.dim] == [-1, 3]
    assert [d.size for d in attrs(found[y.op.name])["_output_shapes"].list.shape[0].dim] == [2, -1]
    assert attrs(found["layer/y"])["_class"].list.s == [b"loc:@layer/x"]
    large = attrs(found["large"])["value"].tensor
    assert large.tensor_content == b"" and large.tensor_shape.dim[0].size == 1000
    assert attrs(found["words"])["value"].tensor.string_val == [b"a", b"bc"]


def test_bodies_stand_in_scopes_and_are_joined_to_their_node():
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2], name="x")
        w = tf.placeholder(tf.float32, [2], name="w")

        def body(i, a):
            return i + 1, tf.cond(i > 1, lambda: a * w, lambda: a)

        tf.while_loop(lambda i, a: i < 3, body, [tf.constant(0), x], name="loop")
        tf.py_func(lambda a: a, [x], tf.float32, name="python")
        found = nodes(graph)
    assert "python" in found, "a graph that no file can hold is drawn all the same"
    inside = [name for name in found if name.startswith("loop/")]
    assert any(name.startswith("loop/body/cond/") and found[name].op == "Mul" for name in inside)
    placeholders = [found[n] for n in inside if found[n].op == "Placeholder"]
    assert placeholders and all(len(p.input) == 1 for p in placeholders), "each reads what it has its value from"
    assert {p.input[0] for p in placeholders} >= {"x", "w"}
    (loop,) = (n for n in found.values() if n.op == "While")
    assert any(name.startswith("loop/body/") for name in loop.input), "it reads what its bodies return"
