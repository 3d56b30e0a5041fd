"""Decisions of a device itself: the predicate stays with it, values are the same, and what it can't decide says why.

The device of these tests records nothing, so that ``Queue.branch`` and ``Queue.loop`` do what the contract says of them by default.
"""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.plugin.host import Host
from graphdock_executor.step_program.segments import within
from graphdock_executor.step_program.statements import Copy, Decide, Launch, Let, Loop, Segment, walk
from graphdock_testing import queued
from graphdock_testing.driver.device import DriverDevice
from graphdock_testing.driver.queue import DriverQueue

#: In debug mode the host decides.
pytestmark = pytest.mark.plain


@pytest.fixture
def x(monkeypatch):
    monkeypatch.setattr(DriverDevice, "undecided", "")
    monkeypatch.setattr(DriverQueue, "capture", lambda self, body: None)
    host = Host()
    queued.install(host, seed=1)
    with tf.Graph(host=host).as_default():
        yield tf.placeholder(tf.float32, [2])
    host.close()


def run(x, fetches, *feeds, **config):
    """What steps give on the device and on the cpu; what was lowered, and what ``explain`` says."""
    init = tf.global_variables_initializer()
    found = []
    for backends in (("queued", "cpu"), ("cpu",)):
        with tf.Session(config=tf.SessionConfig(backends=backends, **config), host=x.graph.host) as sess:
            sess.run(init)
            found.append([sess.run(fetches, {x: np.array(f, np.float32)}) for f in feeds])
            if len(found) == 1:
                lowered = sess.plan(fetches)
                told = str(sess.explain(fetches))
    for got, want in zip(*found, strict=True):
        for g, w in zip(got, want, strict=True) if isinstance(got, list) else [(got, want)]:
            np.testing.assert_allclose(g, w, rtol=1e-6)
    return lowered.program._builder._lowered, told


def decided(lowered):
    return [s for segment in lowered.segments for s in within(segment.body) if isinstance(s, Decide)]


FEEDS = [1, 2], [-1, -2], [3, 40]


def test_a_branch(x):
    y = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.tanh(x) * 2, lambda: x - 1)
    made, told = run(x, y + x, *FEEDS)
    (found,) = decided(made)
    assert not found.repeats and found.name.text + "_1" in dict(found.functions())
    # the host reads nothing of the predicate, which is copied where it was made
    assert not any(isinstance(s, Let) for s in walk(made.block))
    assert "decided by the device: cond" in told and "which branch" not in told


def test_a_loop_whose_variables_change_places(x):
    start = [x, x * 2]
    a, b = tf.while_loop(lambda a, b: tf.reduce_max(b) < 100, lambda a, b: (b, a + tf.abs(b) + 1), start)
    made, _ = run(x, [a, b + a], *FEEDS)
    (found,) = decided(made)
    assert found.repeats and [type(s) for s in found.second.statements[-2:]] == [Copy, Copy]
    assert not any(isinstance(s, Let) for s in walk(made.block))


def test_one_within_another(x):
    def body(y):
        return tf.cond(
            tf.reduce_max(y) > 10, lambda: tf.while_loop(lambda z: tf.reduce_max(z) < 50, _double, [y]), lambda: y + 3
        )

    def _double(z):
        return z * 2

    y = tf.cond(x[0] > 0, lambda: tf.while_loop(lambda y: tf.reduce_max(y) < 20, body, [x + 1]), lambda: -x)
    made, told = run(x, y, *FEEDS, [60, 1])
    assert [s.repeats for s in decided(made)] == [False, True, False, True], told


def test_a_branch_in_a_loop_that_the_host_counts(x):
    """The loop's variables keep their buffers then, so that what is decided within can be recorded."""

    def body(i, y, z):
        return i + 1, tf.cond(tf.reduce_sum(y) > 0, lambda: z - y, lambda: y + 5), y

    _, y, z = tf.while_loop(lambda i, y, z: i < 5, body, [0, x, x * 3])
    made, told = run(x, [y, z], *FEEDS)
    assert len(decided(made)) == 1, told
    assert "the host decides when the loop ends" in told


def counted(x, body):
    """The kinds of statements in each recording of a loop of five iterations over two variables."""
    _, a, b = tf.while_loop(lambda i, a, b: i < 5, lambda i, a, b: (i + 1, *body(a, b)), [0, x, x * 2])
    made, _ = run(x, [a, b], *FEEDS)
    loops = [s for s in walk(made.block) if isinstance(s, Loop)]
    assert len(loops) == 1 and not decided(made)
    return [[type(s) for s in r.body.statements] for r in loops[0].body.statements if isinstance(r, Segment)]


def test_an_iteration_that_the_host_starts_is_one_recording(x):
    """Its variables change places, and keep their buffers."""
    assert counted(x, lambda a, b: (b, tf.sin(a) + tf.cos(b))) == [[*[Launch] * 3, *[Copy] * 3]]
    assert counted(x, lambda a, b: (tf.sin(tf.cos(tf.sin(a + b))), b)) == [[*[Launch] * 4, Copy]]


def test_an_iteration_of_little_is_no_recording(x):
    """Two launches, and what takes more copies than it saves launches."""
    assert counted(x, lambda a, b: (tf.sin(tf.cos(a)), b)) == []
    assert counted(x, lambda a, b: (tf.sin(b), tf.cos(a))) == []


def test_both_ways_of_a_training_step(x):
    w = tf.Variable(np.ones(2, np.float32))
    y = tf.cond(tf.reduce_sum(x * w) > 0, lambda: tf.square(w * x), lambda: tf.sin(w))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(y))
    with tf.control_dependencies([train]):
        after = w.read_value()
    made, _ = run(x, [after, y], *FEEDS)
    assert len(decided(made)) == 2
    assert not any(isinstance(s, Let) for s in walk(made.block))


def test_a_predicate_that_is_fetched_too(x):
    p = tf.reduce_sum(x) > 0
    made, _ = run(x, [tf.cond(p, lambda: x * 2, lambda: x), tf.cast(p, tf.float32)], *FEEDS)
    assert len(decided(made)) == 1


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (
            lambda x: tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2), [0, x])[1],
            "the host counts its iterations",
        ),
        (
            lambda x: tf.while_loop(lambda y: y[0] < 9, lambda y: y * y + 1, [x], maximum_iterations=3),
            "counts its iterations",
        ),
        (lambda x: tf.cond(x[0] > 0, lambda: tf.py_func(np.sin, [x], tf.float32), lambda: x), "the host runs it"),
        (
            lambda x: tf.cond(x[0] > 0, lambda: tf.boolean_mask(x, x > 0)[:1], lambda: x[:1]),
            "stands outside of recordings",
        ),
    ],
)
def test_what_the_host_decides_says_why(x, make, reason):
    made, told = run(x, tf.reduce_sum(make(x)), *FEEDS)
    assert not decided(made) and f": {reason}" in told or reason in told


def test_debug_mode_leaves_it_with_the_host(x):
    made, told = run(x, tf.cond(x[0] > 0, lambda: x * 2, lambda: x), *FEEDS, debug=True)
    assert not decided(made)


def test_a_device_that_can_not_says_so(x, monkeypatch):
    monkeypatch.setattr(DriverDevice, "undecided", "its driver is of stone")
    made, told = run(x, tf.cond(x[0] > 0, lambda: x * 2, lambda: x), *FEEDS)
    assert not decided(made) and "the host decides which branch runs: its driver is of stone" in told
