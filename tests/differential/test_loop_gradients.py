"""Gradients of random nested conds and loops, on one device and on several, in any order that a plan's edges allow."""

from __future__ import annotations

import logging

import graphdock as tf
import numpy as np
import pytest
from graphdock.passes.pipeline import simplifications
from graphdock.plugin.host import Host
from graphdock_testing import fake

OFF = dict.fromkeys(simplifications(), False)
VARIANTS = [{}, {"debug": True}, {"debug": True, "passes": OFF}, {"shape_policy": "generic", "debug": True}]
pytestmark = pytest.mark.modes  # every program runs in debug mode, too
PLACES = ["/device:fake:0", "/device:fake:1", "/cpu:0", "/device:fake:0"]
CHUNK = 6


def check_gradients(loop_gradients, random_loops, seeds, **more):
    for seed in seeds:
        fields = VARIANTS[seed % len(VARIANTS)]
        program = loop_gradients.small(random_loops, seed)
        scope = None
        if "scope" in more and seed % 3:
            rng = np.random.default_rng(seed)
            scope = lambda rng=rng: str(rng.choice(PLACES)) if rng.random() < 0.6 else None  # noqa: E731
        given = {k: v for k, v in more.items() if k != "scope"}
        try:
            loop_gradients.check(program, lambda g, f=fields, more=given: open_session(g, f, **more), scope)
        except Exception as error:
            error.add_note(f"seed {seed}, {fields}")
            raise


def open_session(graph, fields, host=None, **more):
    return tf.Session(
        graph=graph, config=tf.SessionConfig(**fields, **more), **({} if host is None else {"host": host})
    )


@pytest.mark.parametrize("chunk", range(8))
@pytest.mark.sampled(8)
def test_against_differences(loop_gradients, random_loops, chunk):
    check_gradients(loop_gradients, random_loops, range(CHUNK * chunk, CHUNK * (chunk + 1)))


@pytest.mark.parametrize(
    "chunk", [pytest.param(c, marks=pytest.mark.slow if c < 20 else pytest.mark.exhaustive) for c in range(8, 60)]
)
@pytest.mark.sampled(16)
def test_more_of_them_against_differences(loop_gradients, random_loops, chunk):
    check_gradients(loop_gradients, random_loops, range(CHUNK * chunk, CHUNK * (chunk + 1)))


@pytest.mark.parametrize("chunk", range(3))
@pytest.mark.sampled(2)
def test_on_devices_with_memory_of_their_own(loop_gradients, random_loops, caplog, chunk):
    caplog.set_level(logging.ERROR, "graphdock")  # what falls back to cpu is expected
    host = Host()
    fake.install(host)
    seeds = range(1000 + CHUNK * chunk, 1000 + CHUNK * (chunk + 1))
    more = {"backends": ("fake", "cpu"), "fallback": "allow", "device_count": {"fake": 2}, "host": host, "scope": True}
    check_gradients(loop_gradients, random_loops, seeds, **more)


@pytest.mark.parametrize("chunk", range(2))
@pytest.mark.sampled(2)
def test_in_a_random_legal_order(loop_gradients, random_loops, shuffled_order, monkeypatch, chunk):
    shuffle = shuffled_order.Shuffle(7000 + chunk)
    shuffle.install(monkeypatch)
    check_gradients(loop_gradients, random_loops, range(2000 + CHUNK * chunk, 2000 + CHUNK * (chunk + 1)))
    assert shuffle.moved
