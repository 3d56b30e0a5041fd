"""Random programs over variables and devices: reads, updates, conds and loops on any device give what one device gives."""

from __future__ import annotations

import contextlib
import random

import graphdock as tf
import numpy as np
import pytest
from graphdock.plugin.host import Host
from graphdock_testing import fake, queued
from graphdock_testing.driver import races

pytestmark = pytest.mark.modes  # every program runs in debug mode, too
ON_ONE = ("/device:cpu:0", "/device:cpu:1", "/device:cpu:2")


class Maker:
    """Makes one program; the same seed makes the same one on other places."""

    def __init__(self, seed, places):
        self.random = random.Random(seed)
        self.places = (None, *places)
        self.variables = [self.variable(i) for i in range(2)]
        self.values = [tf.constant([1.0, 2.0, 3.0])]
        self.last = None

    def variable(self, i):
        with tf.device(self.random.choice(self.places)):
            value = np.arange(1, 4, dtype=np.float32) * (i + 1)
            return tf.Variable(value, validate_shape=self.random.random() < 0.7)

    def after(self):
        return tf.control_dependencies([] if self.last is None else [self.last])

    def step(self):
        """One op after the last one. What takes a handle asks for a device only where its variable does not."""
        v, value = self.random.choice(self.variables), self.random.choice(self.values)
        makers = {
            "read": lambda: v.read_value() * 0.5,
            "assign": lambda: v.assign(tf.tanh(value) + v.read_value() * 0.5),
            "compute": lambda: tf.sin(value) + value,
            "add": lambda: v.assign_add(tf.tanh(value)),
            "scatter": lambda: tf.scatter_add(v, [0, 2], [1.0, 0.5]),
            "gather": lambda: tf.gather(v, [2, 0, 1]),
        }
        kind = self.random.choice(list(makers))
        place = self.random.choice(self.places)
        if kind in ("add", "scatter", "gather") and v.handle.op.device:
            place = None
        with tf.device(place), self.after():
            made = tf.identity(makers[kind]())
        made.set_shape([3])
        return made

    def inside(self):
        """One op of a body."""
        last, self.last = self.last, None
        try:
            return self.step()
        finally:
            self.last = last

    def branch(self):
        with self.after():
            test = tf.reduce_sum(self.values[-1]) > self.random.uniform(-2, 4)
        return tf.cond(test, self.inside, self.inside)

    def loop(self):
        with self.after():
            start = tf.identity(self.values[-1])
        made = tf.while_loop(
            lambda i, y: i < 3, lambda i, y: (i + 1, tf.tanh(self.inside()) + y * 0.5), [tf.constant(0), start]
        )[1]
        made.set_shape([3])
        return made

    def program(self):
        for _ in range(self.random.randrange(3, 8)):
            made = self.random.choice([self.step] * 4 + [self.branch, self.loop])()
            self.last = made.op
            self.values.append(made)
        if self.random.random() < 0.2:  # a step that calls Python holds no locks while it runs
            self.values.append(tf.py_func(lambda: np.float32(1), [], tf.float32))
        return self.values[1:]


def results(seed, places, config, host=None):
    with tf.Graph().as_default():
        maker = Maker(seed, places)
        fetches = maker.program()
        with tf.Session(config=config, host=host) as sess:
            sess.run(tf.global_variables_initializer())
            return [x for _ in range(3) for x in [*sess.run(fetches), *sess.run(maker.variables)]]


@pytest.mark.parametrize("kind", ["fake", "queued", "shared"])
@pytest.mark.parametrize("seed", range(25))
@pytest.mark.sampled(16)
def test_a_program_on_several_devices_gives_what_it_gives_on_one(seed, kind):
    want = results(seed, ON_ONE, tf.SessionConfig(backends=("cpu",), device_count={"cpu": 3}))
    host, name = Host(), "fake" if kind == "fake" else "queued"
    checked = contextlib.nullcontext()
    if kind == "fake":
        fake.install(host)
    else:
        checked = races.check(queued.install(host, seed=seed, shared=kind == "shared"))
    backends = (name, "cpu") if seed % 2 else ("cpu", name)
    config = tf.SessionConfig(backends=backends, device_count={name: 2}, debug=seed % 3 == 0)
    with checked:
        got = results(seed, ("/device:cpu:0", f"/device:{name}:0", f"/device:{name}:1"), config, host)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    host.close()


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.sampled(8)
def test_an_arranged_program_on_queues_gives_what_it_gives_on_one_device(seed):
    want = results(seed, ON_ONE, tf.SessionConfig(backends=("cpu",), device_count={"cpu": 3}))
    host = Host()
    budget = {"cpu": 1, "queued": 1}
    ways = {"recompute": False} if seed % 2 else {}  # then all that is read late is swapped
    config = tf.SessionConfig(backends=("queued", "cpu"), device_count={"queued": 2}, memory_budget=budget, passes=ways)
    with races.check(queued.install(host, seed=seed)):
        got = results(seed, ("/device:cpu:0", "/device:queued:0", "/device:queued:1"), config, host)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    host.close()


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.sampled(8)
def test_moves_and_kernels_that_are_late_change_no_bit(seed):
    """Work of all queues in random turns while the host waits for any of it, and each only when it is what is waited for."""
    found = []
    for laziness in (0.0, 1.0):
        host = Host()
        queued.install(host, seed=seed, laziness=laziness)
        config = tf.SessionConfig(backends=("queued", "cpu"), device_count={"queued": 2})
        got = results(seed, ("/device:cpu:0", "/device:queued:0", "/device:queued:1"), config, host)
        found.append([np.asarray(x).tobytes() for x in got])
        host.close()
    assert found[0] == found[1]


APART = {"device_count": {"cpu": 4}, "options": {"cpu": {"memories": "apart"}}}


@pytest.fixture
def apart():
    """A host whose virtual cpus have memories of their own."""
    host = Host()
    yield host
    host.close()


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.sampled(2)
def test_four_cpus_with_memories_apart_give_the_bits_of_one(seed, apart):
    want = results(seed, ["/device:cpu:0"] * 4, tf.SessionConfig())
    got = results(seed, [f"/device:cpu:{i}" for i in range(4)], tf.SessionConfig(**APART, debug=seed % 3 == 0), apart)
    assert [np.asarray(x).tobytes() for x in got] == [np.asarray(x).tobytes() for x in want]


def test_a_value_is_moved_once_to_a_memory_and_just_before_its_first_reader(apart):
    x = tf.placeholder(tf.float32, [3], name="x")
    made = tf.tanh(x, name="made")
    others = [tf.sin(x * float(i), name=f"other{i}") for i in range(3)]
    with tf.device("/device:cpu:1"):
        first = tf.exp(made, name="first")
        second = tf.sqrt(made, name="second")
    with tf.Session(config=tf.SessionConfig(**APART), host=apart) as sess:
        rows = [(r.node, r.device) for r in sess.explain([others, first, second], {x: np.ones(3)}).rows]
        moves = [i for i, row in enumerate(rows) if row == ("made", "host -> cpu:1")]
        assert len(moves) == 1 and rows[moves[0] + 1] == ("first", "cpu:1")
        assert np.array_equal(sess.run(second, {x: np.ones(3)}), np.sqrt(np.tanh(np.ones(3, np.float32))))
