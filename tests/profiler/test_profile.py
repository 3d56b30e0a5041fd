"""Profiles add up what steps reported: hand-made events, and steps of real programs."""

from __future__ import annotations

import json

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import TraceEvent
from graphdock_profiler import Held, Profile, Row, profile

US = 1e-6


def step(*events, seconds=100 * US):
    metadata = tf.RunMetadata()
    metadata.events, metadata.start, metadata.seconds = events, 1.0, seconds
    return metadata


def kernel(name, op, seconds, nbytes=0, start=1.0):
    return TraceEvent(name, "cpu:0", start, seconds * US, "kernel", op, f"cpu.{op.lower()}", nbytes)


def test_rows_are_averages_over_the_steps_the_dearest_first():
    copy = TraceEvent("a", "queued:0", 1.0, 10 * US, "copy", "Transfer", "", 40)
    made = Profile([step(kernel("a", "Mul", 10, 8), kernel("b", "Mul", 20, 8), copy), step(kernel("a", "Mul", 20, 8))])
    assert made.rows("node") == [
        Row("a", "cpu.mul", "cpu:0", 1.0, pytest.approx(15 * US), pytest.approx(0.5), 8.0),
        Row("b", "cpu.mul", "cpu:0", 0.5, pytest.approx(10 * US), pytest.approx(1 / 3), 4.0),
        Row("a", "copy", "queued:0", 0.5, pytest.approx(5 * US), pytest.approx(1 / 6), 20.0),
    ]
    assert [(r.name, r.calls) for r in made.rows("op")] == [("Mul", 1.5), ("copy", 0.5)]
    assert [(r.name, r.calls) for r in made.rows("kernel")] == [("cpu.mul", 1.5), ("copy", 0.5)]
    assert [(r.name, r.nbytes) for r in made.rows("device")] == [("cpu:0", 12.0), ("queued:0", 20.0)]
    assert made.rows("op")[0].rate == pytest.approx(12 / (25 * US))


def test_the_quicker_half_of_the_steps_counts_and_sums_are_of_the_same_steps(monkeypatch):
    monkeypatch.setattr(Profile, "held", lambda self: {})
    slow = [step(kernel("a", "Mul", 900), seconds=1000 * US) for _ in range(2)]
    quick = [step(kernel("a", "Mul", 10), seconds=20 * US), step(kernel("a", "Mul", 30), seconds=40 * US)]
    made = Profile([slow[0], *quick, slow[1]], plain=[25 * US, 5e-3, 15 * US, 6e-3])
    assert made.counted == tuple(quick) and made.seconds == pytest.approx(30 * US)
    assert made.rows("op")[0].seconds == pytest.approx(20 * US) and made.untraced_seconds == pytest.approx(20 * US)
    first, second = made.summary().splitlines()[:2]
    assert first.startswith("4 traced steps, of which the quickest 2 count: 30 us each, 20 us of it in 1 calls")
    assert second == "session.run without a trace, feeds and fetches included: 20 us"


def test_the_calls_of_a_step_take_no_longer_than_the_step():
    train, feed = program()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        made = profile(sess, train, feed, steps=30)
    assert sum(row.seconds for row in made.rows()) <= made.seconds


def test_shares_of_every_grouping_add_up_to_one():
    made = Profile([step(*[kernel(f"n{i}", "Mul" if i % 2 else "Add", i + 1) for i in range(9)])])
    for by in ("node", "op", "kernel", "device"):
        assert sum(r.share for r in made.rows(by)) == pytest.approx(1)


def test_steps_that_were_not_traced_are_refused():
    for steps in ([], [tf.RunMetadata()]):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)no step was traced.*FULL_TRACE"):
            Profile(steps)


def test_a_grouping_that_does_not_exist_is_refused_with_the_ones_that_do():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)no rows by 'nodes'.*node, op, kernel, device"):
        Profile([step(kernel("a", "Mul", 1))]).rows("nodes")


def test_a_table_shows_the_dearest_and_sums_up_the_others():
    made = Profile([step(*[kernel(f"n{i}", "Mul", 10 - i, 2048) for i in range(5)])])
    lines = made.table(limit=2).splitlines()
    assert lines[0].split() == ["node", "calls", "time", "share", "bytes", "rate", "kernel"]
    assert lines[1].split()[:8] == ["n0", "1", "10", "us", "25.0%", "2", "KiB", "195"]
    assert lines[-1] == "and 3 more, 21 us" and len(lines) == 4
    assert len(made.table(limit=None).splitlines()) == 6


def program():
    x = tf.placeholder(tf.float32, [32, 64], name="x")
    w = tf.Variable(tf.zeros([64, 10]), name="w")
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - tf.constant(np.ones((32, 10), np.float32))))
    return tf.train.GradientDescentOptimizer(0.1).minimize(loss), {x: np.ones((32, 64), np.float32)}


def test_a_step_is_profiled_and_each_kernel_of_its_plan_has_its_row():
    train, feed = program()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        made = profile(sess, train, feed, steps=4, warmup=1)
        explained = sess.explain(train, feed).kernels()
        rows = {r.name: r.calls for r in made.rows("kernel") if "." in r.name}
        assert rows == explained
        held = made.held()["host"]
    assert len(made.steps) == len(made.plain) == 4
    assert (
        held == Held(held.buffers, 64 * 10 * 4, held.constants) and held.buffers > 0 and held.constants >= 32 * 10 * 4
    )
    assert made.seconds > 0 and "session.run without a trace" in made.summary()


def test_facts_are_plain_data_and_the_trace_is_a_file(tmp_path):
    train, feed = program()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        made = profile(sess, train, feed, steps=2)
    facts = json.loads(json.dumps(made.facts()))
    assert facts["steps"] == 2 and facts["held"]["host"]["variables"] == 2560
    assert {row["name"] for row in facts["op"]} >= {"MatMul", "Sub", "ResourceApplyGradientDescent"}
    made.save(tmp_path / "trace.json")
    assert len(json.loads((tmp_path / "trace.json").read_text())["traceEvents"]) == len(made.chrome()["traceEvents"])


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"warmup": -1}, {"steps": "a"}, {"warmup": None}])
def test_wrong_counts_are_refused_by_name(wrong):
    train, feed = program()
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match=f"profile: {next(iter(wrong))}"):
        profile(sess, train, feed, **wrong)
