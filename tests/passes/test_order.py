"""Passes and order edges: reads are merged where no write stands between them; pruning drops order and joins what is left."""

from __future__ import annotations

import graphdock as tf
import pytest
from graphdock.contracts import PassContext
from graphdock.contracts.ir_check import check_order
from graphdock.passes.pipeline import known_passes, run_passes, simplifications
from graphdock.planning.translate import translate

OFF = dict.fromkeys(simplifications(), False)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def reads(graph):
    return [n.origins for n in graph.nodes if n.verb == "read"]


def made(fetches, targets=(), **switches):
    graph = translate(fetches, targets, [])
    host = tf.default_host()
    context = PassContext(lambda node: None, host.ops.get, host.ops.get("Const"))
    on = [row for name, row in known_passes(host).items() if row.each.phase == "simplify" and switches.get(name, True)]
    run_passes(graph, on, lambda row: context, verify=True)
    return graph


def test_reads_with_no_write_between_them_become_one():
    v = tf.Variable([1.0, 2.0])
    graph = made([v.read_value() * 2.0, v.read_value() * 3.0])
    assert len(reads(graph)) == 1


def test_a_write_between_two_reads_keeps_them_apart():
    v = tf.Variable([1.0, 2.0])
    first, second = v.read_value() * 2.0, v.read_value() * 2.0
    update = v.assign([0.0, 0.0], read_value=False)
    third = v.read_value() * 2.0
    graph = made([first, second, third], [update])
    assert len(reads(graph)) == 2
    (write,) = (n for n in graph.nodes if n.verb == "assign")
    before, after = (n for n in graph.nodes if n.verb == "read")
    assert write.order == (before,) and after.order == (write,)
    with tf.Session() as sess:
        sess.run(v.initializer)
        got = sess.run([first, second, third, update])
    assert [a.tolist() for a in got[:3]] == [[2.0, 4.0], [2.0, 4.0], [0.0, 0.0]]


def test_a_read_that_waits_stays_by_itself():
    v = tf.Variable([1.0, 2.0])
    first = v.read_value()
    with tf.control_dependencies([tf.no_op()]):
        second = v.read_value()
    assert len(reads(made([first, second]))) == 2


def test_a_write_that_nobody_needs_is_dropped_although_reads_are_ordered_after_it():
    """What only an unread output needs is dropped; an edge of the dropped write leads from its reads to the next write."""
    v = tf.Variable([1.0, 2.0])
    first = v.read_value()
    unread = v.assign([5.0, 5.0])
    second, last = v.read_value(), v.assign_add([1.0, 1.0], read_value=False)
    taken = tf.cond(tf.constant(True), lambda: (tf.identity(second), tf.identity(unread)), lambda: (second, second))[0]
    graph = made([first, taken], [last])
    assert [n.op for n in graph.nodes if n.verb == "assign" or "Assign" in n.op] == ["AssignAddVariableOp"]
    check_order(graph, "a test")


@pytest.mark.parametrize("switches", [{}, OFF])
def test_a_thousand_reads_around_a_dropped_write_need_no_product_of_edges(switches):
    v = tf.Variable([1.0, 2.0])
    before = [v.read_value() for _ in range(500)]
    unread = v.assign([5.0, 5.0])
    after = [v.read_value() for _ in range(500)]
    last = v.assign_add([1.0, 1.0], read_value=False)
    taken = tf.cond(
        tf.constant(True), lambda: (tf.constant(0.0), tf.identity(unread)), lambda: (0.0, tf.constant([0.0, 0.0]))
    )[0]
    graph = made([*before, *after, taken], [last], **switches)
    assert sum(len(n.order) for n in graph.nodes) <= 1002
