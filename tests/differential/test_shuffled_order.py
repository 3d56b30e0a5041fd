"""Every order of a plan that its edges allow gives the same results: 1,000 programs, each in three random orders."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import PlanNode
from graphdock.passes.pipeline import simplifications

pytestmark = pytest.mark.modes  # every program runs in debug mode, too
OFF = dict.fromkeys(simplifications(), False)
ORDERS = 3


@pytest.fixture
def shuffle(shuffled_order, monkeypatch):
    made = shuffled_order.Shuffle()
    made.install(monkeypatch)
    return made


def run_updates(program, fields):
    """Four steps against the interpreter, results and variables, each plan in an order of its own."""
    rng = np.random.default_rng(program.seed)
    steps = [[int(i) for i in rng.integers(0, program.fetchable, int(rng.integers(1, 6)))] for _ in range(2)]
    with tf.Graph().as_default() as graph:
        variables, tensors = program.build()
        for _ in range(ORDERS):
            state = {i: a.copy() for i, a in enumerate(program.initial)}
            with tf.Session(graph=graph, config=tf.SessionConfig(**fields)) as sess:
                sess.run([v.initializer for v in variables])
                for number, fetched in enumerate([*steps, steps[0]]):
                    expected = program.step(state, fetched)
                    got = sess.run([tensors[i] for i in fetched])
                    for i, a, b in zip(fetched, got, expected, strict=True):
                        np.testing.assert_array_equal(a, b, err_msg=f"step {number}: {program.what(i)}")
                    for v, b in zip(variables, state.values(), strict=True):
                        np.testing.assert_array_equal(sess.run(v), b, err_msg=f"step {number}: {v.name}")


def updates(random_updates, seed):
    program = random_updates.Updates(seed)
    program.grow(4 + seed % 14, late=0.15 if seed % 3 == 0 else 0)
    return program


def parts(count):
    """The first part always runs, the others where there is time."""
    marks = [(), *[pytest.mark.exhaustive] * (count - 1)]
    return pytest.mark.parametrize("part", [pytest.param(p, marks=m) for p, m in enumerate(marks)])


@parts(10)
def test_updates_in_the_order_that_keeps_least(random_updates, part):
    fields = {"memory_budget": {"cpu": 1}, "passes": {"recompute": False, **OFF}}
    for seed in range(15 * part, 15 * part + 15):
        run_updates(updates(random_updates, seed), {**fields, "executor": ("straight_line", "dataflow")[seed % 2]})


@parts(10)
def test_updates_in_any_order(random_updates, shuffle, part):
    for seed in range(50 * part, 50 * part + 50):
        run_updates(updates(random_updates, seed), ({}, {"passes": OFF}, {"debug": True})[seed % 3])
    assert shuffle.moved > 100


@parts(6)
def test_graphs_in_any_order(random_graph, shuffle, part):
    for seed in range(50 * part, 50 * part + 50):
        made = random_graph.Generator(seed)
        program = made.grow(8 + seed % 24)
        fetched = [int(i) for i in made.rng.integers(0, len(program.values), 4)]
        expected = program.evaluate(program.feeds)
        with tf.Graph().as_default() as graph:
            tensors = program.build()
            feeds = {tensors[i]: a for i, a in program.feeds.items()}
            for number in range(ORDERS):
                fields = {"passes": OFF} if (seed + number) % 2 else {"debug": True}
                with tf.Session(graph=graph, config=tf.SessionConfig(**fields)) as sess:
                    for i, value in zip(fetched, sess.run([tensors[i] for i in fetched], feeds), strict=True):
                        random_graph.assert_close(value, expected[i], f"seed {seed}: v{i} of\n{program.listing()}")
    assert shuffle.moved > 100


@parts(10)
def test_loops_in_any_order(random_loops, shuffle, part):
    for seed in range(20 * part, 20 * part + 20):
        program = random_loops.Loops(seed)
        program.grow(5, 2)
        feeds = program.feeds()
        expected = program.interpret(feeds)
        with tf.Graph().as_default() as graph:
            fed, values = program.build(feeds)
            everything = [(k, i) for k in random_loops.KINDS for i in range(len(values[k]))]
            feed_dict = {fed[k][i]: v for k, vs in feeds.items() for i, v in enumerate(vs)}
            for number in range(ORDERS):
                fields = {"passes": OFF} if (seed + number) % 2 else {"debug": True}
                with tf.Session(graph=graph, config=tf.SessionConfig(**fields)) as sess:
                    for (k, i), got in zip(
                        everything, sess.run([values[k][i] for k, i in everything], feed_dict), strict=True
                    ):
                        # NumPy's sine differs in the last bit between a strided and a contiguous array
                        np.testing.assert_allclose(got, expected[k][i], rtol=1e-8, atol=1e-8, err_msg=f"{seed}: {k}{i}")
    assert shuffle.moved > 20


def test_what_is_printed_keeps_its_order(shuffle, capfd):
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.constant(1.0)
        lines = [tf.Print(x, [tf.constant(i)]) for i in range(8)]
        for _ in range(ORDERS):
            sess.run(lines)
            printed = capfd.readouterr()
            assert [int(line.strip("[] ")) for line in (printed.err or printed.out).split()] == list(range(8))


def test_without_order_edges_the_shuffle_finds_wrong_results(random_updates, shuffle):
    """So the edges are needed, and the programs above would show one that is missing."""
    shuffle.before = lambda node: [*(v.node for v in node.inputs if v.node is not None), *node.control]
    wrong = 0
    for seed in range(30):
        try:
            run_updates(updates(random_updates, seed), {})
        except AssertionError:
            wrong += 1
    assert wrong > 10


def test_one_edge_less_is_found(shuffle, shuffled_order):
    """A read, an update, a read and an update in one step: whichever edge is dropped, some order shows it."""

    def step(dropped, seed):
        seen = []

        def less(node: PlanNode) -> list[PlanNode]:
            seen.extend((b.name, node.name) for b in node.order)
            return [b for b in shuffled_order.edges(node) if b not in node.order or (b.name, node.name) != dropped]

        shuffle.before, shuffle.seed = less, seed
        with tf.Graph().as_default():
            v = tf.Variable([1.0, 2.0], name="v")
            fetches = [tf.identity(v.read_value()), v.assign_add([1.0, 1.0], read_value=False)]
            fetches += [tf.identity(v.read_value()), v.assign([5.0, 5.0], read_value=False)]
            with tf.Session() as sess:
                sess.run(v.initializer)
                seen.clear()
                got = [sess.run([fetches[0], fetches[2], *fetches[1::2]])[:2], sess.run(v)]
        return [np.asarray(a).tolist() for a in (*got[0], got[1])], list(dict.fromkeys(seen))

    right, laid = step(None, 0)
    assert right == [[1.0, 2.0], [2.0, 3.0], [5.0, 5.0]]
    assert len(laid) == 4  # each update after the read before it, the second read and the second update after the first
    needed = [edge for edge in laid if any(step(edge, seed)[0] != right for seed in range(20))]
    # the second update comes after the first without their own edge: the second read stands between them
    assert len(needed) == 3
