"""What a caller owns stays his: no later step changes it, and nothing that he writes there changes a later result."""

from __future__ import annotations

import logging

import graphdock as tf
import pytest
from graphdock.passes.pipeline import simplifications
from graphdock.plugin.host import Host
from graphdock_testing import queued

pytestmark = pytest.mark.modes  # every program runs in debug mode, too
QUEUED = {"backends": ("queued", "cpu")}
CONFIGURATIONS = {
    "cpu": {},
    "debug": {"debug": True},
    "no passes": {"passes": dict.fromkeys(simplifications(), False)},
    "generic": {"shape_policy": "generic"},
    "queued": QUEUED,
    "queued, debug": {**QUEUED, "debug": True},
    "queued, in flight": {**QUEUED, "steps_in_flight": 3},
}


@pytest.fixture
def host(process_host, caplog):
    caplog.set_level(logging.ERROR, "graphdock")
    return process_host(Host())


def check(ownership, host, seed, name, steps=8):
    queued.install(host, seed=seed, fetch_bytes=8 * (seed % 2))
    ledger = ownership.Ledger()
    program = ownership.Owned(seed, ledger, ownership.define(ledger), None if name == "generic" else 2)
    program.grow(8 + seed % 12)
    with tf.Graph(host=host).as_default() as graph:
        variables, tensors = program.build()
        config = tf.SessionConfig(fallback="allow", **CONFIGURATIONS[name])
        with tf.Session(graph=graph, config=config, host=host) as sess:
            sess.run([v.initializer for v in variables])
            caller = ownership.Caller(program, sess, variables, tensors)
            for _ in range(steps):
                caller.step(program.pick(ownership.WAYS))
        ledger.check("the session was closed")


@pytest.mark.parametrize("name", CONFIGURATIONS)
@pytest.mark.parametrize("seed", range(100))
@pytest.mark.sampled(100)
def test_what_a_caller_owns_stays_his(ownership, host, seed, name):
    check(ownership, host, seed, name)
