"""Numbers that travel between tasks as their upper 16 bits: how near they stay, and what keeps all bits."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock_testing.thread_cluster import ThreadCluster


@pytest.fixture(scope="module")
def cluster():
    with ThreadCluster({"ps": 1, "worker": 1}, 0) as made:
        yield made


def travelled(cluster, values, **config):
    """Values that a worker has received of a server, those it has sent back, and the bytes of what travels."""
    server = cluster.server("worker0")
    with tf.Graph(server.host).as_default():
        with tf.device("/job:ps/task:0"):
            v = tf.Variable(values)
        with tf.device("/job:worker/task:0"):
            here = tf.identity(v) + tf.zeros([], v.dtype)
        with tf.device("/job:ps/task:0"):
            back = v.assign(here)
        with tf.Session(server.target, config=tf.SessionConfig(isolate_session_state=True, **config)) as session:
            session.run(v.initializer)
            edges = session.explain([here, back]).facts()["edges"]
            return *session.run([here, back]), sum(e["bytes"] for e in edges if e["from"] != e["to"])


def test_what_travels_is_nearer_to_zero_by_less_than_its_seventh_bit(cluster):
    values = (np.random.default_rng(0).normal(size=4096) * 2.0 ** np.arange(-60, 68).repeat(32)).astype(np.float32)
    here, back, size = travelled(cluster, values, bfloat16_sendrecv=True)
    assert (np.abs(here) <= np.abs(values)).all() and (np.sign(here) == np.sign(values)).all()
    assert (np.abs(values - here) < np.abs(values) * 2.0**-7).all() and (here != values).any()
    np.testing.assert_array_equal(here.view(np.uint32), values.view(np.uint32) & 0xFFFF0000)
    np.testing.assert_array_equal(back, here)
    whole, _, twice = travelled(cluster, values)
    np.testing.assert_array_equal(whole, values)
    assert twice == 2 * size


def test_zeros_infinities_and_nan_travel_as_such(cluster):
    low_nan = np.array([0x7F800001], np.uint32).view(np.float32)  # its upper half alone would be an infinity
    values = np.concatenate([np.float32([0.0, -0.0, np.inf, -np.inf, np.nan]), low_nan])
    here, _, _ = travelled(cluster, values, bfloat16_sendrecv=True)
    np.testing.assert_array_equal(here, values)


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.float16])
def test_other_dtypes_keep_all_bits(cluster, dtype):
    values = np.array([1.0009765625, 3, 70.125], dtype)
    here, _, _ = travelled(cluster, values, bfloat16_sendrecv=True)
    np.testing.assert_array_equal(here, values)


def test_scalars_travel_too(cluster):
    here, _, _ = travelled(cluster, np.float32(3.14159), bfloat16_sendrecv=True)
    assert here.shape == () and here == np.float32(3.140625)


def test_what_is_handed_on_within_a_task_keeps_all_bits(cluster):
    """A server's read runs before what it receives; the sum behind takes it over, and what is fed and fetched is whole."""
    server, x = cluster.server("worker0"), np.float32(1.0001)
    with tf.Graph(server.host).as_default():
        with tf.device("/job:ps/task:0"):
            v = tf.Variable(x)
            read = tf.identity(v)
        with tf.device("/job:worker/task:0"):
            sent = read * 0.0
        with tf.device("/job:ps/task:0"):
            total = read + sent
        config = tf.SessionConfig(isolate_session_state=True, bfloat16_sendrecv=True)
        with tf.Session(server.target, config=config) as session:
            session.run(v.initializer)
            assert session.run(total) == x
