"""Scheduling for a budget of memory: no order of small plans needs less, results are the same to the bit, no peak is higher."""

from __future__ import annotations

import random
import re
from statistics import median

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import ArgDef, Builder, OpDef, PlanContext, check
from graphdock.device_name import DeviceSpec
from graphdock.dtypes import float32
from graphdock_fusion.schedule import schedule

OPS = [OpDef("N", inputs=tuple(ArgDef(f"x{i}", "float32") for i in range(count))) for count in range(4)]


def plan(seed):
    """A plan of seven nodes of random sizes, some of which wait for others; the last is returned."""
    rng = random.Random(seed)
    builder = Builder()
    values = []
    for number in range(7):
        read = rng.sample(values, min(len(values), rng.randrange(4)))
        waits = rng.sample(builder.graph.nodes, min(number, rng.choice([0, 0, 1])))
        outputs = [(float32, (rng.randrange(1, 9),))]
        values += builder.node(OPS[len(read)], f"n{number}", read, {}, outputs, waits)
        builder.graph.nodes[-1].device = DeviceSpec(None, None, "cpu", 0)
    return builder.finish(values[-1:], builder.graph.nodes[-1:])


def peak(graph, order):
    """Most bytes alive at once, told by hand."""
    most = held = 0
    for at, node in enumerate(order):
        alive = {v for n in order[: at + 1] for v in n.outputs}
        later = [v for n in order[at:] for v in n.inputs] + [*graph.outputs, *node.outputs]
        held = sum(4 * v.shape[0] for v in alive & set(later))
        most = max(most, held)
    return most


def orders(nodes, done=()):
    """Every order that edges allow."""
    if len(done) == len(nodes):
        yield done
    for node in nodes:
        if node not in done and {*(v.node for v in node.inputs), *node.control, *node.order} <= set(done):
            yield from orders(nodes, (*done, node))


def scheduled(graph, budget=1):
    context = PlanContext(lambda node: None, lambda name: OPS[0], OPS[0], memory_budget={"cpu": budget})
    schedule(graph, context)
    check(graph)
    return context.notes


def test_beside_every_order_of_small_plans():
    ratios = []
    for seed in range(60):
        graph = plan(seed)
        nodes = list(graph.nodes)
        before = peak(graph, nodes)
        best = min(peak(graph, order) for order in orders(nodes))
        (note,) = scheduled(graph)
        after = peak(graph, graph.nodes)
        assert best <= after <= before
        assert f"{after} B of buffers at most, {before} B as they stood" in note
        ratios.append(after / best)
        once = list(graph.nodes)
        scheduled(graph)
        assert graph.nodes == once, "twice is once"
    assert median(ratios) == 1 and max(ratios) < 1.3, sorted(ratios)[-5:]


def test_what_fits_stands():
    graph = plan(3)
    nodes = list(graph.nodes)
    assert not scheduled(graph, 1 << 20) and graph.nodes == nodes


def run(fetches, feeds, **fields):
    with tf.Session(config=tf.SessionConfig(**fields)) as sess:
        sess.run(tf.global_variables_initializer())
        explained = sess.explain(fetches, feeds)
        return [a.tobytes() for _ in range(2) for a in sess.run(fetches, feeds)], explained


@pytest.mark.parametrize("executor", ["straight_line", "dataflow"])
def test_branches_that_are_written_side_by_side_run_one_after_another(executor):
    x = tf.placeholder(tf.float32, [64, 64], name="x")
    w = tf.Variable(np.ones((64, 64), np.float32), name="w")
    branches = [tf.matmul(x, w * float(i)) for i in range(1, 13)]
    sums = [tf.reduce_max(tf.matmul(b, x), axis=1) for b in branches]
    total = tf.add_n(sums)
    with tf.control_dependencies([total]):
        fetches = [total, w.assign_add(x)]
    feeds = {x: np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)}
    fields = {"executor": executor}
    want, plain = run(fetches, feeds, **fields)
    fields["passes"] = {"recompute": False}
    got, explained = run(fetches, feeds, memory_budget={"cpu": "1KiB"}, **fields)
    assert got == want and explained.kernels() == plain.kernels()
    (note,) = [n for n in explained.notes() if n.startswith("pass schedule: ")]
    after, before = (float(n) for n in re.findall(r"([\d.]+) KiB", note))
    assert after < before / 3
    if executor == "straight_line":
        assert sum(explained.plan.arena_bytes.values()) < sum(plain.plan.arena_bytes.values()) / 2
    fields["passes"] = {"recompute": False, "schedule": False}
    assert run(fetches, feeds, memory_budget={"cpu": "1KiB"}, **fields)[0] == want
