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
@pytest.mark.sampled(2)
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
