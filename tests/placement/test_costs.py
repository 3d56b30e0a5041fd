"""The cost model: what traced steps took beats what follows of rates, and each prediction says which of the two it is."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import Rates, TraceEvent
from graphdock.plugin.host import Host
from graphdock_cpu.device import CpuDevice

TRACED = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)


@pytest.fixture
def host(monkeypatch, tmp_path):
    """A host that knows nothing but the rates of its cpus."""
    monkeypatch.setattr("graphdock.measured_times.cache_dir", lambda: tmp_path)
    monkeypatch.setattr(CpuDevice, "rates", lambda self: Rates(1e9, 1e10, 1e-6))
    return Host()


def program():
    x = tf.placeholder(tf.float32, [64, 64], name="x")
    return x, tf.tanh(tf.matmul(x, x, name="product"), name="curve")


def test_rates_answer_until_a_step_was_traced_and_what_it_took_afterwards(host):
    x, y = program()
    feed = {x: np.ones((64, 64), np.float32)}
    with tf.Session(host=host) as sess:
        before = {r.node: r for r in sess.explain(y, feed).rows}
        assert before["product"].seconds == pytest.approx(1e-6 + 2 * 64**3 / 1e9)
        assert before["product"].known_from == "rates" and before["product"].time.startswith("~")
        sess.run(y, feed)
        sess.run(y, feed, TRACED, tf.RunMetadata())
        after = {r.node: r for r in sess.explain(y, feed).rows}
    assert after["product"].known_from == after["curve"].known_from == "measured"
    assert after["product"].predicted == before["product"].seconds != after["product"].seconds
    with tf.Session(host=Host()) as sess:  # another process would find the same
        explained = sess.explain(y, feed)
    assert {r.node: r.seconds for r in explained.rows} == {n: r.seconds for n, r in after.items()}
    assert explained.seconds()["unknown"] == 0 and explained.facts()["seconds"]["rates"] == 0


def test_another_shape_is_another_cost_and_an_unknown_one_none(host):
    x = tf.placeholder(tf.float32, [None])
    some = tf.tanh(tf.boolean_mask(x, x > 0.0), name="some")
    y = tf.exp(x, name="y")
    with tf.Session(host=host) as sess:
        for _ in range(2):
            sess.run([some, y], {x: np.ones(1000)}, TRACED, tf.RunMetadata())
        rows = {r.node: r for r in sess.explain([some, y], {x: np.ones(1000)}).rows}
        other = {r.node: r for r in sess.explain([some, y], {x: np.ones(7)}).rows}
    assert rows["y"].known_from == "measured" and other["y"].known_from == "rates"
    assert rows["some"].seconds is None and rows["some"].time == "?" and rows["some"].known_from == "unknown"


def test_transfers_are_measured_by_their_memories_and_bytes(host):
    config = tf.SessionConfig(device_count={"cpu": 2}, options={"cpu": {"memories": "apart"}})
    x = tf.placeholder(tf.float32, [100])
    with tf.device("/cpu:1"):
        y = tf.tanh(x)
    with tf.Session(host=host, config=config) as sess:
        costs = sess._planner.costs
        guess = costs.transfer(400, "host", "cpu:1")
        assert guess == pytest.approx(1e-6 + 800 / 1e10)
        for _ in range(2):
            sess.run(y, {x: np.ones(100)}, TRACED, tf.RunMetadata())
        assert costs.transfer(400, "host", "cpu:1") != guess
        assert costs.transfer(800, "host", "cpu:1") == pytest.approx(1e-6 + 1600 / 1e10)
        assert costs.transfer(400, "host", "host") == 0.0
        assert all(r.known_from == "measured" for r in sess.explain(y, {x: np.ones(100)}).rows)


def test_nodes_that_a_trace_does_not_tell_apart_are_left_out(host):
    x, y = program()
    with tf.Session(host=host) as sess:
        plan = sess.plan(y, {x: np.ones((64, 64))})
        for node in plan.graph.nodes:
            node.origins = ("one",)
            node.op = "Same"
        plan.learn([TraceEvent("one", "cpu:0", 0.0, 1.0, "kernel", "Same", "k")], False)
        assert plan.costs().predict(plan.graph.nodes[-1]).source != "measured"


def test_nodes_of_one_operation_are_told_apart_by_their_bytes(host):
    x = tf.placeholder(tf.float32, [8, 4], name="x")
    with tf.Session(host=host) as sess:
        plan = sess.plan([tf.matmul(x, tf.ones([4, 2])), tf.matmul(x[:2], tf.ones([4, 2]))], {x: np.ones((8, 4))})
        whole, part = (n for n in plan.graph.nodes if n.op == "MatMul")
        part.origins = whole.origins
        for nbytes, seconds in ((4 * (32 + 8 + 16), 2.0), (4 * (8 + 8 + 4), 1.0), (3, 5.0)):
            event = TraceEvent(whole.origin, "cpu:0", 0.0, seconds, "kernel", "MatMul", "cpu.mat_mul", nbytes)
            plan.learn([event], False)
        assert [plan.costs().predict(n).seconds for n in (whole, part)] == [2.0, 1.0]


def test_a_transposed_product_has_a_time_of_its_own(host):
    x = tf.placeholder(tf.float32, [4, 4], name="x")
    with tf.Session(host=host) as sess:
        plan = sess.plan([tf.matmul(x, x), tf.matmul(x, x, transpose_b=True)], {x: np.ones((4, 4))})
        one, other = (n for n in plan.graph.nodes if n.op == "MatMul")
        plan.learn([TraceEvent(one.origin, "cpu:0", 0.0, 2.0, "kernel", "MatMul")], False)
        assert [plan.costs().predict(n).source for n in (one, other)] == ["measured", "rates"]


def test_an_executor_that_tells_no_times_is_not_believed(host, caplog):
    x, y = program()
    with tf.Session(host=host) as sess:
        plan = sess.plan(y, {x: np.ones((64, 64))})
        for wrong in (float("nan"), -1.0):
            plan.learn([TraceEvent("product", "cpu:0", 0.0, wrong, "kernel", "MatMul", "cpu.mat_mul")], False)
        assert caplog.text.count("a cost that is none") == 2
        product = next(n for n in plan.graph.nodes if n.op == "MatMul")
        assert plan.costs().predict(product).source == "rates"


def test_a_device_without_rates_leaves_what_was_not_measured_unknown(host, monkeypatch):
    monkeypatch.setattr(CpuDevice, "rates", lambda self: None)
    x, y = program()
    with tf.Session(host=host) as sess:
        explained = sess.explain(y, {x: np.ones((64, 64))})
    assert {r.known_from for r in explained.rows} == {"unknown"} and " unknown time" in explained.summary()


def test_devices_that_differ_in_their_number_alone_have_the_same_rates(host, monkeypatch):
    asked = []

    def measured(self):
        asked.append(self.info.index)
        return Rates(1e9 + len(asked), 1e10, 1e-6)  # two measurements are never equal

    monkeypatch.setattr(CpuDevice, "rates", measured)
    x, y = program()
    with tf.device("/cpu:1"):
        z = tf.matmul(x, x, name="other")
    with tf.Session(config=tf.SessionConfig(device_count={"cpu": 2}), host=host) as sess:
        rows = {r.node: r for r in sess.explain([y, z], {x: np.ones((64, 64), np.float32)}).rows}
    assert (rows["product"].device, rows["other"].device) == ("cpu:0", "cpu:1")
    assert rows["product"].seconds == rows["other"].seconds and len(asked) == 1


def test_what_one_device_took_its_twin_would_take(host):
    x, y = program()
    with tf.device("/cpu:1"):
        z = tf.matmul(x, x, name="other")
    with tf.Session(config=tf.SessionConfig(device_count={"cpu": 2}), host=host) as sess:
        plan = sess.plan([y, z], {x: np.ones((64, 64), np.float32)})
        plan.learn([TraceEvent("product", "cpu:0", 0.0, 2.0, "kernel", "MatMul", "cpu.mat_mul")], False)
        rows = {r.node: r for r in sess.explain([y, z], {x: np.ones((64, 64), np.float32)}).rows}
    assert (rows["product"].device, rows["other"].device) == ("cpu:0", "cpu:1")
    assert rows["product"].seconds == rows["other"].seconds == 2.0 and rows["other"].known_from == "measured"
