"""Primitives that are neither branch nor loop: kept, computed as TensorFlow 2.21 did, and written again.

``primitive_graphs.json`` has the graphs and its values, which running ``primitive_graphs.py`` with TensorFlow writes.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path

import graphdock as tf
import numpy as np
import pytest
from graphdock_tensorflow.graphs import reading

GRAPHS = json.loads(Path(__file__).with_name("primitive_graphs.json").read_text())


def of_tensorflow(name):
    made = tf.GraphDef()
    made.ParseFromString(base64.b64decode(GRAPHS[name]["graph"]))
    return made


def values(graph, name, **config):
    facts = GRAPHS[name]
    found = []
    with tf.Session(graph=graph, config=tf.SessionConfig(**config)) as session:
        for given in facts["given"]:
            row = []
            for tensor in facts["fetched"]:
                try:
                    row.append(np.asarray(session.run(tensor, dict(zip(facts["fed"], given, strict=True)))).tolist())
                except tf.errors.InvalidArgumentError as error:
                    assert "dead" in str(error)
                    row.append("DEAD")
            found.append(row)
    return found


def imported(source):
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(source, name="")
    return graph


@pytest.mark.parametrize("kept", [False, True], ids=["as they are read", "as primitives"])
@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_of_primitives_gives_what_tensorflow_gives(name, kept, monkeypatch):
    if kept:
        monkeypatch.setattr(reading, "is_other", lambda level: True)
    graph = imported(of_tensorflow(name))
    primitives = any(op.op_def.verb.primitive for op in graph.get_operations())
    assert primitives == (kept or name in ("three_ways", "exit_from_within"))
    assert values(graph, name, debug=True) == GRAPHS[name]["values"]
    again = imported(graph.as_graph_def())
    assert not primitives or again.as_graph_def() == graph.as_graph_def()
    assert values(again, name) == GRAPHS[name]["values"]
    plain = imported(graph.to_json())
    assert plain.to_json() == graph.to_json()
    assert values(plain, name, executor="dataflow") == GRAPHS[name]["values"]


def test_a_merge_that_takes_first_what_comes_later_is_told():
    made = of_tensorflow("exit_from_within")
    merge = next(node for node in made.node if node.op == "Merge")
    merge.input[:] = reversed(merge.input)
    with tf.Graph().as_default(), pytest.raises(tf.errors.GraphdockError, match="what enters stands behind"):
        tf.import_graph_def(made, name="")


def test_switches_and_merges_of_references_are_those_of_values():
    made = of_tensorflow("three_ways")
    for node in made.node:
        if node.op in ("Switch", "Merge"):
            node.op = f"Ref{node.op}"
    assert values(imported(made), "three_ways") == GRAPHS["three_ways"]["values"]


def test_a_trigger_stays_beside_primitives_and_is_else_a_no_op():
    made = tf.GraphDef()
    made.node.add(name="trigger", op="ControlTrigger")
    made.node.add(name="behind", op="NoOp", input=["^trigger"])
    assert [op.type for op in imported(made).get_operations()] == ["NoOp", "NoOp"]
    made.MergeFrom(of_tensorflow("three_ways"))
    graph = imported(made)
    assert graph.get_operation_by_name("trigger").type == "ControlTrigger"
    assert values(imported(graph.as_graph_def()), "three_ways") == GRAPHS["three_ways"]["values"]
