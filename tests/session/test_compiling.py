"""Code that is compiled while steps run without it: plans that do without, take the place of others, and tell of failures."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import Claim, NotCompiled, Prepared, RegionCompiler, hookimpl
from graphdock.plugin.host import Host


class Slow(RegionCompiler):
    """Makes ``x * x + 1.0`` one kernel, whose compilation waits for an event."""

    name = "slow"
    device_type = "cpu"

    def __init__(self):
        self.begun, self.go, self.done = threading.Event(), threading.Event(), False
        self.error = None
        self.calls = []

    def claim(self, candidate):
        return Claim(tuple(candidate.graph.nodes), cost_us=0.1)

    def compile(self):
        self.calls.append(threading.current_thread())
        self.begun.set()
        assert self.go.wait(60)
        if self.error is not None:
            raise self.error
        self.done = True

    def prepare(self, region, ctx):
        if not self.done:
            raise NotCompiled(self.compile)

        def bind(bound):
            return lambda x, y: np.add(x * x, np.float32(1), out=y)

        return Prepared(bind)


@pytest.fixture
def slow():
    return Slow()


@pytest.fixture
def sess(slow):
    class Plugin:
        @hookimpl
        def register_region_compilers(self):
            return [slow]

    host = Host()
    host.register("slow", Plugin())
    with tf.Graph(host=host).as_default() as graph, tf.Session(graph=graph, config=config(), host=host) as made:
        yield made
        slow.go.set()


def config(**fields):
    return tf.SessionConfig(backends=("slow", "cpu"), **fields)


def step(sess, y, feed):
    """Results of a step, and how many kernels of its plan are compiled regions."""
    told = tf.RunMetadata()
    result = sess.run(y, feed, run_metadata=told)
    kernels = [r.plugin for r in told.plan.placement.kernels.values()]
    return result, kernels.count("slow")


def until_swapped(sess, y, feed):
    """Run steps until one has the region."""
    while not step(sess, y, feed)[1]:
        pass


def program():
    x = tf.placeholder(tf.float32, [3])
    return x, x * x + 1.0


FED = np.array([1, 2, 3], np.float32)
WANT = [2, 5, 10]


def test_steps_run_without_a_region_until_it_is_compiled(sess, slow):
    x, y = program()
    result, regions = step(sess, y, {x: FED})
    assert result.tolist() == WANT and regions == 0
    assert slow.begun.wait(60)
    told = sess.explain(y, {x: FED})
    assert "1 kernel is compiled while its steps run" in str(told.notes()) and "slow.slow" not in told.kernels()
    assert step(sess, y, {x: FED}) == (pytest.approx(WANT), 0)
    slow.go.set()
    until_swapped(sess, y, {x: FED})
    assert step(sess, y, {x: FED}) == (pytest.approx(WANT), 1)
    told = sess.explain(y, {x: FED})
    assert told.kernels() == {"slow.slow": 1} and not told.notes()
    assert len(slow.calls) == 1 and slow.calls[0] is not threading.current_thread()


def test_another_step_is_planned_while_one_is_compiled(sess, slow):
    x, y = program()
    step(sess, y, {x: FED})
    assert slow.begun.wait(60)
    assert sess.run(tf.sqrt(y), {x: FED}) == pytest.approx(np.sqrt(WANT))


def test_an_error_of_the_compiler_is_raised_by_a_step(sess, slow):
    x, y = program()
    slow.error = ValueError("out of registers")
    step(sess, y, {x: FED})
    slow.go.set()
    with pytest.raises(tf.errors.InternalError, match="out of registers"):
        while True:
            step(sess, y, {x: FED})
    with pytest.raises(tf.errors.InternalError, match="out of registers"):
        step(sess, y, {x: FED})
    slow.error = None
    assert step(sess, y, {x: FED}) == (pytest.approx(WANT), 1)


def test_variables_keep_their_values_and_draws_go_on_over_a_swap(sess, slow):
    x = tf.placeholder(tf.float32, [3])
    v = tf.Variable([0.0, 0.0, 0.0])
    drawn = tf.random_uniform([3], seed=7)
    y = tf.assign(v, v * v + 1.0)
    sess.run(v.initializer)
    want, numbers, draws = np.zeros(3, np.float32), [], []
    for i in range(4):
        if i == 2:
            slow.go.set()
            while not sess.explain(x * x + 1.0, {x: FED}).kernels().get("slow.slow"):
                pass
        want = want * want + 1
        got, number = sess.run([y, drawn])
        assert got == pytest.approx(want)
        draws.append(number)
    with tf.Session(graph=sess.graph, config=tf.SessionConfig(backends=("cpu",)), host=sess._host) as plain:
        for number in draws:
            numbers.append(plain.run(drawn))
            np.testing.assert_array_equal(number, numbers[-1])


def test_threads_run_over_a_swap(sess, slow):
    x, y = program()
    stop, wrong = threading.Event(), []

    def work():
        while not stop.is_set():
            if sess.run(y, {x: FED}).tolist() != WANT:
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    slow.go.set()
    until_swapped(sess, y, {x: FED})
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong


def test_plans_of_before_and_after_a_graph_grows_get_the_region(sess, slow):
    x, y = program()
    step(sess, y, {x: FED})
    assert slow.begun.wait(60)
    z = y + 1.0
    slow.go.set()
    until_swapped(sess, z, {x: FED})
    until_swapped(sess, y, {x: FED})  # the later plan may have it first
    assert step(sess, y, {x: FED}) == (pytest.approx(WANT), 1)


def test_a_closed_session_leaves_what_is_not_begun(slow):
    class Plugin:
        @hookimpl
        def register_region_compilers(self):
            return [slow]

    host = Host()
    host.register("slow", Plugin())
    with tf.Graph(host=host).as_default() as graph:
        x, y = program()
        session = tf.Session(graph=graph, config=config(), host=host)
        session.run(y, {x: FED})
        session.run(tf.sqrt(y), {x: FED})
        assert slow.begun.wait(60)
        session.close()
        slow.go.set()
        slow.calls[0].join()
    assert len(slow.calls) == 1


def test_a_deterministic_session_waits(slow, sess):
    x, y = program()
    slow.go.set()
    with tf.Session(graph=sess.graph, config=config(deterministic=True), host=sess._host) as steady:
        assert step(steady, y, {x: FED}) == (pytest.approx(WANT), 1)
    assert slow.calls == [threading.current_thread()]


def test_a_function_of_a_kernel_waits_for_its_code(sess, slow):
    slow.go.set()
    elements = tf.data.Dataset.from_tensors(FED).map(lambda v: v * v + 1.0).make_one_shot_iterator().get_next()
    assert sess.run(elements).tolist() == WANT
    assert slow.done


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_keeps_its_plan_and_compiles_for_others(sess, slow):
    x, y = program()
    step(sess, y, {x: FED})
    assert slow.begun.wait(60)
    child = os.fork()
    if not child:
        signal.alarm(60)
        slow.go = threading.Event()
        slow.go.set()
        right = step(sess, y, {x: FED})[0].tolist() == WANT
        until_swapped(sess, y + 1.0, {x: FED})
        os._exit(0 if right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_program_that_ends_waits_for_no_more_than_one_function(tmp_path):
    text = """
import numpy as np, threading, time
import graphdock as tf
x = tf.placeholder(tf.float32, [64])
sess = tf.Session(config=tf.SessionConfig(backends=("llvm", "cpu"), options={"llvm": {"compile": "meanwhile"}}))
for i in range(12):
    sess.run(tf.tanh(x * float(i + 2)) + 1.0, {x: np.ones(64)})
print("ended")
"""
    pytest.importorskip("graphdock_llvm")
    done = subprocess.run(
        [sys.executable, "-c", text],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "GRAPHDOCK_CACHE_DIR": str(tmp_path)},
    )
    assert done.returncode == 0 and done.stdout == "ended\n" and not done.stderr
