"""Measuring candidates while a kernel is prepared: what they are lent, one kernel at a time per device, and when nothing is
measured."""

from __future__ import annotations

import threading

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import KernelDef, OpDef, Prepared
from graphdock.contracts.opdef import ArgDef
from graphdock.errors import KernelNotFoundError
from graphdock.planning import measure
from graphdock.plugin.host import Host
from graphdock_testing import queued


class Clock:
    """Time that candidates let pass."""

    now = 0.0

    def perf_counter(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(measure, "time", clock)
    return clock


class Tuned:
    """The op ``lab.Twice`` with one kernel, which asks which of its candidates is the quickest."""

    def __init__(self, candidates, device="cpu", host=None, **fields):
        self.host = Host() if host is None else host
        args = ArgDef("x", "float32", "[*S]"), ArgDef("y", "float32", "[*S]")
        self.opdef = OpDef("lab.Twice", inputs=args[:1], outputs=args[1:], package="lab")
        self.host.ops.add(self.opdef, "lab")
        self.candidates, self.chosen = candidates, []
        self.host.kernels.add(KernelDef("lab.Twice", device, prepare=self.prepare, **fields), "lab", "lab")

    def prepare(self, ctx):
        self.chosen.append(ctx.measure(self.candidates))
        return Prepared(lambda bound: (lambda x: x * 2) if bound.fresh else (lambda x, y: np.multiply(x, 2, y)))

    def twice(self, x):
        return tf.get_default_graph().create_op("lab.Twice", [x], op_def=self.opdef).outputs[0]

    def session(self, **fields):
        return tf.Session(host=self.host, config=tf.SessionConfig(**fields))


def taking(clock, seconds, seen=None):
    def candidate(*args):
        clock.now += seconds
        if seen is not None:
            seen.append(args)

    return candidate


def raising(*args):
    raise ValueError("this tile does not fit")


def test_the_quickest_of_the_candidates_is_told_on_lent_buffers(clock):
    seen = []
    tuned = Tuned([taking(clock, 3.0), taking(clock, 1.0, seen), taking(clock, 2.0)])
    x = tf.placeholder(tf.float32, [2, 3])
    with tuned.session() as sess:
        sess.run(tuned.twice(x), {x: np.ones((2, 3))})
    assert tuned.chosen == [1]
    assert len(seen) == 1 + measure.CALLS
    for queue, x_lent, y_lent in seen:
        assert queue is None
        assert (x_lent.shape, x_lent.dtype, y_lent.shape) == ((2, 3), np.float32, (2, 3))


def test_a_candidate_that_raises_is_out(clock):
    tuned = Tuned([raising, taking(clock, 5.0), raising])
    x = tf.placeholder(tf.float32, [2])
    with tuned.session() as sess:
        sess.run(tuned.twice(x), {x: [1.0, 2.0]})
    assert tuned.chosen == [1]


def test_a_kernel_all_of_whose_candidates_raise_is_refused():
    tuned = Tuned([raising, raising])
    x = tf.placeholder(tf.float32, [2])
    with tuned.session() as sess, pytest.raises(KernelNotFoundError, match="none of its 2 candidates runs"):
        sess.run(tuned.twice(x), {x: [1.0, 2.0]})


def never(*args):
    raise AssertionError("it was measured")


@pytest.mark.parametrize("why", ["explained", "planned only", "deterministic", "an unknown shape", "one candidate"])
def test_nothing_is_measured_where_it_may_not_be(why):
    tuned = Tuned([never] if why == "one candidate" else [never, never])
    x = tf.placeholder(tf.float32, [None])
    fields = {"deterministic": why == "deterministic"}
    fields |= {"shape_policy": "generic"} if why == "an unknown shape" else {}
    with tuned.session(**fields) as sess:
        step = {"explained": sess.explain, "planned only": sess.plan}.get(why, sess.run)
        step(tuned.twice(x), {x: [1.0, 2.0]})
    assert tuned.chosen == [0]


@pytest.mark.slow
def test_one_kernel_at_a_time_is_measured_on_a_device():
    """Two sessions plan at once, and share the device."""
    inside, together = [], []
    first_is_in, go = threading.Event(), threading.Event()

    def candidate(queue, *buffers):
        inside.append(1)
        together.append(len(inside))
        first_is_in.set()
        go.wait(0.2)  # time for the other one to come in, if it could
        inside.pop()

    tuned = Tuned([candidate, candidate])
    with tf.Graph(host=tuned.host).as_default() as graph:
        x = tf.placeholder(tf.float32, [2])
        y = tuned.twice(x)

    def work():
        with tf.Session(graph=graph) as sess:
            sess.run(y, {x: [1.0, 2.0]})

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert set(together) == {1} and len(tuned.chosen) == 2


def test_a_queued_device_lends_a_queue_that_is_current_and_is_fenced(clock):
    host = Host()
    queued.install(host)
    seen = []
    tuned = Tuned([taking(clock, 2.0, seen), taking(clock, 1.0, seen)], queued.DEVICE, host)
    x = tf.placeholder(tf.float32, [2])
    with tuned.session(backends=("queued", "cpu")) as sess:
        sess.plan(tuned.twice(x), {x: [1.0, 2.0]})
        assert tuned.chosen == [0] and not seen
        sess._planner.plan([tuned.twice(x)], [], [(x, (2,))])
    assert tuned.chosen == [0, 1] and seen
    assert all(args[0] is not None and args[0] is not args[0].device.queue for args in seen)
