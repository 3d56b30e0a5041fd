"""Random programs spread over devices with memory of their own: a fake asynchronous one, and the toy package's."""

from __future__ import annotations

import logging

import graphdock as tf
import numpy as np
import pytest
from graphdock.passes.pipeline import simplifications
from graphdock.plugin.host import Host
from graphdock_testing import fake

OFF = dict.fromkeys(simplifications(), False)
VARIANTS = [{}, {"debug": True, "passes": OFF}, {"shape_policy": "generic", "debug": True}]
pytestmark = pytest.mark.modes  # every program runs in debug mode, too
PLACES = ["/device:fake:0", "/device:fake:1", "/cpu:0", "/device:fake:0"]


@pytest.fixture(scope="module")
def host():
    """A host with the fake device in it; what falls back to cpu is expected here."""
    made = Host()
    fake.install(made)
    return made


@pytest.fixture(autouse=True)
def quiet(caplog):
    caplog.set_level(logging.ERROR, "graphdock")


def session(graph, host, **fields):
    config = tf.SessionConfig(backends=("fake", "cpu"), fallback="allow", device_count={"fake": 2}, **fields)
    return tf.Session(graph=graph, config=config, host=host)


@pytest.mark.parametrize("unknown", [None, "rank"])
@pytest.mark.parametrize("seed", range(8))
def test_graphs(random_graph, host, seed, unknown):
    made = random_graph.Generator(9000 + seed)
    program = made.grow(30)
    rng = made.rng
    where = [str(rng.choice(PLACES)) if rng.random() < 0.7 else None for _ in program.steps]
    fetched = [int(i) for i in rng.integers(0, len(program.values), 6)]
    other = {i: made.array(str(a.dtype), a.shape) for i, a in program.feeds.items()}
    with tf.Graph().as_default() as graph:
        tensors = program.build(lambda i: unknown, where.__getitem__)
        for fields in VARIANTS:
            with session(graph, host, **fields) as sess:
                for feeds in (program.feeds, other):
                    expected = program.evaluate(feeds)
                    given = {tensors[i]: a.copy() for i, a in feeds.items()}
                    got = sess.run([tensors[i] for i in fetched], given)
                    for array in given.values():
                        array.fill(99)  # the caller's again: nothing may still read it
                    for i, value in zip(fetched, got, strict=True):
                        random_graph.assert_close(value, expected[i], f"{fields}: v{i} of\n{program.listing()}")


@pytest.mark.parametrize("spread", [False, True])
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.sampled(4)
def test_updates(random_updates, host, seed, spread):
    program = random_updates.Updates(700 + seed)
    program.grow(16)
    rng = program.rng
    where = [str(rng.choice(PLACES)) for _ in program.nodes]
    steps = [[int(i) for i in rng.integers(0, program.fetchable, 4)] for _ in range(3)]
    with tf.Graph().as_default() as graph:
        variables, tensors = program.build(where.__getitem__ if spread else None)
        for fields in VARIANTS[:2]:
            state = {i: a.copy() for i, a in enumerate(program.initial)}
            with session(graph, host, **fields) as sess:
                sess.run([v.initializer for v in variables])
                for fetched in [*steps, steps[0]]:
                    expected = program.step(state, fetched)
                    for a, b in zip(sess.run([tensors[i] for i in fetched]), expected, strict=True):
                        np.testing.assert_array_equal(a, b)
                    for variable, b in zip(variables, state.values(), strict=True):
                        np.testing.assert_array_equal(sess.run(variable), b)


@pytest.mark.parametrize("spread", [False, True])
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.sampled(2)
def test_loops(random_loops, host, seed, spread):
    program = random_loops.Loops(300 + seed)
    program.grow(6, 3)
    sets = [program.feeds() for _ in range(2)]
    rng = program.rng
    with tf.Graph().as_default() as graph:
        scope = (lambda: str(rng.choice(PLACES)) if rng.random() < 0.6 else None) if spread else None
        fed, values = program.build(sets[0], scope)
        fetched = [(k, i) for k in random_loops.KINDS for i in range(len(values[k]))]
        for fields in VARIANTS:
            with session(graph, host, **fields) as sess:
                for feeds in sets:
                    expected = program.interpret(feeds)
                    feed_dict = {fed[k][i]: v for k, vs in feeds.items() for i, v in enumerate(vs)}
                    got = sess.run([values[k][i] for k, i in fetched], feed_dict)
                    for (k, i), value in zip(fetched, got, strict=True):
                        assert np.asarray(value).dtype == np.asarray(expected[k][i]).dtype
                        np.testing.assert_allclose(
                            value, expected[k][i], rtol=1e-8, atol=1e-8, err_msg=f"{fields} {k}{i}"
                        )


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.sampled(2)
def test_the_toy_computes_what_cpu_computes(toy, process_host, random_graph, seed):
    host = process_host(Host())
    made = random_graph.Generator(40 + seed)
    program = made.grow(30)
    rng = made.rng
    where = [str(rng.choice(["/device:toy:0", "/cpu:0"])) if rng.random() < 0.5 else None for _ in program.steps]
    expected = program.evaluate(program.feeds)
    with tf.Graph().as_default() as graph:
        tensors = program.build(lambda i: None, where.__getitem__)
        fetches = {str(i): t for i, t in tensors.items()}
        for fields in VARIANTS:
            config = tf.SessionConfig(backends=("toy", "cpu"), fallback="allow", **fields)
            with tf.Session(graph=graph, config=config, host=host) as sess:
                got = sess.run(fetches, {tensors[i]: a for i, a in program.feeds.items()})
        for i, value in got.items():
            random_graph.assert_close(value, expected[int(i)], f"v{i} of\n{program.listing()}")
