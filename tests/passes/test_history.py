"""Passes that changed a node, as `explain` tells of them."""

from __future__ import annotations

import json

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import Pass, Rewriter, hookimpl
from graphdock.contracts.ir import copy_node
from graphdock.plugin.host import Host


@pytest.fixture
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def explained(fetches, feed=None, host=None, **fields):
    with tf.Session(config=tf.SessionConfig(**fields), host=host) as session:
        return session.explain(fetches, feed)


def test_each_operation_that_is_gone_names_the_pass_that_dropped_it(graph):
    x = tf.placeholder(tf.float32, [3], name="x")
    same = tf.identity(x, name="same")
    one, two = tf.tanh(same, name="one"), tf.tanh(x, name="two")
    known = tf.add(tf.constant(1.0), tf.constant(2.0), name="known")
    told = explained(tf.add(tf.multiply(one, two), known, name="sum"))
    dropped = told.dropped()
    assert dropped["same"] == ("identities",) and dropped["two"] == ("cse",) and dropped["known"] == ("fold",)
    assert {row.node: row.passes for row in told.rows}["sum"] == ()
    (line,) = [line for line in str(told).splitlines() if line.startswith("passes  ")]
    assert "identities dropped 1" in line and "cse dropped" in line
    assert json.loads(told.to_json())["dropped"]["same"] == ["identities"]


def test_a_pass_that_is_off_drops_nothing(graph):
    x = tf.placeholder(tf.float32, [3], name="x")
    y = tf.tanh(x, name="one") * tf.tanh(x, name="two")
    assert "two" in explained(y).dropped()
    without = explained(y, passes={"cse": False})
    assert without.dropped() == {} and "cse" not in str(without)


def _doubled(graph, context):
    with Rewriter(graph) as change:
        for node in graph.nodes:
            if node.op == "Tanh":
                made = copy_node(node, node.inputs)
                change.replace(node, change.insert(made, before=node).outputs)


def test_a_node_that_another_one_stands_for_names_the_passes_of_third_parties(graph, process_host):
    host = process_host(Host())
    plugin = type("Plugin", (), {"register_passes": staticmethod(hookimpl(lambda: [made]))})
    made = Pass("again", "simplify", 45, "makes each tanh once more", _doubled)
    host.register("author", plugin())
    with tf.Graph(host).as_default():
        x = tf.placeholder(tf.float32, [3], name="x")
        told = explained(tf.tanh(x, name="y"), {x: np.ones(3)}, host)
    (row,) = told.rows
    assert row.passes == ("again",) and "    changed by again" in told.table(lost=True).splitlines()
    assert "passes  again changed 1" in str(told)


def test_plans_that_are_run_keep_nothing(graph):
    x = tf.placeholder(tf.float32, [3], name="x")
    metadata = tf.RunMetadata()
    with tf.Session() as session:
        session.run(tf.identity(x) + 1.0, {x: np.ones(3)}, run_metadata=metadata)
    assert metadata.plan.changes == {} and metadata.plan.reports
