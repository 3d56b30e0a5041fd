"""Any order that a plan's edges allow gives what the straight-line executor gives; an order edge less, and it may not.

The quick part runs with every change; the rest of the thousand programs is marked slow.
"""

from __future__ import annotations

import importlib.util
import itertools
import sys
from pathlib import Path

import graphdock as tf
import lab
import numpy as np
import pytest
from graphdock.passes.pipeline import simplifications
from graphdock.plugin.host import Host
from graphdock_dataflow.executor import Dataflow


class Shuffled(Dataflow):
    """The dataflow executor with a name of its own, so that it may stand beside the installed one."""

    name = "shuffled"


OFF = dict.fromkeys(simplifications(), False)
#: Orders in which each step is run.
ORDERS = 3


def order_edges(graph):
    """Every order edge (earlier, later) of a graph and its bodies that no path of other edges repeats, by the nodes' names."""
    found = []
    for level in graph.all_graphs():
        earlier = {n: {*(v.node for v in n.inputs if v.node is not None), *n.control, *n.order} for n in level.nodes}
        for node in level.nodes:
            for before in node.order:
                others = {v.node for v in node.inputs} | set(node.control) | (set(node.order) - {before})
                seen, stack = set(), [n for n in others if n is not None]
                while stack:
                    other = stack.pop()
                    if other not in seen:
                        seen.add(other)
                        stack += earlier[other]
                if before not in seen:
                    found.append((before.name, node.name))
    return found


def load(name):
    """A generator of random programs of tests/differential."""
    full = f"graphdock_differential_{name}"
    if full not in sys.modules:
        path = Path(__file__).parents[1] / "differential" / f"{name}.py"
        spec = importlib.util.spec_from_file_location(full, path)
        module = sys.modules[full] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[full]


def shuffled(graph, seed=0, without=(), **fields):
    """A session that runs every step in another order."""
    return told(graph, Shuffled(seed, without), **fields)


def handing(graph, threads, **fields):
    """A session that hands every kernel that it may to one of so many threads, and lets iterations overlap."""
    return told(graph, Shuffled(hand_off=0.0), inter_op_threads=threads, **fields)


def told(graph, executor, **fields):
    host = Host()
    lab.plug(host, register_executors=lambda: [executor])
    return tf.Session(graph=graph, config=tf.SessionConfig(executor=executor.name, **fields), host=host)


def seeds(quick, all_of_them):
    """The first few with every change, some more in the slow part, the others in the exhaustive one."""
    some = all_of_them // 4
    slow = [pytest.param(s, marks=pytest.mark.slow) for s in range(quick, some)]
    return [
        *range(quick),
        *slow,
        *[pytest.param(s, marks=pytest.mark.exhaustive) for s in range(max(quick, some), all_of_them)],
    ]


def assert_same(got, expected, what):
    got, expected = np.asarray(got), np.asarray(expected)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape), what
    if expected.dtype.kind == "f":  # NumPy's sine differs in the last bit between a strided and a contiguous array
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6, err_msg=what)
    else:
        np.testing.assert_array_equal(got, expected, err_msg=what)


@pytest.mark.parametrize("seed", seeds(25, 400))
@pytest.mark.sampled(16)
def test_random_graphs(seed):
    made = load("random_graph").Generator(30_000 + seed)
    program = made.grow(6 + seed % 30)
    rng = made.rng
    fetched = [int(i) for i in rng.integers(0, len(program.values), 6)]
    with tf.Graph().as_default() as graph:
        tensors = program.build()
        feeds = {tensors[i]: a for i, a in program.feeds.items()}
        fetches = [tensors[i] for i in fetched]
        with tf.Session(graph=graph) as plain, shuffled(graph, seed, passes=OFF if seed % 2 else {}) as sess:
            expected = plain.run(fetches, feeds)
            for _ in range(ORDERS):
                for i, a, b in zip(fetched, sess.run(fetches, feeds), expected, strict=True):
                    assert_same(a, b, f"v{i} of\n{program.listing()}")


@pytest.mark.parametrize("seed", seeds(25, 400))
@pytest.mark.sampled(16)
def test_random_updates(seed):
    """Each step three times over, from the same state."""
    made = load("random_updates").Updates(30_000 + seed)
    made.grow(4 + seed % 30, late=0.15 if seed % 3 == 0 else 0)
    rng, count = made.rng, len(made.nodes)
    steps = [[int(i) for i in rng.integers(0, made.fetchable, int(rng.integers(1, 6)))] for _ in range(3)]
    devices = 1 + 2 * (seed % 2)
    where = [f"/cpu:{i}" for i in rng.integers(0, 3, count)]
    config = {"device_count": {"cpu": devices}, "passes": OFF if seed % 5 == 0 else {}}
    with tf.Graph().as_default() as graph:
        variables, tensors = made.build(where.__getitem__ if devices > 1 else None)
        places = [tf.placeholder(v.dtype, v.shape) for v in variables]
        restore = [v.assign(p, read_value=False) for v, p in zip(variables, places, strict=True)]
        with shuffled(graph, seed, **config) as sess:
            sess.run([v.initializer for v in variables])
            state = {i: a.copy() for i, a in enumerate(made.initial)}
            for fetched in steps:
                before = {p: state[i].copy() for i, p in enumerate(places)}
                expected = made.step(state, fetched)
                for _ in range(ORDERS):
                    sess.run(restore, before)
                    got = sess.run([tensors[i] for i in fetched])
                    for i, a, b in zip(fetched, got, expected, strict=True):
                        np.testing.assert_array_equal(a, b, err_msg=made.what(i))
                    for variable, b in zip(variables, state.values(), strict=True):
                        np.testing.assert_array_equal(sess.run(variable), b, err_msg=variable.name)


@pytest.mark.parametrize("seed", seeds(10, 500))
@pytest.mark.sampled(16)
def test_random_loops_and_branches(seed):
    """In random order, on one thread, and on four."""
    loops = load("random_loops")
    program = loops.Loops(30_000 + seed)
    program.grow(6, 3)
    feeds = program.feeds()
    with tf.Graph().as_default() as graph:
        fed, values = program.build(feeds)
        everything = [v for kind in loops.KINDS for v in values[kind]]
        feed_dict = {fed[k][i]: v for k, vs in feeds.items() for i, v in enumerate(vs)}
        fields = {"shape_policy": "generic"} if seed % 2 else {}
        with tf.Session(graph=graph) as plain:
            expected = plain.run(everything, feed_dict)
        ways = shuffled(graph, seed, **fields), handing(graph, 1, **fields), handing(graph, 4, **fields)
        for session in ways:
            with session as sess:
                for _ in range(ORDERS):
                    for tensor, a, b in zip(everything, sess.run(everything, feed_dict), expected, strict=True):
                        assert_same(a, b, tensor.name)


def draws(rng, depth=2):
    """A tensor made of random draws, in branches and loops too."""
    kind = rng.integers(0, 6 if depth else 3)
    seed = int(rng.integers(1, 99))
    if kind == 0:
        return tf.random_uniform([2], seed=seed)
    if kind == 1:
        return tf.random_normal([2], seed=seed) * 2.0
    if kind == 2:
        return tf.nn.dropout(tf.ones([2]), 0.5, seed=seed)
    if kind == 3:
        test = tf.random_uniform([], seed=seed) > 0.5
        return tf.cond(test, lambda: draws(rng, depth - 1), lambda: draws(rng, depth - 1) - 1.0)
    if kind == 4:
        body = lambda i, a: (i + 1, a * 0.5 + draws(rng, depth - 1))  # noqa: E731
        return tf.while_loop(lambda i, a: i < 3, body, [0, tf.zeros([2])])[1]
    return draws(rng, depth - 1) + draws(rng, depth - 1)


@pytest.mark.parametrize("seed", seeds(10, 80))
@pytest.mark.sampled(2)
def test_random_ops_draw_the_same_numbers_in_any_order(seed):
    """Step by step: the n-th step draws the same on both executors."""
    rng = np.random.default_rng(seed)
    with tf.Graph().as_default() as graph:
        tensors = [draws(rng) for _ in range(4)]
        counter = tf.Variable(np.zeros(2, np.float32))
        tensors.append(counter.assign_add(tensors[0]))
        with tf.Session(graph=graph) as plain, shuffled(graph, seed) as sess:
            for each in (plain, sess):
                each.run(counter.initializer)
            for step in range(ORDERS):
                for tensor, a, b in zip(tensors, sess.run(tensors), plain.run(tensors), strict=True):
                    assert_same(a, b, f"step {step}, {tensor.name}")


@pytest.mark.parametrize("seed", seeds(8, 40))
def test_gradients_of_loops_and_branches(seed):
    """Histories are read in the order of the loop, whatever the order of nodes."""
    rng = np.random.default_rng(seed)

    def level(a, depth):
        kind = rng.integers(0, 5 if depth else 3)
        if kind == 0:
            return tf.tanh(a) * a
        if kind == 1:
            return tf.sin(a) + tf.random_uniform([2], seed=int(rng.integers(1, 99)), dtype=tf.float64)
        if kind == 2:
            return a * 0.5 - tf.square(a) * 0.1
        if kind == 3:
            return tf.cond(tf.reduce_sum(a) > 0.0, lambda: level(a, depth - 1), lambda: level(a * 2.0, depth - 1))
        rounds = int(rng.integers(1, 4))
        body = lambda i, b: (i + 1, level(b, depth - 1) + a)  # noqa: E731
        return tf.while_loop(lambda i, b: i < rounds, body, [0, a])[1]

    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float64, [2])
        y = level(level(x, 2), 2)
        (slope,) = tf.gradients(y, x)
        fetches = [y, slope]
        if seed % 3 == 0:
            fetches += [g for g in tf.gradients(slope, x) if g is not None]
        feeds = {x: rng.normal(size=2)}
        with tf.Session(graph=graph) as plain, shuffled(graph, seed) as sess:
            for _ in range(ORDERS):
                for tensor, a, b in zip(fetches, sess.run(fetches, feeds), plain.run(fetches, feeds), strict=True):
                    assert_same(a, b, tensor.name)


def test_an_update_that_runs_elsewhere_than_its_variable_lives():
    """The kernel gets a copy, and what it writes goes back."""
    from graphdock_testing import fake

    host = Host()
    fake.install(host)
    host.kernels.discard("fake")
    lab.plug(host, register_executors=lambda: [Shuffled(5)])
    with tf.Graph(host=host).as_default() as graph:
        with tf.device("/device:fake:0"):
            v = tf.Variable([1.0, 2.0])
        update = v.assign_add([10.0, 10.0])
        results = []
        for executor in ("auto", "shuffled"):
            fields = {"backends": ("fake", "cpu"), "executor": executor, "fallback": "allow"}
            with tf.Session(graph=graph, config=tf.SessionConfig(**fields)) as sess:
                sess.run(v.initializer)
                results.append([sess.run(update).tolist() for _ in range(3)])
    assert results[0] == results[1] == [[11.0, 12.0], [21.0, 22.0], [31.0, 32.0]]


def test_updates_on_two_devices_with_memory_of_their_own():
    from graphdock_testing import fake

    host = Host()
    fake.install(host)
    lab.plug(host, register_executors=lambda: [Shuffled(5)])
    with tf.Graph(host=host).as_default() as graph:
        with tf.device("/device:fake:0"):
            a = tf.Variable([1.0, 2.0])
        with tf.device("/device:fake:1"):
            b = tf.Variable([3.0, 4.0])
        before = a.read_value() * b.read_value()
        step = tf.group(a.assign_add(b.read_value()), b.assign(a.read_value() * 2.0))
        with tf.control_dependencies([step]):
            after = a.read_value() - b.read_value()
        config = {"backends": ("fake", "cpu"), "device_count": {"fake": 2}}
        results = []
        for executor in ("auto", "shuffled"):
            with tf.Session(graph=graph, config=tf.SessionConfig(executor=executor, **config)) as sess:
                sess.run(tf.global_variables_initializer())
                results.append([np.asarray(sess.run([before, after])).tolist() for _ in range(5)])
        assert results[0] == results[1]


def test_steps_that_call_python_and_block_nobody():
    """Nothing is held while Python runs: its own step on the same variable ends."""
    with tf.Graph().as_default() as graph:
        v = tf.Variable([1.0])
        more = v.assign_add([10.0], read_value=False)
        with shuffled(graph) as sess:
            called = tf.py_func(lambda a: (sess.run(more), a)[1], [v.read_value()], tf.float32)
            with tf.control_dependencies([called]):
                end = v.assign_add([100.0])
            sess.run(v.initializer)
            assert sess.run([called, end])[1].tolist() == [111.0]


# -- an order edge less


def differs(graph, fetches, variables, expected, without, orders=40):
    """Whether one of so many orders that do not know these edges gives something else."""
    with shuffled(graph, 1, without) as sess:
        for _ in range(orders):
            sess.run([v.initializer for v in variables])
            got = [*sess.run(fetches), *sess.run(variables)]
            if any(not np.array_equal(a, b) for a, b in zip(got, expected, strict=True)):
                return True
    return False


@pytest.mark.parametrize("seed", seeds(3, 20))
@pytest.mark.sampled(4)
def test_a_dropped_order_edge_is_caught(seed):
    """A chain of updates that do not commute, with reads between: every single edge of its plan is needed."""
    rng = np.random.default_rng(seed)
    with tf.Graph().as_default() as graph:
        v = tf.Variable(np.ones(2))
        reads, update = [], None
        for i in range(5):
            value = np.array([i + 2.0, i + 3.0])
            reads.append(v.read_value())
            update = v.assign(v.read_value() * value) if rng.integers(0, 2) else v.assign_add(value)
            reads.append(update)
        with tf.Session(graph=graph) as plain:
            plain.run(v.initializer)
            expected = [*plain.run(reads), plain.run(v)]
            plain.run(v.initializer)
            edges = order_edges(plain.plan(reads).graph)
        assert edges
        assert not differs(graph, reads, [v], expected, ())
        for edge in edges:
            assert differs(graph, reads, [v], expected, [edge]), edge


def test_a_dropped_edge_of_a_body_is_caught():
    with tf.Graph().as_default() as graph:
        v = tf.Variable(1.0)

        def body(i):
            first, second = v.assign(v.read_value() * 3.0, read_value=False), v.assign_add(1.0, read_value=False)
            with tf.control_dependencies([first, second]):
                return i + 1

        loop = tf.while_loop(lambda i: i < 3, body, [0])
        with tf.Session(graph=graph) as plain:
            plain.run(v.initializer)
            expected = [plain.run(loop), plain.run(v)]
            edges = order_edges(plain.plan(loop).graph)
        assert not differs(graph, [loop], [v], expected, ())
        assert edges
        for edge in edges:
            assert differs(graph, [loop], [v], expected, [edge]), edge


def test_there_are_a_thousand_programs():
    marks = itertools.chain.from_iterable(
        f.pytestmark for f in (test_random_graphs, test_random_updates, test_random_loops_and_branches,
                               test_random_ops_draw_the_same_numbers_in_any_order)
    )  # fmt: skip
    assert sum(len(m.args[1]) for m in marks if m.name == "parametrize") >= 1000 and ORDERS >= 3
