"""The package as a user meets it. The conformance suite covers each kernel: ``pytest --graphdock-backend tandem``."""

import threading

import graphdock as tf
import numpy as np
import pytest
from graphdock.testing.driver import races
from graphdock.testing.driver.instrument import watch_kernels

BOTH = {"tandem": 2}


def session(graph, host=None, backends=("tandem", "cpu")):
    count = BOTH if "tandem" in backends else {}
    return tf.Session(graph=graph, config=tf.SessionConfig(backends=backends, device_count=count), host=host)


def two_engines(host=None):
    """A graph with work for both engines, its feed, and what NumPy says."""
    with tf.Graph(host=host).as_default() as graph:
        x = tf.placeholder(tf.float32, [8, 4], name="x")
        with tf.device("tandem:1"):
            a = tf.tanh(x * 2.0)
        with tf.device("tandem:0"):
            y = tf.reduce_sum(a * tf.square(x))
    fed = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)
    return graph, x, y, fed, np.sum(np.tanh(2 * fed.astype(np.float64)) * np.square(fed))


def training(backends):
    rng = np.random.default_rng(0)
    with tf.Graph().as_default() as graph:
        x = tf.constant(rng.normal(size=(8, 4)).astype(np.float32))
        w = tf.Variable(tf.random_uniform([4, 2], seed=1))
        loss = tf.reduce_sum(tf.square(tf.nn.relu(tf.matmul(x, w)) - 1.0))
        step = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
        start = tf.global_variables_initializer()
    with session(graph, backends=backends) as s:
        s.run(start)
        return [s.run([loss, step])[0] for _ in range(5)]


def test_training_agrees_with_the_cpu():
    np.testing.assert_allclose(training(("tandem", "cpu")), training(("cpu",)), rtol=1e-5)


def test_random_numbers_are_those_of_the_cpu():
    def draw(backends):
        with tf.Graph().as_default() as graph:
            y = tf.random_uniform([3], seed=7)
        with session(graph, backends=backends) as s:
            return [s.run(y).tolist() for _ in range(4)]

    assert draw(("tandem", "cpu")) == draw(("cpu",))


def test_two_engines_share_a_memory_and_an_event_orders_them():
    graph, x, y, fed, want = two_engines()
    with session(graph) as s:
        for _ in range(3):
            np.testing.assert_allclose(s.run(y, {x: fed}), want, rtol=1e-5)
        plan = s.explain(y, {x: fed})
    assert {"tandem:0", "tandem:1"} <= {row["device"] for row in plan.facts()["rows"]}
    assert " d4(d3(" in plan.source, plan.source  # queue 0 waits for an event that queue 1 records


def test_steps_of_two_threads_take_turns_on_two_stream_slots():
    graph, x, y, fed, want = two_engines()
    with session(graph) as s:
        found = []
        threads = [
            threading.Thread(target=lambda: found.extend(s.run(y, {x: fed}) for _ in range(20))) for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    np.testing.assert_allclose(found, [want] * 60, rtol=1e-5)


def test_nothing_relies_on_luck():
    host = tf.Host()
    graph, x, y, fed, _ = two_engines(host)
    devices = [host.open_device(f"tandem:{i}") for i in range(2)]
    watch_kernels(host, "tandem")
    with races.check(*devices) as report, session(graph, host) as s:
        for _ in range(3):
            s.run(y, {x: fed})
    assert report.accesses > 10


def test_an_error_of_late_work_names_its_node():
    with tf.Graph().as_default() as graph:
        w = tf.Variable(np.zeros(3, np.float32), name="w")
        g = tf.placeholder(tf.float32, name="g")
        update = tf.train.GradientDescentOptimizer(1.0).apply_gradients([(g, w)])
    config = tf.SessionConfig(backends=("tandem", "cpu"), shape_policy="generic")
    with tf.Session(graph=graph, config=config) as s:
        s.run(w.initializer)
        with pytest.raises(tf.errors.InvalidArgumentError, match="the gradient has another shape") as caught:
            s.run(update, {g: [1.0]})
        assert "update_w" in caught.value.op_name and "test_tandem.py" in str(caught.value)
        s.run(update, {g: [1.0, 2.0, 3.0]})  # the queue goes on
        assert s.run(w).tolist() == [-1.0, -2.0, -3.0]


def test_memory_is_given_back_and_has_an_end():
    host = tf.Host()
    device = host.open_device("tandem:0")
    held = device.board.in_use
    block = device.allocate(1 << 20)
    assert device.board.in_use == held + (1 << 20)
    del block
    assert device.board.in_use == held
    with pytest.raises(tf.errors.ResourceExhaustedError):
        device.allocate(1 << 40)
