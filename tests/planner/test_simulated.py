"""The simulated placer beside exhaustive search, and on networks over devices of unequal rates."""

from __future__ import annotations

import itertools
import random

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import PlacementProblem, PlacementTask, PlacementTensor, Rates, simulate
from graphdock.placement.costs import Costs
from graphdock.plugin.host import Host
from graphdock_planner.simulated import Simulated


def problem(seed, limits=()):
    """A random graph of up to eight nodes over two devices, or six over three."""
    r = random.Random(seed)
    devices = tuple(f"d:{i}" for i in range(r.choice([2, 2, 3])))
    count = r.randint(4, 8 if len(devices) == 2 else 6)
    slower = {d: r.uniform(1, 3) for d in devices}
    tensors, tasks, groups = [PlacementTensor(r.randrange(1, 100) * 1000, "m0")], [], []
    for i in range(count):
        reads = tuple(sorted({r.randrange(len(tensors)) for _ in range(r.randint(1, 3))}))
        seconds = r.uniform(1, 20) * 1e-6
        groups.append(devices if r.random() < 0.85 else (r.choice(devices),))
        tensors.append(PlacementTensor(r.randrange(1, 100) * 1000))
        tasks.append(PlacementTask(f"t{i}", i, reads, (i + 1,), (), {d: seconds * s for d, s in slower.items()}))
    memory = {d: f"m{i}" for i, d in enumerate(devices)}
    links = {(a, b): (1e-6, r.choice([1e-11, 1e-10])) for a, b in itertools.permutations(memory.values(), 2)}
    rules = tuple(may[0] for may in groups)
    return PlacementProblem(devices, memory, tuple(groups), rules, tuple(tasks), tuple(tensors), links, dict(limits))


def length(found, devices):
    return simulate(found, devices).makespan


def placed(found):
    answer = Simulated().place(found)
    return [answer[i] for i in range(len(found.groups))]


def ratio(seed):
    found = problem(seed)
    best = min(length(found, devices) for devices in itertools.product(*found.groups))
    return length(found, placed(found)) / best


def test_it_is_close_to_exhaustive_search_on_small_graphs():
    ratios = sorted(ratio(seed) for seed in range(60))
    assert ratios[0] >= 1 - 1e-9
    assert ratios[len(ratios) // 2] <= 1.05
    assert ratios[int(len(ratios) * 0.95)] <= 1.15


@pytest.mark.exhaustive
def test_it_is_close_to_exhaustive_search_on_three_hundred_small_graphs(capsys):
    ratios = sorted((ratio(seed), seed) for seed in range(300))
    with capsys.disabled():
        print(
            f"median {ratios[150][0]:.3f}, 95 % {ratios[285][0]:.3f}, worst {ratios[-1][0]:.3f} (seed {ratios[-1][1]})"
        )
    assert ratios[150][0] <= 1.05 and ratios[285][0] <= 1.15


def test_a_limit_that_can_be_kept_is_kept():
    kept = 0
    for seed in range(40):
        free = problem(seed)
        peaks = simulate(free, placed(free)).peak
        limits = {space: int(peak * 0.7) for space, peak in peaks.items() if space != "m0"}
        found = problem(seed, limits.items())
        possible = any(not simulate(found, devices).excess(limits) for devices in itertools.product(*found.groups))
        if limits and possible:
            kept += not simulate(found, placed(found)).excess(limits)
            assert not simulate(found, placed(found)).excess(limits), seed
    assert kept >= 10


def test_no_device_is_a_worse_choice_alone_and_the_same_problem_has_the_same_answer():
    for seed in range(100, 130):
        found = problem(seed)
        answer = placed(found)
        assert answer == placed(problem(seed))
        for device in found.devices:
            alone = [device if device in may else may[0] for may in found.groups]
            assert length(found, answer) <= length(found, alone) + 1e-12


# -- networks over three cpus of unequal rates, with memories and threads of their own

CPUS = {"device_count": {"cpu": 3}, "options": {"cpu": {"memories": "apart"}}}
CONFIG = {**CPUS, "executor": "dataflow", "inter_op_threads": 3}


@pytest.fixture
def host(monkeypatch, tmp_path):
    monkeypatch.setattr("graphdock.measured_times.cache_dir", lambda: tmp_path)
    rates = [Rates(2e9, 1e11, 1e-6), Rates(1e9, 1e11, 1e-6), Rates(1.5e9, 1e11, 1e-6)]
    monkeypatch.setattr(Costs, "_rates", lambda self, device: rates[device.info.index])
    made = Host()
    yield made
    made.close()


def layers_of_lstm():
    batch, steps, size = 8, 6, 32
    x = tf.placeholder(tf.float32, [batch, steps, size], name="x")
    rows = [x[:, step, :] for step in range(steps)]
    for layer in range(3):
        w = tf.identity(tf.Variable(tf.random_normal([2 * size, 4 * size], seed=layer) * 0.1))
        h = c = tf.zeros([batch, size])
        made = []
        for row in rows:
            i, f, o, g = tf.split(tf.matmul(tf.concat([row, h], 1), w), 4, 1)
            c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
            h = tf.sigmoid(o) * tf.tanh(c)
            made.append(h)
        rows = made
    return tf.reduce_sum(rows[-1]), {x: np.ones((batch, steps, size), np.float32)}


def data_parallel():
    x, wanted = tf.placeholder(tf.float32, [96, 64], name="x"), tf.placeholder(tf.float32, [96, 10])
    variables = [tf.Variable(tf.random_normal(s, seed=s[1]) * 0.05) for s in ([64, 64], [64, 10])]
    found = []
    for part, labels in zip(tf.split(x, 3), tf.split(wanted, 3), strict=True):
        logits = tf.matmul(tf.nn.relu(tf.matmul(part, variables[0])), variables[1])
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(logits=logits, labels=labels))
        found.append(tf.gradients(loss, variables))
    means = [sum(each) / 3.0 for each in zip(*found, strict=True)]
    train = tf.train.AdagradOptimizer(0.1).apply_gradients(zip(means, variables, strict=True))
    with tf.control_dependencies([train]):
        after = tf.reduce_sum(variables[0].read_value())
    values = np.random.default_rng(0).normal(size=(96, 64)).astype(np.float32)
    return after, {x: values, wanted: np.eye(10, dtype=np.float32)[np.arange(96) % 10]}


@pytest.mark.parametrize("build", [layers_of_lstm, data_parallel], ids=lambda f: f.__name__)
def test_its_step_is_shorter_than_that_of_the_best_device_and_of_round_robin(host, build):
    fetched, feeds = build()
    results = []
    for placer in ("rules", "simulated"):
        config = tf.SessionConfig(placer=placer, passes={"products": False}, **CONFIG)
        with tf.Session(config=config, host=host) as sess:
            sess.run(tf.global_variables_initializer())
            explained = sess.explain(fetched, feeds)
            results.append(sess.run(fetched, feeds))
    assert results[0].tobytes() == results[1].tobytes()
    simulation = explained.plan.placement.simulation
    found = simulation.problem
    others = [[d if d in may else may[0] for may in found.groups] for d in found.devices]
    others.append([may[i % len(may)] for i, may in enumerate(found.groups)])
    assert simulation.timeline.makespan < 0.85 * min(length(found, devices) for devices in others)
    assert len({row.device for row in explained.rows if row.kernel.startswith("cpu.")}) == 3
    assert "placer simulated: a step of" in str(explained) and "cpu:2: " in str(explained)
    assert len(explained.facts()["timeline"]["tasks"]) == len(found.tasks)


@pytest.mark.parametrize("build", [layers_of_lstm, data_parallel], ids=lambda f: f.__name__)
def test_what_one_thread_computes_is_not_spread(host, build):
    """A step's thread computes for all three: what is gained is the quickest of them, and what it takes is all of it."""
    fetched, feeds = build()
    with tf.Session(config=tf.SessionConfig(placer="simulated", passes={"products": False}, **CPUS), host=host) as sess:
        sess.run(tf.global_variables_initializer())
        simulation = sess.explain(fetched, feeds).plan.placement.simulation
    found, spans = simulation.problem, sorted(span for _, *span in simulation.timeline.tasks)
    assert set(found.engines) == {"cpu:0", "cpu:1", "cpu:2"} and len(set(found.engines.values())) == 1
    assert all(end <= start + 1e-12 for (_, end), (start, _) in itertools.pairwise(spans))
    everything = sum(min(task.seconds.values()) for task in found.tasks)
    assert simulation.timeline.makespan >= everything * 0.999


@pytest.mark.parametrize("build", [layers_of_lstm, data_parallel], ids=lambda f: f.__name__)
def test_virtual_cpus_of_one_memory_and_one_thread_have_the_plan_of_the_rules(build):
    fetched, feeds = build()
    rows = []
    for placer in ("rules", "simulated"):
        with tf.Session(config=tf.SessionConfig(placer=placer, device_count={"cpu": 2})) as sess:
            rows.append([(row.node, row.device, row.kernel) for row in sess.explain(fetched, feeds).rows])
    assert rows[0] == rows[1]


def test_on_one_device_a_plan_is_that_of_the_rules():
    fetched, feeds = data_parallel()
    sources = []
    for placer in ("rules", "simulated"):
        with tf.Session(config=tf.SessionConfig(placer=placer)) as sess:
            explained = sess.explain(fetched, feeds)
            sources.append((explained.source, [(row.node, row.device, row.kernel) for row in explained.rows]))
    assert sources[0] == sources[1]
