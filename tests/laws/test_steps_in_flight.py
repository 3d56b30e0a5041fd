"""Steps in flight give what steps give that wait for each other, whatever goes wrong.

Under the race checker: several steps of one session, of many threads and of several sessions over one container. Each wait for
a fence is needed. A fault at any call, a lost device and an interrupt at any point fail what they met and nothing else: every
error is raised once, and names its step; nothing stays held.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import signal
import sys
import threading

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts.runtime import resource_lock
from graphdock.planning import plan
from graphdock.session import overlap
from graphdock_executor import in_flight, stream_slot, stream_slots
from graphdock_executor.lower import overlap as lower_overlap
from graphdock_executor.straight_line import program as program_module
from graphdock_testing.driver import races
from graphdock_testing.driver.queue import DriverQueue
from in_flight_programs import (
    ONE,
    PROGRAMS,
    Rig,
    chained,
    controlled,
    dropped_out,
    on_two_devices,
    read_by_many,
    regression,
    same,
)

from tests.planning.interrupter import Interrupter
from tests.planning.own_thread import in_its_own_thread


@pytest.fixture(autouse=True)
def quiet(caplog):
    caplog.set_level(logging.ERROR, "graphdock")


@pytest.fixture(autouse=True)
def ahead(monkeypatch):
    """Feeds are copied ahead of what a step waits for, though they are small; ``ahead(False)``: they are not."""

    def choose(all_of_them):
        monkeypatch.setattr(lower_overlap, "AHEAD_BYTES", 0 if all_of_them else 1 << 16)

    choose(True)
    return choose


# -- results


QUICK = ((2, False, {}), (3, True, {}), (4, False, {"debug": True}))
MANY = [
    (most, shared, fields)
    for most in (2, 3, 4)
    for shared in (False, True, "peers")
    for fields in ({}, {"check_numerics": True})
]


@pytest.mark.modes
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
@pytest.mark.parametrize(
    ("seeds", "ways"),
    [
        pytest.param((0,), QUICK, id="quick"),
        pytest.param(range(1, 9), MANY, id="many", marks=pytest.mark.exhaustive),
    ],
)
@pytest.mark.sampled(3)
def test_results_are_those_of_one_step_at_a_time(program, seeds, ways, ahead):
    want, _ = Rig(program).run()
    for seed in seeds:
        for number, (most, shared, fields) in enumerate(ways):
            ahead((number + seed) % 3 > 0)
            got, found = Rig(program, seed, shared).run(most, **fields)
            assert not found, (most, found[0])
            same(got, want)


@pytest.mark.plain  # debug mode waits for each kernel
def test_steps_are_in_flight_at_all():
    """The law above holds nothing back: these steps return while their work, and that of others, is still to come."""
    rig = Rig(regression, laziness=1.0)
    with rig.session(3) as sess:
        most = 0
        for fetches, feed in rig.calls[:5]:
            sess.run(fetches, feed)
            most = max(most, len(sess._overlap.in_flight.pending))
        assert most == 3 and rig.device.pending > 20


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("most", [2, 3])
def test_threads_that_share_variables(seed, most):
    def program():
        x = tf.placeholder(tf.float32, [3], name="x")
        with tf.device(ONE):
            v = tf.Variable(np.zeros(3, np.float32), name="v")
            w = tf.Variable(np.zeros(3, np.float32), name="w")
            both = tf.group(v.assign_add(x * 2.0), w.assign_add(x * 2.0), name="both")
            called = tf.reshape(tf.py_func(lambda t: t, [x], tf.float32), [3])
            return [
                both,
                v - w,
                tf.group(v.assign_add(called), name="called"),
                tf.global_variables_initializer(),
                [v, w],
            ]

    rig = Rig(program, seed)
    both, difference, called, start, state = rig.calls
    one, wrong = {"x:0": np.ones(3, np.float32)}, []
    with races.check(rig.device), rig.session(most) as sess:
        sess.run(start)

        def work(number):
            try:
                for k in range(10):
                    sess.run(both, one)
                    if (number + k) % 3 == 0:
                        np.testing.assert_array_equal(sess.run(difference), np.zeros(3, np.float32))
                    if number == 5 and k == 4:
                        sess.synchronize()
            except Exception as error:  # noqa: BLE001 - told to the test's own thread
                wrong.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong, wrong[0]
        assert len(sess._overlap.in_flight.pending) <= most
        sess.run(called, one)
        same(sess.run(state), [np.full(3, 121, np.float32), np.full(3, 120, np.float32)])


@pytest.mark.parametrize("others", [1, 2], ids=["one at a time", "two in flight"])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.sampled(2)
def test_sessions_over_one_container(seed, others):
    """One session's steps are in flight; another one, which may wait for each of its own, reads and writes the same variables."""

    def program():
        x = tf.placeholder(tf.float32, [4], name="x")
        with tf.container("shared"), tf.device(ONE):
            v = tf.Variable(np.ones(4, np.float32), name="v")
            w = tf.Variable(np.ones(4, np.float32), name="w")
        with tf.device(ONE):
            steps = [v.assign(tf.tanh(w) + x).op, w.assign_add(v * x).op]
        with tf.device("/cpu:0"):
            steps.append(tf.assign_sub(v, tf.square(x)).op)
        return [tf.global_variables_initializer(), *steps, [v, w]]

    def run(mine, theirs):
        rig = Rig(program, seed)
        start, *steps, state = rig.calls
        rng = np.random.default_rng(1)
        with races.check(rig.device), rig.session(mine) as first, rig.session(theirs) as second:
            second.run(start)
            for step in (*steps, state):  # before the container has seen a step that may be in flight
                second.run(step, {} if step is state else {"x:0": np.ones(4, np.float32)})
            for k in range(14):
                sess = (first, first, second, first, second)[k % 5]
                sess.run(steps[k % 3], {"x:0": rng.normal(size=4).astype("f")})
            return second.run(state)

    same(run(3, others), run(1, 1))


@pytest.mark.plain
def test_a_reset_waits_for_what_is_in_flight():
    def program():
        with tf.container("shared"):
            v = tf.Variable(np.ones(4, np.float32), name="v")
            u = tf.Variable(np.ones((1, 2), np.float32), name="u", validate_shape=False)
        changed = tf.assign_add(u, tf.exp(u)).op
        return [[v.initializer, u.initializer], tf.group(v.assign_add(tf.exp(v)), changed), v]

    rig = Rig(program, laziness=1.0)
    start, update, value = rig.calls
    with races.check(rig.device), rig.session(2) as sess:
        sess.run(start)
        sess.run(update)
        assert rig.device.pending
        tf.Session.reset(containers=["shared"], host=rig.host)
        with pytest.raises(tf.errors.UninitializedError):
            sess.run(update)
        sess.run(start)
        sess.run(update)
        np.testing.assert_allclose(sess.run(value), 1 + np.exp(np.ones(4)), rtol=1e-6)


# -- waits


SOME = ((dropped_out, 3), (chained, 3), (read_by_many, 2), (controlled, 2))


class Dropper:
    """Leaves out the wait for a fence that has the number ``drop``; ``seen`` are all, in order."""

    def __init__(self, monkeypatch):
        self.drop, self.seen = None, []
        on_queue, on_host = stream_slot.StreamSlot._wait, stream_slot.StreamFence.wait_host
        monkeypatch.setattr(
            stream_slot.StreamSlot, "_wait", lambda own, fence: self._take("queue", lambda: on_queue(own, fence))
        )
        monkeypatch.setattr(
            stream_slot.StreamFence,
            "wait_host",
            lambda own: None if own.over else self._take("host", lambda: on_host(own)),
        )

    def _take(self, what, wait):
        self.seen.append(what)
        if len(self.seen) - 1 != self.drop:
            wait()


@pytest.mark.plain
@pytest.mark.parametrize(
    ("program", "most"),
    [
        pytest.param(p, m, id=f"{p.__name__}, {m}", marks=() if (p, m) in SOME else pytest.mark.exhaustive)
        for p in (regression, dropped_out, chained, read_by_many, controlled)
        for m in (2, 3)
    ],
)
@pytest.mark.sampled(2)
def test_each_wait_for_a_fence_that_is_removed_is_missed(program, most, monkeypatch):
    """One fence stands for all that a step does on a stream slot: one that the host waits for in its middle may wait for too much.

    These programs have no such step, or none whose wait is not needed.
    """

    def settle(queue):
        with queue._held("settle"):
            queue.driver.scheduler.drain(queue.line)
            queue.device.health.check()

    # a kernel that waits for its inputs on its own account promises nothing to the step
    monkeypatch.setattr(DriverQueue, "settle", settle)
    want, _ = Rig(program).run()
    dropper = Dropper(monkeypatch)
    assert not Rig(program, laziness=1.0).run(most)[1]
    waits, unseen = len(dropper.seen), []
    for number in range(waits):
        dropper.drop, dropper.seen = number, []
        try:
            got, found = Rig(program, laziness=1.0).run(most)
        except Exception:  # noqa: BLE001, S112 - poison met a kernel that minds
            continue
        if not found and all(np.array_equal(a, b) for a, b in zip(got, want, strict=True)):
            unseen.append(f"{dropper.seen[number]} {number}")
    assert waits >= 3 and not unseen, f"{len(unseen)} of {waits} waits order nothing: {unseen}"


# -- what goes wrong


class Calls:
    """The calls of a program after the first, the initializers', and the errors that they raise."""

    def __init__(self, rig, sess):
        self.rig, self.sess = rig, sess
        self.errors, self.met = [], None

    def run(self):
        faults = self.rig.device.faults
        for number, (fetches, feed) in enumerate(self.rig.calls[1:]):
            for _ in range(10):
                before = len(self.errors)
                try:
                    self.sess.run(fetches, feed)
                except tf.errors.GraphdockError as error:
                    self.errors.append((number, error))
                if faults.happened and self.met is None:
                    self.met = number
                if len(self.errors) == before or self.errors[-1][1].step is None:
                    break  # it has run; else it was not begun, and an earlier one's error was told
        while True:
            try:
                self.sess.synchronize()
                return
            except tf.errors.GraphdockError as error:
                self.errors.append((None, error))

    def name(self, number):
        fetches = self.rig.calls[1:][number][0]
        return (fetches[0] if isinstance(fetches, list) else fetches).name.split(":")[0]


def nothing_is_held(rig, sess):
    assert not stream_slots.SLOTS_LOCK.requests and not stream_slots.SLOTS_LOCK.waiting
    assert not sess._store.resource_lock.requests and not sess._store.resource_lock.waiting
    in_flight_steps = sess._overlap.in_flight
    assert not in_flight_steps.pending and not in_flight_steps.failed
    assert all(slot.in_flight is None for slot in rig.device._slots)
    for kept in list(sess._plans._order):
        assert len(set(kept.idle)) == len(kept.idle) and set(kept._live) == set(kept.idle), (
            "a context is lost, or idle twice"
        )
        assert all(step.on_submit is None for step in kept.idle)


def inject(rig, most, number, how, want):
    """Whether call ``number`` after the initializers' came; the step that made it is the one that fails."""
    faults = rig.device.faults
    with rig.session(most) as sess:
        sess.run(*rig.calls[0])
        sess.synchronize()
        faults.reset()
        faults.at(number, how)
        calls = Calls(rig, sess)
        calls.run()
        happened = list(faults.happened)
        faults.reset()
        if not happened:
            assert not calls.errors
            return False
        what = f"{how} at {number}, {happened[0].kind}"
        assert len(calls.errors) == 1, f"{what}: {calls.errors}"
        raised, error = calls.errors[0]
        if error.step is None:
            assert raised == calls.met, f"{what}: raised by call {raised}, met by call {calls.met}"
        else:
            assert f"the step of {calls.name(calls.met)}" in error.step and error.step in str(error), f"{what}: {error}"
        if happened[0].kind == "launch":
            assert error.op is not None and error.site is not None, f"{what}: no node is named in {error}"
        del error, calls
        nothing_is_held(rig, sess)
        rig.results(sess)
        sess.synchronize()
        nothing_is_held(rig, sess)
    same(rig.run(most)[0], want)  # a session of its own, whose random ops begin anew
    return True


@pytest.mark.parametrize(
    ("program", "most", "stride"),
    [
        pytest.param(chained, 2, 31, id="some of chained"),
        pytest.param(dropped_out, 3, 59, id="some of dropped_out"),
        pytest.param(on_two_devices, 3, 23, id="some of on_two_devices"),
        *(pytest.param(p, m, 1, id=f"{p.__name__}, {m}", marks=pytest.mark.exhaustive)
          for p in (chained, dropped_out, on_two_devices) for m in (2, 3)),
    ],
)  # fmt: skip
@pytest.mark.sampled(3)
def test_a_fault_at_any_call_fails_its_step_and_is_raised_once(program, most, stride):
    rig = Rig(program)
    want, _ = rig.run(most)
    gc.collect()
    level = rig.device.in_use
    for how in ("refuse", "fail"):
        number = 1 + (how == "fail")
        while inject(rig, most, number, how, want):
            number += stride
        assert number > 3 * stride
    gc.collect()
    assert rig.device.in_use <= level


@pytest.mark.plain
@pytest.mark.parametrize("number", [9, 17, 35])
def test_a_lost_device_fails_every_step_in_flight_and_names_its_work(number):
    rig = Rig(chained, laziness=1.0)
    sess = rig.session(3)
    sess.run(*rig.calls[0])
    sess.synchronize()
    rig.device.faults.at(rig.device.faults.calls + number, "lose")
    errors = []
    for fetches, feed in [call for call in rig.calls[1:] if not isinstance(call[0], list)]:
        try:
            sess.run(fetches, feed)
        except tf.errors.DeviceLostError as error:
            errors.append(error)
    in_flight = [error for error in errors if error.step is not None]
    assert len(in_flight) >= 1 and len({error.step for error in in_flight}) == len(in_flight)
    assert all(error.op is None for error in errors), "nobody knows the culprit"
    for error in in_flight:
        assert any("work of this step on queued:0 that may not be done: " in note for note in error.__notes__)
    with contextlib.suppress(tf.errors.DeviceLostError):
        sess.close()
    sess.close()
    assert not stream_slots.SLOTS_LOCK.requests and not sess._overlap.in_flight.pending


# -- interrupts


def test_an_interrupt_at_a_call_of_the_driver_loses_nothing(monkeypatch):
    rig = Rig(chained)
    want, _ = rig.run()
    call = type(rig.device.faults).call
    with rig.session(3) as sess:
        rig.device.faults.reset()
        rig.results(sess)
        calls = rig.device.faults.calls
    for number in range(1, calls, 9):

        def pressed(faults, kind, what, number=number):
            how = call(faults, kind, what)
            if faults.calls == number:
                signal.raise_signal(signal.SIGINT)
            return how

        with rig.session(3) as sess:
            rig.device.faults.reset()
            with monkeypatch.context() as patched:
                patched.setattr(type(rig.device.faults), "call", pressed)
                with contextlib.suppress(KeyboardInterrupt):
                    rig.results(sess)
            sess.synchronize()
            nothing_is_held(rig, sess)
            same(rig.results(sess), want)


#: The way of a step that is submitted, and back.
WATCHED = (resource_lock, plan, program_module, stream_slots, stream_slot, in_flight, overlap)


@pytest.mark.parametrize("stride", [41, pytest.param(1, marks=pytest.mark.exhaustive)])
@in_its_own_thread
def test_an_interrupt_at_any_bytecode_loses_nothing(stride):
    """The step that it meets is done or not; what is in flight is completed, and no context is lost to two."""
    if sys.gettrace() is not None:
        pytest.skip("a tracer is at work")

    def program():
        v = tf.Variable(np.zeros(2, np.float32))
        return [v.initializer, v.assign_add([1.0, 1.0], read_value=False), v]

    rig = Rig(program, laziness=1.0)
    start, update, value = rig.calls
    with races.check(rig.device), rig.session(2) as sess:
        points = done = 0
        sess.run(start)
        for _ in range(4):
            sess.run(update)
        while True:
            sess.run(start)
            sess.run(update)
            sess.run(update)  # two are in flight
            tracer = Interrupter(points, WATCHED)
            with contextlib.suppress(KeyboardInterrupt), tracer:
                sess.run(update)
            assert not stream_slots.SLOTS_LOCK.requests and not stream_slots.SLOTS_LOCK.waiting, (
                f"leaked at bytecode {points}"
            )
            sess.synchronize()
            assert not sess._overlap.in_flight.pending and not sess._overlap.in_flight.failed
            for kept in list(sess._plans._order):
                assert len(set(kept.idle)) == len(kept.idle), f"a context is idle twice, at bytecode {points}"
            count = sess.run(value)
            assert count[0] == count[1] and count[0] in (2, 3), f"{count} at bytecode {points}"
            done += count[0] == 3
            if not tracer.raised:
                break
            points += stride
        assert points > 500 and done > 1
        nothing_is_held(rig, sess)
        same([sess.run(value)], [np.full(2, 3, np.float32)])
