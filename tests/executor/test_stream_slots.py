"""Steps on devices with queues: stream slots are shared in turn, segments are recorded, and nothing races."""

from __future__ import annotations

import gc
import sys
import threading
import weakref

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts.runtime import resource_lock
from graphdock.planning import plan
from graphdock.plugin.host import Host
from graphdock_executor import stream_slots
from graphdock_executor.straight_line import program
from graphdock_testing import queued
from graphdock_testing.driver import races
from graphdock_testing.driver.queue import DriverQueue

from tests.planning.interrupter import Interrupter
from tests.planning.own_thread import in_its_own_thread


@pytest.fixture(params=[0, 1, 2])
def seeded(request):
    host = Host()
    device = queued.install(host, seed=request.param)
    with tf.Graph(host=host).as_default():
        yield host, device


def session(host, *backends, **settings):
    config = tf.SessionConfig(backends=backends or ("queued", "cpu"), **settings)
    return tf.Session(config=config, host=host)


def training(printed):
    """A training step with dropout and Adam, and a Print in the middle."""
    tf.set_random_seed(3)
    x, y = tf.placeholder(tf.float32, [4, 3], name="x"), tf.placeholder(tf.float32, [4, 2], name="y")
    w = tf.Variable(np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2))
    b = tf.Variable(tf.zeros([2]))
    h = tf.nn.dropout(tf.matmul(x, w) + b, keep_prob=0.5, seed=5)
    if printed:
        h = tf.Print(h, [tf.shape(h)], "hidden ")
    loss = tf.reduce_mean(tf.square(h - y))
    return loss, tf.train.AdamOptimizer(0.01).minimize(loss), [w, b], {"x:0": x, "y:0": y}


def feeds(count):
    rng = np.random.default_rng(0)
    for _ in range(count):
        yield {"x:0": rng.normal(size=(4, 3)).astype("f"), "y:0": rng.normal(size=(4, 2)).astype("f")}


def trained(host, steps, *backends):
    loss, step, variables, _ = training(True)
    with session(host, *backends) as sess:
        sess.run(tf.global_variables_initializer())
        losses = [sess.run([loss, step], feed)[0] for feed in feeds(steps)]
        return np.array(losses), sess.run(variables), sess.explain([loss, step], next(feeds(1)))


@pytest.mark.sampled(2)
def test_a_training_step_with_a_print_in_the_middle_is_two_recordings(seeded, capsys):
    host, device = seeded
    with races.check(device):
        losses, variables, about = trained(host, 100)
    lines = str(about).splitlines()
    assert len([line for line in lines if line.startswith("recorded:")]) == 2
    assert "not recorded: Print: the host runs it" in lines
    assert device.replays == 2 * 99  # the first step runs as it is
    capsys.readouterr()
    with tf.Graph(host=host).as_default():
        wanted, wanted_variables, _ = trained(host, 100, "cpu")
    np.testing.assert_array_equal(losses, wanted)
    for got, want in zip(variables, wanted_variables, strict=True):
        np.testing.assert_array_equal(got, want)


def test_many_threads_share_two_lanes_and_lose_no_update(seeded):
    host, device = seeded
    v = tf.Variable(np.zeros(3, np.float32))
    x = tf.placeholder(tf.float32, [3])
    step = v.assign_add(x * 2.0)
    wrong = []
    with races.check(device), session(host) as sess:
        sess.run(v.initializer)

        def work():
            try:
                for _ in range(20):
                    sess.run(step, {x: np.ones(3, np.float32)})
            except Exception as error:  # noqa: BLE001 - told to the test's own thread
                wrong.append(error)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong
        np.testing.assert_array_equal(sess.run(v), np.full(3, 8 * 20 * 2, np.float32))


def test_two_devices_in_one_memory_space_wait_for_each_other():
    host = Host()
    first = queued.install(host, seed=4, shared=True)
    with tf.Graph(host=host).as_default():
        x = tf.placeholder(tf.float32, [4])
        with tf.device("/device:queued:0"):
            a = tf.square(x)
        with tf.device("/device:queued:1"):
            b = tf.sin(a) + a
        with tf.device("/device:queued:0"):
            c = b * a
        with races.check(first), session(host, device_count={"queued": 2}) as sess:
            for k in range(4):
                value = np.full(4, k, np.float32)
                got, source = sess.run(c, {x: value}), sess.explain(c, {x: value}).source
                np.testing.assert_allclose(got, (np.sin(value**2) + value**2) * value**2, rtol=1e-6)
        assert source.count("y0)") == 1 and source.count("y1)") == 1  # one wait each way


@pytest.mark.parametrize("how", ["refuse", "fail"])
@pytest.mark.sampled(2)
def test_a_failing_step_leaves_the_lane_and_the_variable_usable(seeded, how):
    host, device = seeded
    v = tf.Variable(np.ones(2, np.float32))
    step = v.assign(tf.tanh(v * 2.0))
    with session(host) as sess:
        for n in range(1, 12):
            sess.run(v.initializer)
            sess.run(step)
            sess.run(v.initializer)
            device.faults.reset()
            device.faults.at(n, how)
            try:
                sess.run(step)
            except tf.errors.GraphdockError:
                pass
            device.faults.reset()
            sess.run(v.initializer)
            np.testing.assert_allclose(sess.run(step), np.tanh([2.0, 2.0]), rtol=1e-6)


@in_its_own_thread
def test_an_interrupt_at_any_bytecode_leaves_the_lanes_free():
    if sys.gettrace() is not None:
        pytest.skip("a tracer is at work")
    host = Host()
    queued.install(host)
    with tf.Graph(host=host).as_default(), session(host) as sess:
        v = tf.Variable(np.zeros(2, np.float32))
        step = v.assign_add([1.0, 1.0])
        sess.run(v.initializer)
        sess.run(step)
        points = 0
        while True:
            tracer = Interrupter(points, [resource_lock, plan, program])
            try:
                with tracer:
                    sess.run(step)
            except KeyboardInterrupt:
                pass
            assert not stream_slots.SLOTS_LOCK.requests and not stream_slots.SLOTS_LOCK.waiting, (
                f"leaked at bytecode {points}"
            )
            if not tracer.raised:
                break
            points += 1
        assert points > 50
        sess.run([v.initializer])
        np.testing.assert_array_equal(sess.run(step), [1, 1])


def test_a_step_that_waits_for_its_lane_meets_its_deadline_and_says_who_runs():
    host = Host()
    device = queued.install(host, stream_slots=1)
    with tf.Graph(host=host).as_default(), session(host) as sess:
        x = tf.placeholder(tf.float32, [2], name="x")
        y = tf.square(x, name="y")
        sess.run(y, {x: [1, 2]})
        (stream_slot,) = device._slots
        other = resource_lock.LockRequest(resource_lock.LockSet("another step", writes=[stream_slot]))
        stream_slots.SLOTS_LOCK.requests[other] = threading.get_ident() + 1
        try:
            with pytest.raises(
                tf.errors.DeadlineExceededError,
                match=r"(?s)the step of y:?0? waited.*stream slot \d+ of queued:0.*another step",
            ):
                sess.run(y, {x: [1, 2]}, options=tf.RunOptions(timeout_in_ms=5))
        finally:
            stream_slots.SLOTS_LOCK.requests.pop(other)
        np.testing.assert_array_equal(sess.run(y, {x: [1, 2]}), [1, 4])


def test_a_device_goes_with_its_host_and_its_lanes():
    host = Host()
    device = weakref.ref(queued.install(host))
    with tf.Graph(host=host).as_default(), session(host) as sess:
        v = tf.Variable(np.ones(3, np.float32))
        sess.run(v.initializer)
        np.testing.assert_array_equal(sess.run(tf.square(v) + v), [2, 2, 2])
    del host, v, sess
    gc.collect()
    assert device() is None


def test_memory_that_a_fetch_was_to_get_outlives_its_copy_when_the_step_fails(monkeypatch):
    """The second copy is refused when the first is queued: the memory of the first goes after the fence."""
    host = Host()
    device = queued.install(host, seed=1, laziness=1.0, fetch_bytes=8)
    staging, to_host = type(device).staging, DriverQueue.to_host
    gone, calls, fails = [], [], []

    def watched(own, nbytes):
        memory = staging(own, nbytes)
        weakref.finalize(memory if memory.base is None else memory.base, lambda: gone.append(device.pending))
        return memory

    def refused(queue, *args):
        calls.append(len(args))
        if fails and len(calls) % 2 == 0:
            raise tf.errors.InternalError("no more copies")
        return to_host(queue, *args)

    monkeypatch.setattr(type(device), "staging", watched)
    monkeypatch.setattr(DriverQueue, "to_host", refused)
    with tf.Graph(host=host).as_default(), session(host) as sess:
        x = tf.placeholder(tf.float32, [64])
        pair = [tf.tanh(x), tf.square(x)]
        sess.run(pair, {x: np.ones(64)})
        gc.collect()
        gone.clear()
        fails.append(True)
        with pytest.raises(tf.errors.InternalError, match="no more copies"):
            sess.run(pair, {x: np.ones(64)})
        fails.clear()
        gc.collect()
        assert gone and not any(gone)
        assert (sess.run(pair, {x: np.full(64, 2.0)})[1] == 4).all()
