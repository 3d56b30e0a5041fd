"""Tables of levels: which rows wait for which, and what they leave empty."""

from __future__ import annotations

import graphdock as tf
import pytest
from graphdock_dataflow.level import EMPTY


def tables_of(tensors, feeds=None):
    """The tables of a plan's graph, and the rows by the names of their nodes."""
    with tf.Session(config=tf.SessionConfig(executor="dataflow", passes={"cse": False})) as sess:
        table = sess.plan(tensors, feeds).program.tables
        root = next(iter(table.values()))
        return table, {row.node.origin: number for number, row in enumerate(root.rows) if row.node is not None}


def test_a_chain_waits_for_one_row_each_and_ends_with_the_last():
    x = tf.placeholder(tf.float32, [2], name="x")
    a = tf.tanh(x, name="a")
    b = tf.sin(a, name="b")
    tables, rows = tables_of(b)
    (root,) = tables.values()
    assert root.rows[rows["a"]].solo == (rows["b"],) and root.rows[rows["a"]].joint == ()
    assert root.roots == (rows["a"],)
    assert root.rows[rows["b"]].solo == (len(root.rows) - 1,)
    assert root.rows[rows["b"]].drops == root.rows[rows["a"]].makes  # the only reader lets go of it
    assert root.rows[rows["b"]].makes == root.outputs


def test_what_several_read_is_let_go_of_by_a_row_of_its_own_that_waits_for_all():
    x = tf.placeholder(tf.float32, [2], name="x")
    a = tf.tanh(x, name="a")
    b, c = tf.sin(a, name="b"), tf.cos(a, name="c")
    tables, rows = tables_of([b, c])
    (root,) = tables.values()
    release = next(i for i, row in enumerate(root.rows) if row.drops == root.rows[rows["a"]].makes)
    assert root.rows[release].node is None and root.pending[release] == 2
    assert release in root.rows[rows["b"]].joint and release in root.rows[rows["c"]].joint


def test_feeds_constants_and_results_are_never_let_go_of():
    x = tf.placeholder(tf.float32, [2], name="x")
    a = tf.add(x, [1.0, 2.0], name="a")
    tables, _ = tables_of([a, tf.tanh(a, name="b")])
    (root,) = tables.values()
    kept = {0, EMPTY, *root.inputs, *root.outputs, *root.constants}
    assert not kept & {slot for row in root.rows for slot in row.drops}


def test_what_only_names_a_value_anew_has_no_row():
    x = tf.placeholder(tf.float32, [2], name="x")
    a = tf.identity(tf.tanh(x, name="a"), name="i")
    tables, rows = tables_of(tf.sin(tf.identity(a, name="j"), name="b"))
    assert set(rows) == {"a", "b"}


def test_a_group_waits_for_all_that_it_groups():
    x = tf.placeholder(tf.float32, [2], name="x")
    v = tf.Variable([0.0, 0.0], name="v")
    w = tf.Variable([0.0, 0.0], name="w")
    group = tf.group(v.assign_add(x), w.assign_add(x), name="g")
    with tf.control_dependencies([group]):
        after = tf.identity(x, name="after")
    tables, rows = tables_of(after)
    root = next(iter(tables.values()))
    assert root.pending[rows["g"]] == 2


@pytest.mark.parametrize("parallel, late", [(10, True), (1, False)])
def test_inputs_of_a_loop_come_one_by_one_where_its_iterations_overlap(told, parallel, late):
    x = tf.placeholder(tf.float32, [2])
    loop = tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, tf.tanh(v)), [0, x], parallel_iterations=parallel)
    with told(hand_off=0.0) as sess:
        plan = sess.plan(loop)
        tables, body_graph = plan.program.tables, plan.graph.holders[0].bodies[1]
    body = tables[body_graph]
    assert (len(body.arrivals) == 2) is late
    assert sorted(row.gives for row in body.rows if row.gives is not None) == ([0, 1] if late else [])
