"""Traced steps: what they report is what ran, they compute the same, and a step that is not traced has nothing of it."""

from __future__ import annotations

import threading

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import StepContext
from graphdock.plugin.host import Host
from graphdock_testing import queued
from graphdock_testing.driver import races

FULL = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
SOFTWARE = tf.RunOptions(trace_level=tf.RunOptions.SOFTWARE_TRACE)


@pytest.fixture
def graph():
    with tf.Graph().as_default() as made:
        yield made


def traced(sess, fetches, feed=None, options=FULL):
    metadata = tf.RunMetadata()
    result = sess.run(fetches, feed, options=options, run_metadata=metadata)
    return result, metadata


def test_each_kernel_is_reported_once_with_its_node_and_bytes(graph):
    x = tf.placeholder(tf.float32, [2, 3], name="x")
    w = tf.constant(np.ones((3, 4), np.float32))
    y = tf.square(tf.matmul(x, w, name="product"), name="squared")
    with tf.Session() as sess:
        got, metadata = traced(sess, y, {x: np.ones((2, 3))})
        np.testing.assert_array_equal(got, np.full((2, 4), 9))
    events = [(e.name, e.op, e.kernel, e.device, e.kind, e.nbytes) for e in metadata.events if e.kind == "kernel"]
    product, squared = 4 * (6 + 12 + 8), 4 * (8 + 8)
    assert events == [
        ("product", "MatMul", "cpu.mat_mul", "cpu:0", "kernel", product),
        ("squared", "Square", "cpu.square", "cpu:0", "kernel", squared),
    ]


def test_times_lie_within_the_step_and_do_not_overlap(graph):
    x = tf.placeholder(tf.float32, [100])
    y = tf.sin(tf.exp(x) + tf.tanh(x))
    with tf.Session() as sess:
        _, metadata = traced(sess, y, {x: np.zeros(100)})
    planning = [e for e in metadata.events if e.kind == "compile"]
    assert planning == list(metadata.events[: len(planning)]) and planning[-1].seconds > 0
    now = planning[0].start
    for event in metadata.events:
        assert event.start >= now - 1e-9 and event.seconds >= 0
        now = event.start + event.seconds
        assert (now <= metadata.start + 1e-9) == (event.kind == "compile")
    assert now <= metadata.start + metadata.seconds


@pytest.mark.plain
def test_the_clock_is_the_sessions(graph):
    x = tf.placeholder(tf.float32, [3])
    y = tf.sin(tf.exp(x))
    ticks = iter(range(100))
    with tf.Session() as sess:
        sess.run(y, {x: np.zeros(3)})
        object.__setattr__(sess._recent.idle[-1].services, "clock", lambda: float(next(ticks)))
        _, metadata = traced(sess, y, {x: np.zeros(3)})
    events = [(e.kind, e.start, e.seconds) for e in metadata.events]
    assert events == [("kernel", 1, 1), ("allocate", 3, 1), ("kernel", 5, 1)]
    assert (metadata.start, metadata.seconds) == (0, 7)


def test_a_loops_kernels_are_reported_once_per_iteration(graph):
    _, total = tf.while_loop(lambda i, v: i < 7, lambda i, v: (i + 1, tf.tanh(v, name="body")), [0, tf.ones([5])])
    with tf.Session() as sess:
        _, metadata = traced(sess, total)
    assert sum(e.op == "Tanh" for e in metadata.events) == 7


def test_only_the_branch_that_ran_is_reported(graph):
    x = tf.placeholder(tf.float32, [3])
    y = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.sin(x), lambda: tf.cos(x))
    with tf.Session() as sess:
        for value, op in ((1.0, "Sin"), (-1.0, "Cos")):
            _, metadata = traced(sess, y, {x: np.full(3, value)})
            assert {e.op for e in metadata.events} & {"Sin", "Cos"} == {op}


def test_bytes_of_what_only_the_step_knows_are_measured(graph):
    x = tf.placeholder(tf.float32, [None])
    found = tf.boolean_mask(x, x > 0)
    doubled = tf.add(found, found, name="doubled")
    with tf.Session() as sess:
        for count in (2, 5):
            _, metadata = traced(sess, doubled, {x: [1.0] * count + [-1.0]})
            (event,) = [e for e in metadata.events if e.name == "doubled"]
            assert event.nbytes == 4 * 2 * count  # the operand counts once: it is one array


def test_a_traced_step_computes_the_same_and_leaves_nothing_behind(graph):
    tf.set_random_seed(4)
    x = tf.placeholder(tf.float32, [8, 3])
    v = tf.Variable(np.ones((3, 3), np.float32))
    y = tf.nn.dropout(tf.matmul(x, v), keep_prob=0.5, seed=1)
    step = v.assign_sub(0.1 * tf.matmul(x, y, transpose_a=True))
    rng = np.random.default_rng(0)
    batches = [rng.normal(size=(8, 3)).astype("f") for _ in range(6)]

    def run(options):
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            return [sess.run(step, {x: b}, options=o) for b, o in zip(batches, options, strict=True)]

    plain = run([None] * 6)
    for some in ([FULL] * 6, [None, FULL, None, SOFTWARE, FULL, None]):
        for got, wanted in zip(run(some), plain, strict=True):
            np.testing.assert_array_equal(got, wanted)


def test_a_step_without_a_trace_makes_no_events(graph, monkeypatch):
    x = tf.placeholder(tf.float32, [3])
    y = tf.sin(x)
    asked = []
    monkeypatch.setattr(StepContext, "events", property(lambda self: asked.append(self) or []))
    with tf.Session() as sess:
        traced(sess, y, {x: np.zeros(3)})
        assert asked  # by its tracer, and by who keeps its times
        asked.clear()
        for options in (None, tf.RunOptions(), tf.RunOptions(trace_level=tf.RunOptions.NO_TRACE)):
            _, metadata = traced(sess, y, {x: np.zeros(3)}, options)
            assert not metadata.events and not metadata.seconds
        assert not asked


def test_a_failing_step_reports_up_to_what_failed(graph):
    x = tf.placeholder(tf.float32, [2])

    def fail(value):
        raise ValueError("no")

    y = tf.py_func(fail, [tf.exp(x, name="before")], tf.float32, name="failing")
    y.set_shape([2])
    z = tf.sin(y, name="after")
    metadata = tf.RunMetadata()
    with tf.Session() as sess:
        with pytest.raises(tf.errors.GraphdockError):
            sess.run(z, {x: [0, 0]}, options=FULL, run_metadata=metadata)
        names = [e.name for e in metadata.events]
        assert "before" in names and "failing" in names and "after" not in names
        assert metadata.seconds > 0
        np.testing.assert_allclose(sess.run(tf.exp(x), {x: [0, 0]}), [1, 1])


def test_threads_trace_their_own_steps_only(graph):
    x = tf.placeholder(tf.float32, [4])
    y = x
    for _ in range(20):
        y = tf.tanh(y)
    wrong = []
    with tf.Session() as sess:
        sess.run(y, {x: np.zeros(4)})

        def work(options, count):
            for _ in range(30):
                _, metadata = traced(sess, y, {x: np.zeros(4)}, options)
                if sum(e.kind == "kernel" for e in metadata.events) != count:
                    wrong.append(len(metadata.events))

        threads = [threading.Thread(target=work, args=item) for item in [(FULL, 20), (None, 0)] * 2]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def test_a_function_of_many_parts_is_traced_whole(graph):
    x = tf.placeholder(tf.float32, [2])
    y = x
    for _ in range(2500):
        y = tf.tanh(y)
    with tf.Session() as sess:
        _, metadata = traced(sess, y, {x: [0.1, 0.2]})
    assert sum(e.kind == "kernel" and e.op == "Tanh" for e in metadata.events) == 2500


def queue_program(host):
    device = queued.install(host)
    x = tf.placeholder(tf.float32, [4, 4], name="x")
    v = tf.Variable(np.ones((4, 4), np.float32))
    step = v.assign_add(tf.matmul(x, tf.sin(v, name="sine"), name="product"))
    sess = tf.Session(config=tf.SessionConfig(backends=("queued", "cpu")), host=host)
    sess.run(v.initializer)
    return device, x, step, sess


def test_on_queues_the_full_trace_sees_the_nodes_of_a_recording_and_waits_for_each():
    host = Host()
    with tf.Graph(host=host).as_default():
        device, x, step, sess = queue_program(host)
        with sess, races.check(device):
            feed = {x: np.ones((4, 4), np.float32)}
            for _ in range(3):
                sess.run(step, feed)
            replays = device.replays
            assert replays
            wanted = sess.run(step, feed)
            got, metadata = traced(sess, step, feed)
            assert device.replays == replays + 1  # of the step before; the traced one ran its nodes
            assert not np.array_equal(got, wanted)  # it is the next step of the training
            assert {"sine", "product"} <= {e.name for e in metadata.events if e.device == "queued:0"}
            copies = [e for e in metadata.events if e.kind == "copy"]
            assert copies and all(e.nbytes == 64 for e in copies)
            _, metadata = traced(sess, step, feed, SOFTWARE)
            assert device.replays == replays + 2
            assert [e.kind for e in metadata.events if e.device == "queued:0" and e.kind == "recording"] == [
                "recording"
            ]
            assert "sine" not in {e.name for e in metadata.events}


def test_an_executor_that_can_not_tell_refuses(graph, monkeypatch):
    from graphdock.contracts.executor import Program
    from graphdock_executor.straight_line.program import StraightLineProgram

    monkeypatch.setattr(StraightLineProgram, "trace", Program.trace)
    x = tf.placeholder(tf.float32, [3])
    with tf.Session() as sess, pytest.raises(tf.errors.UnimplementedError, match="does not trace"):
        sess.run(tf.sin(x), {x: np.zeros(3)}, options=FULL)
