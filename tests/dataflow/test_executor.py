"""The executor: what it refuses, what it says of itself, and its seeded order."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.plugin.host import Host
from graphdock_testing import queued


def test_a_session_names_it_and_explain_says_so():
    x = tf.placeholder(tf.float32, [2])
    with tf.Session(config=tf.SessionConfig(executor="dataflow")) as sess:
        assert sess.run(tf.tanh(x) + 1.0, {x: [0.0, 1.0]}).tolist() == pytest.approx([1.0, 1.0 + np.tanh(1.0)])
        explanation = sess.explain(tf.tanh(x), {x: [0.0, 1.0]})
    assert explanation.summary().endswith(" · dataflow")
    assert explanation.facts()["notes"] == ["dataflow: 0 nodes may wait, 0 kernels may be handed to other threads"]


def test_devices_whose_work_runs_late_are_refused_with_the_node():
    host = Host()
    queued.install(host, seed=1)
    with tf.Graph(host=host).as_default():
        x = tf.placeholder(tf.float32, [1])
        y = tf.tanh(x, name="late")
        config = tf.SessionConfig(backends=("queued", "cpu"), executor="dataflow")
        refused = pytest.raises(tf.errors.UnimplementedError, match="work runs late")
        with tf.Session(config=config, host=host) as sess, refused as caught:
            sess.run(y, {x: [1.0]})
    assert "late" in str(caught.value)


def test_a_seed_gives_the_same_orders_again_and_another_one_others(told):
    x = tf.placeholder(tf.float32, [], name="x")
    ys = [tf.tanh(x * float(i), name=f"y{i}") for i in range(8)]
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)

    def orders(seed):
        found = []
        with told(seed=seed) as sess:
            for _ in range(3):
                metadata = tf.RunMetadata()
                sess.run(ys, {x: 1.0}, options, metadata)
                found.append([event.name for event in metadata.events if event.name.startswith("y")])
        return found

    first = orders(1)
    assert all(sorted(order) == [f"y{i}" for i in range(8)] for order in first)
    assert first[0] != first[1] and orders(1) == first and orders(2) != first
