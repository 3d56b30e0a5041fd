"""Branches and loops that the GPU decides itself: conditional nodes of the step's one graph, with the cpu's results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock.plugin.host import Host
from graphdock_cuda.testing import toolkit
from graphdock_cuda.testing.install import install

F32 = np.float32


class Rig:
    """A fake GPU, and a session of a program on it."""

    def __init__(self, make: Callable[..., Any], *shapes: Any, seed: int = 1, **options: Any) -> None:
        self.tools, self.host = toolkit(seed=seed, **options), Host()
        self.driver: Any = self.tools.driver
        self.device = install(self.host, self.tools)
        self.make, self.shapes = make, shapes

    def run(self, *steps: Any, backend: str = "cuda", **config: Any) -> list[Any]:
        """What each step gives, of feeds for the placeholders; ``explain`` and ``log`` are of the last one."""
        with tf.Graph(host=self.host).as_default():
            tf.set_random_seed(3)
            feeds = [tf.placeholder(tf.float32, s) for s in self.shapes]
            fetches = self.make(*feeds)
            backends = ("cuda", "cpu") if backend == "cuda" else ("cpu",)
            fallback = "forbid" if backend == "cuda" else "warn"
            settings = tf.SessionConfig(backends=backends, fallback=fallback, **config)
            with tf.Session(config=settings, host=self.host) as session:
                session.run(tf.global_variables_initializer())
                found = []
                for step in steps:
                    self.driver.log.reset()
                    found.append(session.run(fetches, dict(zip(feeds, step, strict=True))))
                self.log = self.driver.log.table()
                self.explain = str(session.explain(fetches, dict(zip(feeds, steps[-1], strict=True))))
        return found

    def check(self, *steps: Any, **config: Any) -> None:
        """The GPU's results are the cpu's."""
        on_gpu, on_cpu = self.run(*steps, **config), None
        table, told = self.log, self.explain
        on_cpu = self.run(*steps, backend="cpu")
        self.log, self.explain = table, told
        for got, want in zip(on_gpu, on_cpu, strict=True):
            for g, w in zip(got, want, strict=True):
                np.testing.assert_allclose(g, w, rtol=1e-5)
        self.driver.verify()


def _either(x: Any) -> Any:
    y = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.tanh(x) * 2, lambda: x - 1)
    return [tf.reduce_sum(y * y)]


STEPS = [[np.array(v, F32)] for v in ([1, 2], [-1, -2], [3, 4], [-3, 1], [5, 6])]


def test_a_branch_is_a_part_of_the_recording() -> None:
    rig = Rig(_either, [2])
    rig.check(*STEPS)
    assert rig.log["graph launches"] == 1 and rig.log["waits"] <= 2, rig.explain


def _newton(x: Any) -> Any:
    """The square root of each element, until no element is far from it."""

    def far(y: Any, z: Any) -> Any:
        return tf.reduce_max(tf.abs(y * y - x)) > 1e-4

    y, z = tf.while_loop(far, lambda y, z: (0.5 * (y + x / y), z + y), [x + 1.0, x])
    return [y, tf.reduce_sum(z)]


def test_a_loop_is_a_part_of_the_recording() -> None:
    rig = Rig(_newton, [3])
    rig.check(*[[np.array(v, F32)] for v in ([1, 4, 9], [1, 1, 1], [100, 2, 3], [7, 8, 900], [1, 2, 3])])
    assert rig.log["graph launches"] == 1 and rig.log["waits"] <= 2, rig.explain


def _training(x: Any) -> Any:
    """A branch with a loop in it, dropout in the other one, and the way back of a branch, in one training step."""
    w = tf.Variable(np.array([0.5, -0.25, 2.0], F32))
    wide = tf.cond(
        tf.reduce_sum(x) > 0,
        lambda: tf.while_loop(lambda y: tf.reduce_max(y) < 50, lambda y: y * 2 + 1, [tf.abs(x)]),
        lambda: tf.nn.dropout(x, 0.5, seed=4),
    )
    y = tf.cond(tf.reduce_sum(x * w) > 1, lambda: tf.square(w * wide), lambda: tf.sin(w))
    loss = tf.reduce_sum(y)
    train = tf.train.GradientDescentOptimizer(1e-4).minimize(loss)
    with tf.control_dependencies([train]):
        return [w.read_value(), tf.identity(loss)]


TRAINING = [[np.array(v, F32)] for v in ([1, 2, 3], [-1, -2, -3], [3, -4, 9], [-3, 1, 1], [5, 60, 7], [-9, -9, -9])]


@pytest.mark.parametrize("seed", [1, 2])
def test_a_training_step_with_branches_and_a_loop_is_one_recording(seed: int) -> None:
    rig = Rig(_training, [3], seed=seed)
    rig.check(*TRAINING)
    assert rig.log["graph launches"] == 1 and rig.log["waits"] <= 2, rig.explain
    assert rig.explain.count("decided by the device") == 4, rig.explain


def test_a_driver_older_than_the_compiler_decides_as_a_newer_one_does() -> None:
    """No PTX is loaded, which drivers take of their own CUDA or an older one alone."""
    rig = Rig(_training, [3], newest=12040)
    rig.check(*TRAINING[:3])
    assert rig.explain.count("decided by the device") == 4, rig.explain


def test_with_an_older_driver_the_host_decides() -> None:
    rig = Rig(_training, [3], newest=12030)
    rig.check(*TRAINING[:3])
    assert "the host decides which branch runs: the driver is older than CUDA 12.4" in rig.explain


def test_a_kernel_that_the_driver_does_not_link_leaves_it_with_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(_either, [2])

    def refused(self: Any) -> int:
        raise tf.errors.InternalError("invalid PTX")

    monkeypatch.setattr(type(rig.device), "set_condition", refused)
    rig.check(*STEPS[:3])
    assert "the kernel that sets conditions does not load (invalid PTX" in rig.explain


@pytest.mark.parametrize("status", [2, 801, 719])
@pytest.mark.parametrize("call", ["condition", "body_begin", "body_end", "instantiate"])
@pytest.mark.sampled(2)
def test_a_failure_while_conditions_are_recorded_is_told_once(call: str, status: int) -> None:
    rig = Rig(_either, [2])
    with tf.Graph(host=rig.host).as_default():
        x = tf.placeholder(tf.float32, [2])
        loss = _either(x)
        config = tf.SessionConfig(backends=("cuda", "cpu"), fallback="forbid")
        with tf.Session(config=config, host=rig.host) as session:
            told = []
            rig.driver.faults.at(1, status, call)
            for (feed,) in STEPS:
                try:
                    session.run(loss, {x: feed})
                except tf.errors.GraphdockError as error:
                    told.append(error)
            assert len(rig.driver.faults.happened) == 1
            if (call, status) == ("instantiate", 2):  # the pool gives memory back, and it is tried again
                assert not told
            else:
                assert len(told) == 1 or status == 719 and isinstance(told[0], tf.errors.DeviceLostError)
            assert not any(stream.capture for stream in rig.driver._streams)
    if status != 719:
        rig.driver.verify()
    assert not rig.driver.live["graph"]


def test_an_iteration_that_the_host_counts_is_one_launch() -> None:
    """Five of them, each a recording, and nothing waits for the GPU in between."""

    def make(x: Any) -> Any:
        def body(i: Any, y: Any, z: Any) -> Any:
            return i + 1, tf.tanh(y + z), tf.cos(z * 0.5) + y

        return tf.while_loop(lambda i, y, z: i < 5, body, [0, x, x * 2])[1:]

    rig = Rig(make, [3])
    rig.check(*[[np.array(v, F32)] for v in ([1, 2, 3], [4, 5, 6], [0, -1, 2], [7, 0, 0.5])])
    assert rig.log["graph launches"] == 1 + 5 and rig.log["launches"] == 0
    assert rig.log["waits"] == 2 and rig.log["allocations"] == 0
