"""Locks of steps, and that nothing keeps them from releasing them."""

from __future__ import annotations

import ctypes
import dis
import os
import random
import sys
import threading
import time

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import Bound, KernelDef, OpDef, opdef
from graphdock.contracts.runtime import resource_lock as lock_module
from graphdock.contracts.runtime.access import Access
from graphdock.contracts.runtime.resource_lock import LockRequest, LockSet
from graphdock.planning import plan as plan_module
from graphdock.plugin.host import Host
from graphdock_executor.straight_line import program as program_module

from tests.planning.interrupter import Interrupter
from tests.planning.own_thread import in_its_own_thread

ArgDef = opdef.ArgDef


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.fixture
def host():
    host = Host()
    yield host
    host.close()


def plan_of(sess, fetch, feeds=None):
    seen = tf.RunMetadata()
    sess.run(fetch, feeds, run_metadata=seen)
    return seen.plan


def idle(plan):
    return all(not g.requests and not g.waiting for g in plan.locks)


class Within:
    """An op whose kernel calls a function of the test in the middle of a step."""

    def __init__(self, host):
        arg = ArgDef("x", "float32", "[*S]")
        self.opdef = OpDef(
            "lab.Within", inputs=(arg,), outputs=(ArgDef("y", "float32", "[*S]"),), traits=frozenset({"stateful"})
        )
        host.ops.add(self.opdef, "lab")
        self.call = lambda: None

        def build(ctx):
            def compute(x, *out):
                self.call()
                if out:
                    out[0][...] = x
                    return None
                return x.copy()

            return Bound(compute)

        host.kernels.add(KernelDef("lab.Within", "cpu", build), "user", "lab")

    def __call__(self, x):
        made = tf.get_default_graph().create_op("lab.Within", [tf.convert_to_tensor(x)], op_def=self.opdef)
        return made.outputs[0]


# -- what is locked


def test_a_step_claims_what_it_reads_and_what_it_writes():
    a, b, c = (tf.Variable([1.0], name=n) for n in "abc")
    step = a.assign_add(b.value(), read_value=False)
    both = tf.group(step, c.read_value())
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        plan = plan_of(sess, both)
        assert {v.name for v in plan.lock_set.writes} == {"a"}
        assert {v.name for v in plan.lock_set.reads} == {"b", "c"}
        assert str(plan.lock_set) == f"the step of {both.name}"
        assert len(plan.locks) == 1 and idle(plan)


def test_a_step_without_variables_takes_no_lock():
    with tf.Session() as sess:
        plan = plan_of(sess, tf.constant(1.0) + 1.0)
        assert plan.locks == () and plan.resources == ()


def test_a_step_that_calls_python_claims_nothing_while_it_calls():
    v = tf.Variable([1.0])
    held = []
    called = tf.py_func(lambda a: (held.append(list(plan_of_v.locks[0].requests)), a)[1], [v.read_value()], tf.float32)
    with tf.control_dependencies([called]):
        step = v.assign_add([1.0])
    with tf.Session() as sess:
        sess.run(v.initializer)
        plan_of_v = plan_of(sess, v)
        assert sess.run(step).tolist() == [2.0]
        assert held == [[]]
        assert plan_of(sess, step).locks == () and idle(plan_of_v)


def test_the_name_of_a_step_is_short():
    variables = [tf.Variable([1.0], name=f"v{i}") for i in range(9)]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        label = str(plan_of(sess, [v.value() for v in variables]).lock_set)
    assert label.endswith("and 6 more") and len(label) < 200


# -- several containers


def test_sessions_whose_steps_cross_containers_in_any_order_never_deadlock(host):
    sessions, updates, totals = [], [], {f"c{i}": 0 for i in range(3)}
    for number in range(3):
        names = [f"c{(number + i) % 3}" for i in range(3)]
        with tf.Graph().as_default() as graph:
            variables = {}
            for name in names:
                with tf.container(name):
                    variables[name] = tf.Variable(np.zeros(200, np.int64), name=f"v_{name}")
            sess = tf.Session(graph=graph, host=host)
            sess.run(tf.global_variables_initializer())
            mine = []
            for chosen in (names, names[:2], names[1:], names[:1]):
                step = tf.group(*[variables[n].assign_add(np.ones(200, np.int64), read_value=False) for n in chosen])
                mine.append((step, chosen))
            sessions.append((sess, variables))
            updates.append(mine)
    done = [dict.fromkeys(totals, 0) for _ in range(6)]
    torn = []

    def work(number):
        sess, variables = sessions[number % 3]
        rng = random.Random(number)
        for _ in range(100):
            step, chosen = rng.choice(updates[number % 3])
            sess.run(step)
            for name in chosen:
                done[number][name] += 1
            got = sess.run(list(variables.values()))
            torn.extend(v for v in got if (v != v[0]).any())

    threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(t.is_alive() for t in threads) and torn == []
    sess, variables = sessions[0]
    for name, v in variables.items():
        assert (sess.run(v) == sum(d[name] for d in done)).all()
    plan = plan_of(sess, list(variables.values()))
    assert len(plan.locks) == 3 and idle(plan)
    numbers = [g.number for g in plan.locks]
    assert numbers == sorted(numbers)


# -- waits


def test_a_deadline_ends_the_wait_and_names_variable_and_holder(host):
    v = tf.Variable([1.0], name="shared")
    within = Within(host)
    holding = tf.identity(within(v.assign_add([1.0])), name="holding")
    update = v.assign_add([1.0], read_value=False)
    inside, go = threading.Event(), threading.Event()
    with tf.Session(host=host) as sess:
        sess.run(v.initializer)
        sess.run(holding)
        plan = plan_of(sess, update)
        within.call = lambda: (inside.set(), go.wait(60))
        thread = threading.Thread(target=sess.run, args=(holding,), name="the holder", daemon=True)
        thread.start()
        assert inside.wait(60)
        with pytest.raises(tf.errors.DeadlineExceededError) as caught:
            sess.run(update, options=tf.RunOptions(timeout_in_ms=20))
        go.set()
        thread.join(60)
        text = str(caught.value)
        assert f"the step of {update.name} waited" in text and "variable 'shared'" in text
        assert "the step of" in text and "which runs on thread 'the holder'" in text
        within.call = lambda: None
        assert sess.run(v).tolist() == [4.0], "what gave up has not run"
        assert idle(plan)


def test_a_step_inside_a_step_on_its_variable_is_refused_with_both_names(host):
    v = tf.Variable([1.0], name="counter")
    within = Within(host)
    outer = within(v.read_value())
    inner = v.assign_add([10.0], read_value=False)
    with tf.Session(host=host) as sess:
        sess.run(v.initializer)
        plan = plan_of(sess, outer)
        within.call = lambda: sess.run(inner)
        with pytest.raises(tf.errors.FailedPreconditionError) as caught:
            sess.run(outer)
        text = str(caught.value)
        assert inner.name in text and f"the step of {outer.op.name}" in text and "variable 'counter'" in text
        within.call = lambda: sess.run(v.read_value())
        assert sess.run(outer).tolist() == [1.0], "two readers are no conflict"
        assert idle(plan)


def test_a_step_that_calls_python_waits_for_each_access_within_its_limit(host):
    v, within = tf.Variable([1.0], name="shared"), Within(host)
    holding = within(v.assign_add([1.0]))
    with tf.control_dependencies([tf.py_func(lambda: np.int32(0), [], tf.int32)]):
        update = v.assign_add([1.0], read_value=False)
    inside, go = threading.Event(), threading.Event()
    with tf.Session(host=host) as sess:
        sess.run(v.initializer)
        sess.run(update)
        within.call = lambda: (inside.set(), go.wait(60))
        thread = threading.Thread(target=sess.run, args=(holding,), name="the holder", daemon=True)
        thread.start()
        assert inside.wait(60)
        with pytest.raises(
            tf.errors.DeadlineExceededError, match=f"the step of {update.name} waited.*variable 'shared'"
        ):
            sess.run(update, options=tf.RunOptions(timeout_in_ms=300))
        go.set()
        thread.join(60)
        within.call = lambda: None
        assert sess.run(v).tolist() == [3.0], "what gave up has not run"


def test_closing_a_session_ends_the_wait_of_its_steps(host):
    within, inside, go = Within(host), threading.Event(), threading.Event()
    with tf.container("awaited"):
        v = tf.Variable([1.0], name="v")
    holding, update = within(v.read_value()), v.assign_add([1.0], read_value=False)
    ended = []

    def wait():
        try:
            waiting.run(update)
        except tf.errors.CancelledError as error:
            ended.append(error)

    with tf.Session(host=host) as sess:
        waiting = tf.Session(host=host)
        sess.run(v.initializer)
        lock = plan_of(waiting, update).locks[0]
        within.call = lambda: (inside.set(), go.wait(60))
        threads = [threading.Thread(target=f, daemon=True) for f in (lambda: sess.run(holding), wait)]
        threads[0].start()
        assert inside.wait(60)
        threads[1].start()
        while not lock.waiting:
            assert threads[1].is_alive()
        waiting.close()
        threads[1].join(60)
        assert len(ended) == 1
        go.set()
        threads[0].join(60)
        within.call = lambda: None
        assert sess.run(v).tolist() == [2.0], "what waited has not run"


def test_closing_from_within_a_step_is_refused_and_from_python_functions_ends_the_step(host):
    v = tf.Variable([1.0], name="counter")
    within = Within(host)
    outer = within(v.read_value())
    python = tf.py_func(lambda a: (sess.close(), a)[1], [v.read_value()], tf.float32)
    sess = tf.Session(host=host)
    sess.run(v.initializer)
    within.call = lambda: sess._store.clear()
    with pytest.raises(tf.errors.FailedPreconditionError, match="the reset of this session would wait for the step of"):
        sess.run(outer)
    with pytest.raises(tf.errors.CancelledError, match="session was closed while it ran"):
        sess.run(python)
    with pytest.raises(tf.errors.FailedPreconditionError, match="closed"):
        sess.run(v)


# -- interrupts


def of_a_step(code):
    """Whether code is a step's own, or its locks'."""
    return code.co_qualname.startswith("Access.") or code.co_filename.startswith("<graphdock step")


@pytest.mark.parametrize("kind", ["one lock", "two locks", "calls python", "contended"])
@in_its_own_thread
@pytest.mark.sampled(2)
def test_an_interrupt_at_any_bytecode_of_a_step_leaks_no_claim(kind, monkeypatch):
    if sys.gettrace() is not None:
        pytest.skip("a tracer is at work")
    monkeypatch.setattr(lock_module, "PATIENCE", 0.001)
    v = tf.Variable(np.zeros(3))
    with tf.container("interrupted"):
        w = tf.Variable(np.zeros(3))
    step = v.assign_add(np.ones(3), read_value=False)
    if kind == "two locks":
        step = tf.group(step, w.assign_add(np.ones(3), read_value=False))
    if kind == "calls python":
        with tf.control_dependencies([tf.py_func(lambda a: a, [v.read_value()], tf.float64)]):
            step = v.assign_add(np.ones(3), read_value=False)
    host = Host()
    with tf.Session(host=host) as sess:
        sess.run(tf.global_variables_initializer())
        plan = plan_of(sess, step)
        locks = {s.resource_lock for s in plan.stores}
        other = LockRequest(LockSet("other", everything=True))
        points = 0
        while True:
            tracer, caught = Interrupter(points, [lock_module, plan_module, program_module], of_a_step), False
            context = plan.lease()
            if context.used:
                context.reset()
            if kind == "contended":
                plan.locks[0].requests[other] = threading.get_ident() + 1
                context.limit(0.003)
            try:
                with tracer:
                    plan.run(context, ())
            except KeyboardInterrupt:
                caught = True
            except tf.errors.DeadlineExceededError:
                assert kind == "contended"
            plan.give_back(context)
            plan.locks and plan.locks[0].requests.pop(other, None)
            assert caught == tracer.raised
            for lock in locks:
                assert not lock.requests and not lock.waiting, f"leaked at bytecode {points}"
            if not tracer.raised:
                break
            points += 1
        assert points > 60
        sess.run(step)
    host.close()


def test_two_thousand_interrupts_of_steps_leak_nothing_and_lose_no_other_threads_update():
    v, count = tf.Variable(np.zeros(8)), tf.Variable(np.int64(0))
    mine = v.assign_add(np.ones(8), read_value=False)
    theirs = tf.group(v.assign_add(np.ones(8), read_value=False), count.assign_add(np.int64(1), read_value=False))
    caught, inside, done, stop = [0], [0], [0], threading.Event()
    files = (lock_module.__file__, plan_module.__file__)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        plan = plan_of(sess, mine)
        sess.run(theirs)
        done[0] += 1

        def work():
            while not stop.is_set():
                try:
                    while not stop.is_set():
                        sess.run(mine)
                except KeyboardInterrupt as error:
                    caught[0] += 1
                    trace, seen = error.__traceback__, False
                    while trace is not None:
                        seen = seen or trace.tb_frame.f_code.co_filename in files
                        trace = trace.tb_next
                    inside[0] += seen

        def guarded():
            while not stop.is_set():
                try:
                    work()
                except KeyboardInterrupt:  # it struck outside of the try
                    caught[0] += 1

        def rival():
            while not stop.is_set():
                sess.run(theirs)
                done[0] += 1

        threads = [threading.Thread(target=f, daemon=True) for f in (guarded, rival)]
        for thread in threads:
            thread.start()
        for number in range(1, 2001):
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(threads[0].ident), ctypes.py_object(KeyboardInterrupt)
            )
            end = time.monotonic() + 60
            while caught[0] < number:
                assert time.monotonic() < end, "the interrupted thread hangs"
                time.sleep(0)
        stop.set()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        assert inside[0] > 500, "too few struck inside a step"
        assert idle(plan)
        assert sess.run(count) == done[0]
        got = sess.run(v)
        assert (got == got[0]).all() and got[0] >= done[0]


def handler_of(code, offset):
    """Where an exception at that offset goes to; None: out of the function."""
    return next((e.target for e in dis.Bytecode(code).exception_entries if e.start <= offset < e.end), None)


@pytest.mark.parametrize(
    "function",
    [plan_module._LockedPlan.run, Access.__call__, lock_module.ResourceLock.wait, lock_module.with_locks],
    ids=lambda f: f.__qualname__,
)
def test_an_interrupt_at_a_jump_back_reaches_the_finally_around_the_loop(function):
    """The interpreter looks for signals when it has jumped back; what it finds counts for the instruction before the target."""
    code = function.__code__
    jumps = [i for i in dis.get_instructions(code) if "JUMP_BACKWARD" in i.opname]
    for jump in jumps:
        assert handler_of(code, jump.argval - 2) == handler_of(code, jump.offset), jump


# -- forks


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("where", ["in a step", "while planning", "while making an instance"])
def test_a_forked_child_plans_and_runs_whatever_other_threads_were_doing(where, host):
    """The child uses every lock that a step may meet: the session's, the planner's, the plan's, the store's, the graph's."""
    v = tf.Variable([1.0])
    with tf.container("forked"):
        w = tf.Variable([2.0])
    within = Within(host)
    inside, go, at = threading.Event(), threading.Event(), threading.current_thread()

    def stop(*args):
        if threading.current_thread() is not at:
            inside.set()
            go.wait(60)

    busy = within(v.assign_add([1.0]))
    update = tf.group(v.assign_add([1.0], read_value=False), w.assign_add([1.0], read_value=False))
    sess = tf.Session(host=host)
    sess.run(tf.global_variables_initializer())
    sess.run(update)
    if where == "in a step":
        within.call = stop
    else:
        kernel = next(k for k in host.kernels.for_op("lab.Within")).kernel
        host.kernels.discard("user")
        made = []

        def build(ctx):
            made.append(1)
            if where == "while planning" or len(made) > 1:
                stop()
            return kernel.build(ctx)

        host.kernels.add(KernelDef("lab.Within", "cpu", build), "user", "lab")
    if where == "while making an instance":
        plan = plan_of(sess, busy)
        plan.lease()  # so that another one builds the kernels again, under the program's lock
    thread = threading.Thread(target=sess.run, args=(busy,), daemon=True)
    thread.start()
    assert inside.wait(60)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            import signal

            signal.alarm(30)
            sess.run(update)
            x = tf.constant([3.0])  # the graph's lock
            got = sess.run(v.assign(x * 2.0))  # the session's and the planner's
            if where == "while making an instance":
                sess.run(busy)
            tf.Session.reset(host=host)
            sess.close()
            code = 0 if got.tolist() == [6.0] else 2
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    go.set()
    thread.join(60)
    assert os.waitstatus_to_exitcode(status) == 0
    within.call = lambda: None
    sess.run(update)
    sess.close()
