"""Concurrency of plans: which the straight-line executor leaves to one with threads, and how long it expects them to take."""

from __future__ import annotations

from types import SimpleNamespace

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts.costs import Rates
from graphdock.plugin.host import Host
from graphdock_cpu.device import CpuDevice
from graphdock_executor.straight_line import concurrency
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.plain  # in debug mode no plan is left to threads
THREADS = {"inter_op_threads": 2, "intra_op_threads": 1}


@pytest.fixture
def host(tmp_path, monkeypatch):
    """A host that knows nothing but the rates of its cpus, which are slow."""
    monkeypatch.setattr("graphdock.measured_times.cache_dir", lambda: tmp_path)
    monkeypatch.setattr(CpuDevice, "rates", lambda self: Rates(1e9, 1e10, 1e-6))
    host = Host()
    yield host
    host.close()


def side_by_side(count=8, size=128):
    x = tf.placeholder(tf.float32, [size, size], name="x")
    return x, tf.add_n([tf.matmul(x * float(i), x) for i in range(1, count + 1)])


def one_after_another(count=8, size=128):
    x = y = tf.placeholder(tf.float32, [size, size], name="x")
    for i in range(1, count + 1):
        y = tf.matmul(y * (0.1 / i), x)
    return x, y


def ran(host, program, **fields):
    """Result of a step, the executor that ran it, and what is said of the others."""
    x, y = program
    feeds = {x: np.random.default_rng(0).normal(size=x.shape.as_list()).astype(np.float32)}
    with tf.Session(config=tf.SessionConfig(**fields), host=host) as sess:
        got = sess.run(y, feeds).tobytes()
        plan = sess.explain(y, feeds).plan
        return got, plan.executor, list(plan.refusals)


def test_products_side_by_side_are_left_to_threads_that_were_asked_for(host):
    program = side_by_side()
    want, executor, said = ran(host, program)
    assert executor == "straight_line" and not said, "nobody asked for threads"
    got, executor, (said,) = ran(host, program, **THREADS)
    assert got == want and executor == "dataflow"
    assert said.startswith("straight_line: 2 threads save about ")


@pytest.mark.parametrize(
    ("make", "fields"),
    [
        (one_after_another, THREADS),
        (side_by_side, {"inter_op_threads": 1, "intra_op_threads": 1}),
        (side_by_side, {"inter_op_threads": 2, "intra_op_threads": 2}),  # each product has both threads already
        (side_by_side, {**THREADS, "executor": "straight_line"}),
        (side_by_side, {**THREADS, "debug": True}),
        (lambda: side_by_side(2, 64), THREADS),  # as long as the threads take to wake
    ],
    ids=["chain", "one thread", "wide kernels", "by name", "debug", "short"],
)
def test_other_plans_are_not(host, make, fields):
    _, executor, said = ran(host, make(), **fields)
    assert executor == "straight_line" and not said


def test_a_plan_runs_although_no_other_executor_takes_it(host, monkeypatch):
    monkeypatch.setattr("graphdock_dataflow.executor.Dataflow.refuses", lambda self, placed: "not today")
    _, executor, said = ran(host, side_by_side(), **THREADS)
    assert executor == "straight_line"
    assert [s.split(":")[0] for s in said] == ["straight_line", "dataflow"]


class Node(SimpleNamespace):
    __hash__ = object.__hash__


@st.composite
def graphs(draw):
    """Nodes that come after some of those before them, and the seconds of each."""
    nodes: list[Node] = []
    for i in range(draw(st.integers(1, 12))):
        first = draw(st.lists(st.sampled_from(nodes), unique_by=id)) if nodes else []
        nodes.append(Node(name=i, inputs=[], control=first, order=[]))
    seconds = draw(st.lists(st.integers(1, 50), min_size=len(nodes), max_size=len(nodes)))
    return nodes, {node: s * 1e-3 for node, s in zip(nodes, seconds, strict=True)}


@settings(max_examples=60, deadline=None)
@given(graphs(), st.integers(1, 4))
def test_the_time_is_within_grahams_bounds(graph, workers):
    nodes, seconds = graph
    took = concurrency._makespan(nodes, seconds, workers)
    path: dict[Node, float] = {}
    for node in nodes:
        path[node] = seconds[node] + max([path[n] for n in node.control], default=0.0)
    total, longest = sum(seconds.values()), max(path.values())
    beside = len(nodes) * (concurrency._HAND_OFF + concurrency._NODE)
    assert max(longest, total / workers) <= took + 1e-12
    assert took <= total / workers + longest + beside
    assert concurrency._makespan(nodes, seconds, 1) >= total - 1e-12, "one by one"
