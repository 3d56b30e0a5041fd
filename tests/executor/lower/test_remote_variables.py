"""Kernels that take the handle of a variable in another memory space work on a copy of it, which goes back."""

from __future__ import annotations

import contextlib
import threading

import graphdock as tf
import numpy as np
import pytest
from graphdock.plugin.host import Host
from graphdock_testing import fake, queued
from graphdock_testing.driver import races

KINDS = ("fake", "queued")


class Place:
    """Two devices: one where variables live, and one that updates them."""

    def __init__(self, kind, home, away, seed=0):
        self.host = Host()
        self.device = fake.install(self.host) if kind == "fake" else queued.install(self.host, seed=seed)
        self.away = away
        backends = ("cpu", kind) if home == "cpu" else (kind, "cpu")
        self.config = tf.SessionConfig(backends=backends, device_count={kind: 2})

    @contextlib.contextmanager
    def session(self, **settings):
        checked = races.check(self.device) if isinstance(self.device, queued.DriverDevice) else contextlib.nullcontext()
        with checked, tf.Session(config=self.config.replace(**settings), host=self.host) as sess:
            yield sess


def places():
    for kind in KINDS:
        for home, away in ((kind, "cpu:0"), ("cpu", f"{kind}:0"), (kind, f"{kind}:1")):
            yield pytest.param((kind, home, away), id=f"{home}-{away}")


@pytest.fixture(params=places())
def place(request):
    return Place(*request.param)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def adam(v):
    return tf.train.AdamOptimizer(0.5).minimize(tf.reduce_sum(tf.square(v)))


def looped(v):
    def body(i):
        with tf.control_dependencies([v.assign_add([1.0, 2.0], read_value=False)]):
            return i + 1

    return tf.while_loop(lambda i: i < 4, body, [tf.constant(0)])


def branched(v):
    def update():
        with tf.control_dependencies([v.assign_add([1.0, 2.0], read_value=False)]):
            return tf.constant(1.0)

    return tf.cond(tf.reduce_sum(v.read_value()) < 10.0, update, lambda: tf.constant(0.0))


def blocked(v):
    value = tf.py_func(lambda: np.array([3.0, 4.0], np.float32), [], tf.float32)
    value.set_shape([2])
    return v.assign_add(value * 2.0)


PROGRAMS = {
    "assign_add": lambda v: v.assign_add([1.0, 2.0], read_value=False),
    "scatter": lambda v: tf.scatter_add(v, [1, 0, 1], [1.0, 2.0, 3.0]).op,
    "gather": lambda v: tf.gather(v, [1, 1, 0]),
    "adam": adam,
    "twice": lambda v: tf.group(v.assign_add([1.0, 2.0]), v.assign_add([5.0, 6.0])),
    "loop": looped,
    "cond": branched,
    "blocks": blocked,
}


def run(sess, v, step):
    """Three steps, and the variable after each."""
    sess.run(tf.global_variables_initializer())
    seen = []
    for _ in range(3):
        made = sess.run(step)
        seen += [made] if made is not None else []
        seen.append(sess.run(v))
    return seen


def assert_same(got, want):
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.modes
@pytest.mark.parametrize("shape", ["known", "unknown"])
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.sampled(24)
def test_a_variable_is_updated_from_another_device_as_from_its_own(place, program, shape):
    if program == "adam" and shape == "unknown":
        pytest.skip("slots need a shape")
    v = tf.Variable([1.0, 2.0], validate_shape=shape == "known")
    own = PROGRAMS[program](v)
    with tf.Session(config=tf.SessionConfig(backends=("cpu",))) as sess:
        want = run(sess, v, own)
    with tf.device(place.away):
        away = PROGRAMS[program](v)
    for settings in ({}, {"debug": True}):
        with place.session(**settings) as sess:
            assert_same(run(sess, v, own), want)
            assert_same(run(sess, v, away), want)


def test_what_a_step_reads_before_and_after_an_update_elsewhere_is_in_order(place):
    v = tf.Variable([1.0, 2.0])
    before = tf.identity(v.read_value())
    with tf.control_dependencies([before]), tf.device(place.away):
        update = v.assign_add([10.0, 10.0], read_value=False)
    with tf.control_dependencies([update]):
        after = v.read_value() * 2.0
    with place.session() as sess:
        sess.run(v.initializer)
        for n in range(4):
            first, second = sess.run([before, after])
            assert first.tolist() == [1.0 + 10 * n, 2.0 + 10 * n]
            assert second.tolist() == [2.0 * (11 + 10 * n), 2.0 * (12 + 10 * n)]


@pytest.mark.sampled(2)
def test_a_check_of_numerics_sees_what_an_update_elsewhere_makes(place):
    v = tf.Variable([1.0, 3e38])
    x = tf.placeholder(tf.float32, [2])
    with tf.device(place.away):
        update = v.assign_add(x, read_value=False)
    with place.session(check_numerics=True) as sess:
        sess.run(v.initializer)
        sess.run(update, {x: [1.0, 0.0]})
        with pytest.raises(tf.errors.InvalidArgumentError, match="NaN|infinity") as info:
            sess.run(update, {x: [1.0, 3e38]})
        assert info.value.op.name == update.name


@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("shape", ["known", "unknown"])
@pytest.mark.sampled(4)
def test_many_threads_lose_no_update_from_another_device(place, shape, blocks):
    v = tf.Variable(np.zeros(2, np.float32), validate_shape=shape == "known")
    value = tf.constant([1.0, 2.0])
    if blocks:
        value = tf.py_func(lambda: np.array([1.0, 2.0], np.float32), [], tf.float32)
        value.set_shape([2])
    own = v.assign_add([1.0, 2.0], read_value=False)
    with tf.device(place.away):
        away = v.assign_add(value, read_value=False)
    wrong = []
    with place.session() as sess:
        sess.run(v.initializer)

        def work(step):
            try:
                for _ in range(5):
                    sess.run(step)
            except Exception as error:  # noqa: BLE001 - told to the test's own thread
                wrong.append(error)

        threads = [threading.Thread(target=work, args=(step,)) for step in (own, away) * 3]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong
        assert sess.run(v).tolist() == [30.0, 60.0]


@pytest.mark.parametrize("how", ["refuse", "fail"])
@pytest.mark.parametrize("away", ["cpu:0", "queued:1"])
@pytest.mark.parametrize("shape", ["known", "unknown"])
@pytest.mark.sampled(2)
def test_a_fault_around_an_update_elsewhere_fails_that_step_alone(how, away, shape):
    place = Place("queued", "queued", away)
    v = tf.Variable([1.0, 2.0], validate_shape=shape == "known")
    with tf.device(away):
        step = v.assign_add([1.0, 1.0])
    with place.session() as sess:
        for n in range(1, 16):
            sess.run(v.initializer)
            sess.run(step)
            place.device.faults.reset()
            place.device.faults.at(n, how)
            with contextlib.suppress(tf.errors.GraphdockError):
                sess.run(step)
            place.device.faults.reset()
            sess.run(v.initializer)
            assert sess.run(step).tolist() == [2.0, 3.0]
