"""Steps in flight give what steps give that wait for each other, whatever goes wrong.

Under the race checker: several steps of one session, of many threads and of several sessions over one container. Each wait for
a ticket is needed. A fault at any call, a lost device and an interrupt at any point fail what they met and nothing else: every
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
from flights import (
    ONE,
    PROGRAMS,
    Runway,
    chained,
    controlled,
    dropped_out,
    on_two_devices,
    read_by_many,
    regression,
    same,
)
from graphdock.contracts.runtime import access_history as tickets
from graphdock.contracts.runtime import resource_lock
from graphdock.planning import plan
from graphdock.session import overlap
from graphdock_executor import in_flight as flight
from graphdock_executor import stream_slot as lane
from graphdock_executor import stream_slots as lanes
from graphdock_executor.lower import overlap as lower_overlap
from graphdock_executor.straight_line import program as program_module
from graphdock_testing.driver import races
from graphdock_testing.driver.queue import DriverQueue

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
def test_results_are_those_of_one_step_at_a_time(program, seeds, ways, ahead):
    want, _ = Runway(program).run()
    for seed in seeds:
        for number, (most, shared, fields) in enumerate(ways):
            ahead((number + seed) % 3 > 0)
            got, found = Runway(program, seed, shared).run(most, **fields)
            assert not found, (most, found[0])
            same(got, want)


@pytest.mark.plain  # debug mode waits for each kernel
def test_steps_are_in_flight_at_all():
    """The law above holds nothing back: these steps return while their work, and that of others, is still to come."""
    runway = Runway(regression, laziness=1.0)
    with runway.session(3) as sess:
        most = 0
        for fetches, feed in runway.calls[:5]:
            sess.run(fetches, feed)
            most = max(most, len(sess._overlap.flights.flying))
        assert most == 3 and runway.device.pending > 20


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

    runway = Runway(program, seed)
    both, difference, called, start, state = runway.calls
    one, wrong = {"x:0": np.ones(3, np.float32)}, []
    with races.check(runway.device), runway.session(most) as sess:
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
        assert len(sess._overlap.flights.flying) <= most
        sess.run(called, one)
        same(sess.run(state), [np.full(3, 121, np.float32), np.full(3, 120, np.float32)])


@pytest.mark.parametrize("others", [1, 2], ids=["one at a time", "two in flight"])
@pytest.mark.parametrize("seed", [0, 1])
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
        runway = Runway(program, seed)
        start, *steps, state = runway.calls
        rng = np.random.default_rng(1)
        with races.check(runway.device), runway.session(mine) as first, runway.session(theirs) as second:
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

    runway = Runway(program, laziness=1.0)
    start, update, value = runway.calls
    with races.check(runway.device), runway.session(2) as sess:
        sess.run(start)
        sess.run(update)
        assert runway.device.pending
        tf.Session.reset(containers=["shared"], host=runway.host)
        with pytest.raises(tf.errors.UninitializedError):
            sess.run(update)
        sess.run(start)
        sess.run(update)
        np.testing.assert_allclose(sess.run(value), 1 + np.exp(np.ones(4)), rtol=1e-6)


# -- waits


SOME = ((dropped_out, 3), (chained, 3), (read_by_many, 2), (controlled, 2))


class Dropper:
    """Leaves out the wait for a ticket that has the number ``drop``; ``seen`` are all, in order."""

    def __init__(self, monkeypatch):
        self.drop, self.seen = None, []
        on_queue, on_host = lane.Lane._wait, tickets.Ticket.wait_host
        monkeypatch.setattr(lane.Lane, "_wait", lambda own, ticket: self._take("queue", lambda: on_queue(own, ticket)))
        monkeypatch.setattr(
            tickets.Ticket, "wait_host", lambda own: None if own.over else self._take("host", lambda: on_host(own))
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
def test_each_wait_for_a_ticket_that_is_removed_is_missed(program, most, monkeypatch):
    """One ticket stands for all that a step does on a lane, so steps that the host waits for in their middle may wait for too much.

    These programs have no such step, or none whose wait is not needed.
    """

    def settle(queue):
        with queue._held("settle"):
            queue.driver.scheduler.drain(queue.line)
            queue.device.health.check()

    # a kernel that waits for its inputs on its own account promises nothing to the step
    monkeypatch.setattr(DriverQueue, "settle", settle)
    want, _ = Runway(program).run()
    dropper = Dropper(monkeypatch)
    assert not Runway(program, laziness=1.0).run(most)[1]
    waits, unseen = len(dropper.seen), []
    for number in range(waits):
        dropper.drop, dropper.seen = number, []
        try:
            got, found = Runway(program, laziness=1.0).run(most)
        except Exception:  # noqa: BLE001, S112 - poison met a kernel that minds
            continue
        if not found and all(np.array_equal(a, b) for a, b in zip(got, want, strict=True)):
            unseen.append(f"{dropper.seen[number]} {number}")
    assert waits >= 3 and not unseen, f"{len(unseen)} of {waits} waits order nothing: {unseen}"


# -- what goes wrong


class Flown:
    """The calls of a program after the first, the initializers', and the errors that they raise."""

    def __init__(self, runway, sess):
        self.runway, self.sess = runway, sess
        self.errors, self.met = [], None

    def run(self):
        faults = self.runway.device.faults
        for number, (fetches, feed) in enumerate(self.runway.calls[1:]):
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
        fetches = self.runway.calls[1:][number][0]
        return (fetches[0] if isinstance(fetches, list) else fetches).name.split(":")[0]


def nothing_is_held(runway, sess):
    assert not lanes.SLOTS_LOCK.requests and not lanes.SLOTS_LOCK.waiting
    assert not sess._store.resource_lock.requests and not sess._store.resource_lock.waiting
    flights = sess._overlap.flights
    assert not flights.flying and not flights.failed
    assert all(turn.flight is None for turn in runway.device._turns)
    for kept in list(sess._plans._order):
        assert len(set(kept.idle)) == len(kept.idle) and set(kept._live) == set(kept.idle), (
            "a context is lost, or idle twice"
        )
        assert all(step.departs is None for step in kept.idle)


def inject(runway, most, number, how, want):
    """Whether call ``number`` after the initializers' came; the step that made it is the one that fails."""
    faults = runway.device.faults
    with runway.session(most) as sess:
        sess.run(*runway.calls[0])
        sess.synchronize()
        faults.reset()
        faults.at(number, how)
        flown = Flown(runway, sess)
        flown.run()
        happened = list(faults.happened)
        faults.reset()
        if not happened:
            assert not flown.errors
            return False
        what = f"{how} at {number}, {happened[0].kind}"
        assert len(flown.errors) == 1, f"{what}: {flown.errors}"
        told, error = flown.errors[0]
        if error.step is None:
            assert told == flown.met, f"{what}: raised by call {told}, met by call {flown.met}"
        else:
            assert f"the step of {flown.name(flown.met)}" in error.step and error.step in str(error), f"{what}: {error}"
        if happened[0].kind == "launch":
            assert error.op is not None and error.site is not None, f"{what}: no node is named in {error}"
        del error, flown
        nothing_is_held(runway, sess)
        runway.results(sess)
        sess.synchronize()
        nothing_is_held(runway, sess)
    same(runway.run(most)[0], want)  # a session of its own, whose random ops begin anew
    return True


@pytest.mark.parametrize(
    ("program", "most", "stride"),
    [
        pytest.param(chained, 2, 13, id="some of chained"),
        pytest.param(dropped_out, 3, 29, id="some of dropped_out"),
        pytest.param(on_two_devices, 3, 17, id="some of on_two_devices"),
        *(pytest.param(p, m, 1, id=f"{p.__name__}, {m}", marks=pytest.mark.exhaustive)
          for p in (chained, dropped_out, on_two_devices) for m in (2, 3)),
    ],
)  # fmt: skip
def test_a_fault_at_any_call_fails_its_step_and_is_raised_once(program, most, stride):
    runway = Runway(program)
    want, _ = runway.run(most)
    gc.collect()
    level = runway.device.in_use
    for how in ("refuse", "fail"):
        number = 1 + (how == "fail")
        while inject(runway, most, number, how, want):
            number += stride
        assert number > 3 * stride
    gc.collect()
    assert runway.device.in_use <= level


@pytest.mark.plain
@pytest.mark.parametrize("number", [9, 17, 35])
def test_a_lost_device_fails_every_step_in_flight_and_names_its_work(number):
    runway = Runway(chained, laziness=1.0)
    sess = runway.session(3)
    sess.run(*runway.calls[0])
    sess.synchronize()
    runway.device.faults.at(runway.device.faults.calls + number, "lose")
    errors = []
    for fetches, feed in [call for call in runway.calls[1:] if not isinstance(call[0], list)]:
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
    assert not lanes.SLOTS_LOCK.requests and not sess._overlap.flights.flying


# -- interrupts


def test_an_interrupt_at_a_call_of_the_driver_loses_nothing(monkeypatch):
    runway = Runway(chained)
    want, _ = runway.run()
    call = type(runway.device.faults).call
    with runway.session(3) as sess:
        runway.device.faults.reset()
        runway.results(sess)
        calls = runway.device.faults.calls
    for number in range(1, calls, 9):

        def pressed(faults, kind, what, number=number):
            how = call(faults, kind, what)
            if faults.calls == number:
                signal.raise_signal(signal.SIGINT)
            return how

        with runway.session(3) as sess:
            runway.device.faults.reset()
            with monkeypatch.context() as patched:
                patched.setattr(type(runway.device.faults), "call", pressed)
                with contextlib.suppress(KeyboardInterrupt):
                    runway.results(sess)
            sess.synchronize()
            nothing_is_held(runway, sess)
            same(runway.results(sess), want)


#: The way of a step into its flight and back.
WATCHED = (resource_lock, plan, program_module, lanes, lane, flight, tickets, overlap)


@pytest.mark.parametrize("stride", [41, pytest.param(1, marks=pytest.mark.exhaustive)])
@in_its_own_thread
def test_an_interrupt_at_any_bytecode_loses_nothing(stride):
    """The step that it meets is done or not; what is in flight lands, and no context is lost to two."""
    if sys.gettrace() is not None:
        pytest.skip("a tracer is at work")

    def program():
        v = tf.Variable(np.zeros(2, np.float32))
        return [v.initializer, v.assign_add([1.0, 1.0], read_value=False), v]

    runway = Runway(program, laziness=1.0)
    start, update, value = runway.calls
    with races.check(runway.device), runway.session(2) as sess:
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
            assert not lanes.SLOTS_LOCK.requests and not lanes.SLOTS_LOCK.waiting, f"leaked at bytecode {points}"
            sess.synchronize()
            assert not sess._overlap.flights.flying and not sess._overlap.flights.failed
            for kept in list(sess._plans._order):
                assert len(set(kept.idle)) == len(kept.idle), f"a context is idle twice, at bytecode {points}"
            count = sess.run(value)
            assert count[0] == count[1] and count[0] in (2, 3), f"{count} at bytecode {points}"
            done += count[0] == 3
            if not tracer.raised:
                break
            points += stride
        assert points > 500 and done > 1
        nothing_is_held(runway, sess)
        same([sess.run(value)], [np.full(2, 3, np.float32)])
