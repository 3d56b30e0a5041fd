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


def test_devices_whose_work_runs_late_give_what_they_give_in_a_line():
    """Each kernel is waited for: updates, draws, loops, moves; and steps by pieces."""
    host = Host()
    queued.install(host, seed=1)
    with tf.Graph(host=host).as_default():
        x, w = tf.placeholder(tf.float32, [3]), tf.Variable(tf.ones([3]))
        update, drawn = w.assign_add(x), tf.random_uniform([4], seed=3)
        loop = tf.while_loop(
            lambda i, v: i < 3, lambda i, v: (i + 1, tf.sin(v) + tf.random_uniform([3], seed=2)), [0, x]
        )[1]
        fetches = [tf.tanh(x) * w, update, drawn, loop]
        found = []
        for executor in ("straight_line", "dataflow"):
            config = tf.SessionConfig(backends=("queued", "cpu"), executor=executor)
            with tf.Session(config=config, host=host) as sess:
                sess.run(w.initializer)
                found.append([*sess.run(fetches, {x: [1.0, 2.0, 3.0]}), sess.run(w)])
        for got, expected in zip(*found, strict=True):
            np.testing.assert_array_equal(got, expected)
        with tf.Session(config=tf.SessionConfig(backends=("queued", "cpu")), host=host) as sess:
            sess.run(w.initializer)
            pieces = sess.partial_run_setup([fetches[0], update, drawn], [x])
            first, numbers = sess.partial_run(pieces, [fetches[0], drawn], {x: [1.0, 2.0, 3.0]})
            np.testing.assert_array_equal(numbers, found[0][2])
            np.testing.assert_allclose(first, np.tanh(np.float32([1, 2, 3])), rtol=1e-6)
            assert sess.partial_run(pieces, update).tolist() == [2.0, 3.0, 4.0]


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
