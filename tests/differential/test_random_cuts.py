"""Random programs cut over several tasks give, bit by bit, what one task gives, under messages that are late and out of order.

Each task has a host of its own, so that all that they share travels as packed messages.
"""

from __future__ import annotations

import contextlib

import graphdock as tf
import numpy as np
import pytest
from graphdock.plugin.host import Host
from graphdock_testing.scatter import scatter
from graphdock_testing.transport import SeededTransport


@contextlib.contextmanager
def tasks(count, seed):
    """Servers that know one another by a seeded network alone."""
    network = SeededTransport(seed)
    cluster = {"worker": [f"task:{i + 1}" for i in range(count)]}
    servers = []
    for i in range(count):
        host = Host()
        host.register("network", network.plugin())
        servers.append(tf.train.Server(cluster, "worker", i, host=host))
    try:
        yield servers, network
    finally:
        for server in servers:
            server.stop()
            server.host.close()


def results(fetches, feeds, target="", host=None, graph=None):
    config = tf.SessionConfig(operation_timeout=60)
    with tf.Session(target, graph=graph, config=config, host=host) as session:
        return session.run(fetches, feeds)


@pytest.mark.sampled(200)
@pytest.mark.parametrize("seed", range(500))
def test_branches_loops_and_gradients(random_control_flow, seed):
    count = 2 + seed % 4
    with tf.Graph().as_default() as graph:
        program = random_control_flow.Program(tf, seed)
        placeholders, fetches = program.build()
        feeds = dict(zip(placeholders, program.feeds(), strict=True))
        expected = results(fetches, feeds)
        scatter(graph, count, seed)
        with tasks(count, seed) as (servers, network):
            own = servers[seed % count]
            found = results(fetches, feeds, own.target, own.host, graph)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.sampled(24)
@pytest.mark.parametrize("seed", range(60))
def test_reads_and_updates(random_updates, seed):
    count = 2 + seed % 3
    program = random_updates.Updates(seed)
    program.grow(4 + seed % 18)
    rng = program.rng
    steps = [[int(i) for i in rng.integers(0, program.fetchable, int(rng.integers(1, 6)))] for _ in range(3)]
    with tf.Graph().as_default() as graph:
        variables, tensors = program.build(None)
        scatter(graph, count, seed)
        state = {i: a.copy() for i, a in enumerate(program.initial)}
        with tasks(count, seed) as (servers, _):
            own = servers[seed % count]
            config = tf.SessionConfig(operation_timeout=60)
            with tf.Session(own.target, graph=graph, config=config, host=own.host) as session:
                session.run([v.initializer for v in variables])
                for number, fetched in enumerate(steps):
                    expected = program.step(state, fetched)
                    got = session.run([tensors[i] for i in fetched])
                    for i, a, b in zip(fetched, got, expected, strict=True):
                        np.testing.assert_array_equal(a, b, err_msg=f"step {number}: {program.what(i)}")
