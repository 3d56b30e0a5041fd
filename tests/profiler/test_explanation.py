"""Words of ``session.explain`` on who lost, and why: the kernels of every device that the session has."""

from __future__ import annotations

import graphdock as tf
import pytest
from graphdock.plugin.host import Host


@pytest.fixture
def lost(toy, process_host):
    """``lost(build, **config)``: node -> {kernel that lost: why}."""
    process_host(Host())

    def run(build, **config):
        with tf.Graph().as_default() as graph:
            fetched = build()
            with tf.Session(graph=graph, config=tf.SessionConfig(fusion=False, **config)) as session:
                explained = session.explain(fetched)
        assert all(row.kernel not in dict(row.lost) for row in explained.rows)
        shown = explained.table(lost=True)
        assert all(f"    lost: {name}: {why}" in shown for row in explained.rows for name, why in row.lost)
        return {row.node: dict(row.lost) for row in explained.rows if row.kernel != "transfer"}

    return run


def x(dtype=tf.float32):
    return tf.placeholder(dtype, [2, 2])


def test_cpu_lost_because_it_is_listed_later(lost):
    (why,) = lost(lambda: tf.negative(x(), name="n"), backends=["toy", "cpu"])["n"].items()
    assert why == ("cpu.neg", "cpu comes after toy in the order of devices")
    (why,) = lost(lambda: tf.negative(x(), name="n"), backends=["cpu", "toy"])["n"].items()
    assert why == ("toy.neg", "toy comes after cpu in the order of devices")


def test_what_a_run_takes_on_the_device_that_lost_is_told(toy, process_host):
    process_host(Host())
    with tf.Graph().as_default() as graph:
        n = tf.negative(tf.placeholder(tf.float32, [1000, 1000]), name="n")
        told = {}
        for backends in (["toy", "cpu"], ["cpu", "toy"]):
            with tf.Session(graph=graph, config=tf.SessionConfig(backends=backends)) as session:
                explained = session.explain(n)
            (row,) = [r for r in explained.rows if r.node == "n" and r.lost]
            (told[backends[0]],) = row.elsewhere
            assert f"{row.lost[0][1]} (" in explained.table(lost=True)
    assert told["cpu"] == ("toy.neg", "toy:0", None, "unknown")  # of which nobody knows rates
    kernel, device, seconds, known = told["toy"]
    assert (kernel, device) == ("cpu.neg", "cpu:0") and known in ("rates", "measured") and 1e-6 < seconds < 1


def test_a_kernel_that_would_not_fit_says_that(lost):
    def odd():
        a = tf.placeholder(tf.float32, [2, 3])
        return tf.matmul(a, a, transpose_b=True, name="n")

    assert lost(odd, backends=["cpu", "toy"])["n"] == {"toy.mat_mul": "inner size 3 is odd"}


def test_a_scope_that_asks_for_a_device_is_the_reason(lost):
    def scoped():
        with tf.device("cpu"):
            return tf.negative(x(), name="n")

    assert lost(scoped, backends=["toy", "cpu"])["n"] == {"toy.neg": "the device scope asks for cpu"}


def test_a_fallback_says_it_once(lost):
    assert lost(lambda: tf.log(x(), name="n"), backends=["toy", "cpu"])["n"] == {}


def test_in_a_session_of_one_device_nothing_is_added(lost):
    assert lost(lambda: tf.negative(x(), name="n"), backends=["toy"])["n"] == {}
