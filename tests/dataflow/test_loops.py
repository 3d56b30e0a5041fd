"""Loops: iterations in turn and several at once, what they keep, and what is free when."""

from __future__ import annotations

import threading
import weakref

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import KernelDef
from graphdock.plugin.host import Host

WAYS = {
    "in turn": {"hand_off": 1e9},
    "overlapping": {"hand_off": 0.0, "inter_op_threads": 4},
    "on one thread": {"hand_off": 0.0, "inter_op_threads": 1},
    "in any order": {"seed": 3},
}


@pytest.fixture(params=WAYS)
def way(request, told):
    return lambda **more: told(**WAYS[request.param], **more)


def test_a_loop_that_never_runs_returns_what_it_was_given(way):
    x = tf.placeholder(tf.float32, [2])
    loop = tf.while_loop(lambda i, v: i < 0, lambda i, v: (i + 1, v * 2.0), [0, x])
    with way() as sess:
        i, v = sess.run(loop, {x: [1.0, 2.0]})
    assert (i, v.tolist()) == (0, [1.0, 2.0])


def test_maximum_iterations_end_it(way):
    loop = tf.while_loop(lambda i: i < 100, lambda i: i + 1, [0], maximum_iterations=7)
    with way() as sess:
        assert sess.run(loop) == 7


def test_a_variable_that_the_body_does_not_read(way):
    """Nothing in an iteration waits for it."""
    x = tf.placeholder(tf.float32, [2])
    loop = tf.while_loop(lambda i, a, b: i < 5, lambda i, a, b: (i + 1, x + 1.0, a), [0, x, x])
    with way() as sess:
        got = sess.run(loop, {x: [1.0, 2.0]})
    assert [np.asarray(g).tolist() for g in got] == [5, [2.0, 3.0], [2.0, 3.0]]


def test_loops_in_loops_with_gradients(way):
    x = tf.placeholder(tf.float64, [2])

    def inner(v):
        return tf.while_loop(lambda j, w: j < 3, lambda j, w: (j + 1, tf.sin(w) * x), [0, v])[1]

    y = tf.while_loop(lambda i, v: i < 4, lambda i, v: (i + 1, inner(v) + v), [0, x])[1]
    (slope,) = tf.gradients(y, x)
    feed = {x: np.array([0.3, -0.7])}
    with tf.Session() as plain, way() as sess:
        expected = plain.run([y, slope], feed)
        for a, b in zip(sess.run([y, slope], feed), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


def test_iterations_that_write_see_one_another_in_order(way):
    v = tf.Variable(1.0)

    def body(i):
        with tf.control_dependencies([v.assign(v.read_value() * 3.0, read_value=False)]):
            again = v.assign_add(1.0, read_value=False)
        with tf.control_dependencies([again]):
            return i + 1

    loop = tf.while_loop(lambda i: i < 3, body, [0])
    with way() as sess:
        sess.run(v.initializer)
        sess.run(loop)
        assert sess.run(v) == 40.0


class Meter:
    """An op whose kernel notes how many of its results are alive at most, and on which threads it runs."""

    def __init__(self, host, inside=None):
        self.alive = 0
        self.most = 0
        self.threads = set()
        self.inside = inside
        self._lock = threading.Lock()
        host.kernels.add(
            KernelDef("Tanh", "cpu", lambda ctx: self._compute, modes=("fresh",), priority=9, name="counted"),
            "cpu",
            "graphdock_cpu",
        )

    def _compute(self, x):
        class Counted(np.ndarray):
            pass

        if self.inside is not None:
            self.inside()
        with self._lock:
            made = np.tanh(x).view(Counted)
            self.alive += 1
            weakref.finalize(made, self._freed)
            self.most = max(self.most, self.alive)
            self.threads.add(threading.get_ident())
        return made

    def _freed(self):
        self.alive -= 1


def test_so_many_iterations_are_at_work_at_once_and_no_more(told):
    """Each draws a value of its own, behind a barrier for two."""
    host = Host()
    barrier = threading.Barrier(2, timeout=30)
    meter = Meter(host)
    x = tf.placeholder(tf.float32, [2])

    def body(i, total):
        return i + 1, total + tf.tanh(x + tf.cast(i, tf.float32))

    loop = tf.while_loop(lambda i, total: i < 8, body, [0, tf.zeros([2])], parallel_iterations=2)
    with told(hand_off=0.0, host=host, inter_op_threads=4) as sess:
        sess.run(loop[1], {x: [0.0, 1.0]})  # the first call of a kernel is made, and checked, by the step's own thread
        meter.inside = barrier.wait
        meter.threads.clear()
        got = sess.run(loop[1], {x: [0.0, 1.0]})
    np.testing.assert_allclose(got, sum(np.tanh(np.array([0.0, 1.0]) + i) for i in range(8)), rtol=1e-6)
    assert len(meter.threads) == 2


@pytest.mark.parametrize("parallel", [1, 3])
def test_a_loop_of_a_cheap_counter_and_a_dear_body_keeps_no_more_than_its_iterations(told, parallel):
    host = Host()
    meter = Meter(host)
    x = tf.placeholder(tf.float32, [2])
    loop = tf.while_loop(
        lambda i, v: i < 200, lambda i, v: (i + 1, tf.tanh(v) + x), [0, x], parallel_iterations=parallel
    )
    with told(hand_off=0.0, host=host, inter_op_threads=2) as sess:
        sess.run(loop, {x: [0.5, 1.0]})
    assert meter.most <= parallel + 2


def test_a_history_is_freed_as_the_way_back_reads_it(told):
    """Of 100 elements that the forward loop keeps, none is left once the gradient is there."""
    host = Host()
    meter = Meter(host)
    x = tf.placeholder(tf.float32, [2])
    y = tf.while_loop(lambda i, v: i < 100, lambda i, v: (i + 1, tf.tanh(v)), [0, x])[1]
    (slope,) = tf.gradients(y, x)
    with told(host=host) as sess:
        sess.run(slope, {x: [0.5, 1.0]})
    assert 100 <= meter.most <= 102 and meter.alive <= 1


def test_an_endless_loop_of_numbers_ends_when_its_session_is_closed(told):
    begun, ended = threading.Event(), []
    started = tf.py_func(lambda: (begun.set(), np.int32(0))[1], [], tf.int32)
    started.set_shape([])
    loop = tf.while_loop(lambda i: i >= 0, lambda i: i * 1, [started])
    sess = told()

    def run():
        try:
            sess.run(loop)
        except tf.errors.CancelledError as error:
            ended.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert begun.wait(60)
    sess.close()
    thread.join(60)
    assert len(ended) == 1 and not thread.is_alive()


def test_an_error_in_an_iteration_names_its_node(way):
    x = tf.placeholder(tf.float32, [None])

    def body(i, v):
        return i + 1, tf.reshape(v, [2 - i], name="fit")

    loop = tf.while_loop(
        lambda i, v: i < 3, body, [0, x], shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])]
    )
    with way() as sess, pytest.raises(tf.errors.InvalidArgumentError) as caught:
        sess.run(loop, {x: [1.0, 2.0]})
    assert caught.value.op.endswith("fit")
