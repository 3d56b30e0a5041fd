"""A page of a plan: each node's device, kernel and seconds as ``explain`` has them, and nothing that a browser would load."""

from __future__ import annotations

import json
import re

import graphdock as tf
import numpy as np
import pytest
from graphdock_profiler.plan_page import plan_facts, plan_page


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def explained(fetches, feed, **fields):
    with tf.Session(config=tf.SessionConfig(**fields)) as session:
        return session.explain(fetches, feed)


def program():
    x = tf.placeholder(tf.float32, [8, 16], name="x")
    h = tf.layers.dense(x, 4, activation=tf.nn.relu)
    loss = tf.reduce_mean(tf.cond(tf.reduce_sum(h) > 0, lambda: h * 2.0, lambda: h))
    return [loss, tf.train.AdamOptimizer().minimize(loss)], {x: np.zeros((8, 16))}


def test_page_holds_every_row_and_loads_nothing():
    found = explained(*program())
    page = plan_page(found)
    embedded = re.search(r'<script type="application/json" id="facts">(.*?)</script>', page, re.S).group(1)
    facts = json.loads(embedded)
    assert facts == json.loads(json.dumps(plan_facts(found)))
    rows = [[r.node, r.op, r.shapes, r.device, r.kernel, r.seconds, r.known_from] for r in found.rows]
    assert [n[:7] for n in facts["nodes"]] == rows and len({n[8] for n in facts["nodes"]}) > 1
    assert page.count("</script>") == 2 and "<" not in embedded and not re.search(r"(src|href)=|https?:|@\w+@", page)
    assert found.summary().split(" -> ")[0] in page


def test_nodes_begin_after_what_they_read_and_devices_do_one_thing_at_a_time():
    facts = plan_facts(explained(*program()))
    nodes, begins = facts["nodes"], dict(zip(facts["own"], facts["begins"], strict=True))
    ends = {i: begin + (nodes[i][5] or 0.0) for i, begin in begins.items()}
    busy = {}
    for i, begin in begins.items():
        assert all(ends[r] <= begin for r in nodes[i][9] if r in ends)
        assert busy.get(nodes[i][3], 0.0) <= begin
        busy[nodes[i][3]] = ends[i]


def test_memory_is_what_is_alive():
    x = tf.placeholder(tf.float32, [256])
    a = tf.tanh(x)
    b = tf.reshape(a, [16, 16])
    c = tf.exp(a)
    y = tf.matmul(b, tf.reshape(c, [16, 16]))
    facts = plan_facts(explained(y, {x: np.zeros(256)}))
    ops = [facts["nodes"][i][1] for i in facts["own"]]
    (alive,) = facts["memory"].values()
    by_op = dict(zip(ops, alive, strict=True))
    assert (by_op["Tanh"], by_op["Exp"], by_op["MatMul"]) == (1024, 2048, 3072)
