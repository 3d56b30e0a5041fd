"""A session whose steps may be in flight: when ``run`` returns, what it raises, and what it holds meanwhile."""

from __future__ import annotations

import gc
import threading

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import KernelDef
from graphdock.plugin.host import Host
from graphdock_executor import stream_slots
from graphdock_testing import queued
from graphdock_testing.driver import races


def _fails(*buffers):
    raise ValueError("the tile was lost")


class Lab:
    """A graph on a device that does nothing before somebody waits; ``bad`` fails when its work runs."""

    def __init__(self):
        self.host = Host()
        self.device = queued.install(self.host, seed=0, laziness=1.0)
        self.device.passed = lambda event: event.point.reached
        opdef = self.host.ops.get("Softsign")
        kernel = queued.wrap(KernelDef("Softsign", "cpu", lambda ctx: _fails, "fails", label="of a test"), opdef)
        self.host.kernels.add(kernel, "user", "lab")
        self.graph = tf.Graph(host=self.host)
        with self.graph.as_default():
            self.x = tf.placeholder(tf.float32, [3], name="x")
            self.v = tf.Variable(np.zeros(3, np.float32), name="v")
            self.update = self.v.assign_add(self.x, read_value=False, name="update")
            self.bad = tf.group(tf.nn.softsign(self.x, name="soft"), name="bad")

    def session(self, most=2, **fields):
        config = tf.SessionConfig(
            backends=("queued", "cpu"), steps_in_flight=most, kernels={"Softsign@queued": "user.fails"}, **fields
        )
        made = tf.Session(graph=self.graph, config=config, host=self.host)
        made.run(self.v.initializer)
        made.synchronize()
        return made

    @property
    def one(self):
        return {self.x: np.ones(3, np.float32)}


@pytest.fixture
def lab():
    made = Lab()
    yield made
    made.host.close()


def pending(sess):
    return list(sess._overlap.in_flight.pending)


@pytest.mark.plain  # debug mode waits for each kernel
def test_operations_return_once_their_work_is_queued_and_at_most_so_many(lab):
    with lab.session(3) as sess:
        for number in range(1, 7):
            sess.run(lab.update, lab.one)
            assert lab.device.pending and len(pending(sess)) == min(number, 3)
        sess.synchronize()
        assert not lab.device.pending and not pending(sess)
        assert sess.run(lab.v).tolist() == [6.0] * 3


def test_by_default_a_step_ends_with_its_work(lab):
    with lab.session(1) as sess:
        sess.run(lab.update, lab.one)
        assert not lab.device.pending and sess._overlap is None
        with pytest.raises(tf.errors.InternalError, match="tile was lost") as caught:
            sess.run(lab.bad, lab.one)
        assert caught.value.step is None
        sess.synchronize()


def test_a_fetch_sees_all_earlier_steps_and_waits_for_no_more_than_it_needs(lab):
    with lab.graph.as_default():
        w = tf.Variable(np.zeros(3, np.float32))
        other = w.assign_add(lab.x, read_value=False)
    with races.check(lab.device), lab.session(4) as sess:
        sess.run(w.initializer)
        for _ in range(2):
            sess.run(lab.update, lab.one)
        sess.run(other, lab.one)
        assert sess.run(lab.v).tolist() == [2.0] * 3
        assert sess.run(w).tolist() == [1.0] * 3


def test_the_contexts_of_a_plan_are_as_many_as_steps_in_flight(lab):
    with lab.session(3) as sess:
        seen = tf.RunMetadata()
        for _ in range(12):
            sess.run(lab.update, lab.one, run_metadata=seen)
        assert len(seen.plan._live) <= 3 and seen.cached
        assert len(lab.device._slots) == 3, "a stream slot for each, though the device wants two"


def test_a_short_memory_is_waited_for(lab):
    with lab.graph.as_default():
        big = tf.group(lab.v.assign_add(tf.reduce_sum(tf.tanh(tf.sin(tf.fill([64, 256], lab.x[0]))), 0)[:3]))
    with races.check(lab.device), lab.session(3, memory_limit={"queued": "150KiB"}) as sess:
        seen = tf.RunMetadata()
        for _ in range(5):
            sess.run(big, lab.one, run_metadata=seen)
            assert sess._planner._pool.held("queued:0") <= 150 * 1024
        space = seen.plan.arena_bytes["queued:0"]
        assert len(seen.plan._live) * space <= 150 * 1024 < 3 * space


# -- errors


def error_of(call, *args):
    with pytest.raises(tf.errors.InternalError, match="tile was lost") as caught:
        call(*args)
    error = caught.value
    assert error.op is not None and error.op.name == "soft" and "test_overlap.py" in error.site
    assert "the step of bad, which had returned before its work was done" in str(error) and error.step.startswith(
        "step "
    )
    return error


@pytest.mark.plain
def test_an_error_is_raised_by_the_next_run_that_learns_of_it_and_only_once(lab):
    with lab.session(2) as sess:
        sess.run(lab.bad, lab.one)
        sess.run(lab.update, lab.one)
        error_of(sess.run, lab.update, lab.one)  # the oldest is complete; this step was not begun
        sess.run(lab.update, lab.one)
        sess.synchronize()
        assert sess.run(lab.v).tolist() == [2.0] * 3


@pytest.mark.plain
def test_synchronize_raises_the_errors_one_by_one(lab):
    with lab.session(3) as sess:
        sess.run(lab.bad, lab.one)
        sess.run(lab.update, lab.one)
        sess.run(lab.bad, lab.one)
        first, second = error_of(sess.synchronize), error_of(sess.synchronize)
        assert first is not second and first.step != second.step
        sess.synchronize()
        assert sess.run(lab.v).tolist() == [1.0] * 3


@pytest.mark.plain
def test_close_raises_all_that_nobody_was_told_and_closes_all_the_same(lab):
    sess = lab.session(3)
    sess.run(lab.bad, lab.one)
    sess.run(lab.bad, lab.one)
    error = error_of(sess.close)
    assert any("besides" in note and "the step of bad" in note for note in error.__notes__)
    sess.close()
    assert not lab.device.pending and not stream_slots.SLOTS_LOCK.requests
    with pytest.raises(tf.errors.FailedPreconditionError, match="closed"):
        sess.synchronize()


@pytest.mark.plain
def test_a_with_block_raises_it_and_does_not_hide_another_error(lab):
    with pytest.raises(tf.errors.InternalError, match="tile was lost"), lab.session(2) as sess:
        sess.run(lab.bad, lab.one)
    with pytest.raises(LookupError, match="mine") as caught, lab.session(2) as sess:
        sess.run(lab.bad, lab.one)
        raise LookupError("mine")
    assert any("tile was lost" in note for note in caught.value.__notes__)


@pytest.mark.plain
def test_each_session_gets_its_own_errors_whoever_waits(lab):
    """They take turns on two stream slots, so that one waits for what the other left."""
    with lab.session(2) as sick, lab.session(2) as well, lab.session(1) as alone:
        for _ in range(4):
            sick.run(lab.bad, lab.one)
            well.run(lab.update, lab.one)
            alone.run(lab.update, lab.one)
            well.synchronize()
            error_of(sick.synchronize)
        assert well.run(lab.v).tolist() == [4.0] * 3 and alone.run(lab.v).tolist() == [4.0] * 3


def test_what_is_wrong_with_a_call_is_raised_by_that_call(lab):
    with lab.session(2) as sess:
        with pytest.raises(tf.errors.InvalidArgumentError, match="'x'"):
            sess.run(lab.update)
        with lab.graph.as_default():
            w = tf.Variable(np.zeros(3, np.float32), name="w")
        with pytest.raises(tf.errors.UninitializedError):
            sess.run(w.assign_add(lab.x, read_value=False), lab.one)
        assert not pending(sess)


# -- limits


def test_a_deadline_while_a_lane_is_taken_leaves_all_in_flight(lab):
    with lab.session(2) as sess:
        sess.run(lab.update, lab.one)
        sess.run(lab.update, lab.one)
        other = stream_slots.LockRequest(stream_slots.LockSet("another step", writes=lab.device._slots))
        stream_slots.SLOTS_LOCK.requests[other] = threading.get_ident() + 1
        try:
            with pytest.raises(tf.errors.DeadlineExceededError, match="another step"):
                sess.run(lab.update, lab.one, options=tf.RunOptions(timeout_in_ms=5))
        finally:
            stream_slots.SLOTS_LOCK.requests.pop(other)
        assert sess.run(lab.v).tolist() == [2.0] * 3
        assert not stream_slots.SLOTS_LOCK.requests


def test_a_limit_holds_for_steps_in_flight_too(lab):
    with lab.session(2, operation_timeout=60.0) as sess:
        for _ in range(5):
            sess.run(lab.update, lab.one)
        assert sess.run(lab.v).tolist() == [5.0] * 3


def test_a_session_that_is_closed_by_another_thread_leaves_nothing(lab):
    sess = lab.session(3)
    stopped = []

    def work():
        try:
            while True:
                sess.run(lab.update, lab.one)
        except (tf.errors.CancelledError, tf.errors.FailedPreconditionError) as error:
            stopped.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    while not pending(sess):
        pass
    sess.close()
    for thread in threads:
        thread.join(60)
    assert len(stopped) == 3 and not pending(sess) and not stream_slots.SLOTS_LOCK.requests


def test_a_closed_session_and_its_memory_go(lab):
    gc.collect()
    level = lab.device.in_use
    for _ in range(2):
        sess = lab.session(2)
        sess.run(lab.update, lab.one)
        sess.close()
        del sess
        gc.collect()
        kept, level = level, lab.device.in_use
    assert level <= kept


# -- other ways to run


def test_callables_and_partial_runs(lab):
    with lab.session(2) as sess:
        call = sess.make_callable(lab.update, [lab.x])
        for _ in range(3):
            assert call(np.ones(3, np.float32)) is None
        assert sess.run(lab.v).tolist() == [3.0] * 3
        sess.run(lab.update, lab.one)  # in flight when the piece begins
        value = lab.v.read_value()
        handle = sess.partial_run_setup([lab.update, value], [lab.x])
        sess.partial_run(handle, lab.update, lab.one)
        assert sess.partial_run(handle, value).tolist() == [5.0] * 3
        assert sess.run(lab.v).tolist() == [5.0] * 3


def test_a_traced_step_ends_with_its_work(lab):
    with lab.session(2) as sess:
        seen = tf.RunMetadata()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        sess.run(lab.update, lab.one, options=options, run_metadata=seen)
        assert not pending(sess) and not lab.device.pending
        assert any(event.name == "update" for event in seen.events)


def test_explain_says_whether_a_step_is_in_flight(lab):
    with lab.session(2) as sess:
        assert "in flight: it returns once its work is queued" in str(sess.explain(lab.update))
        assert "in flight: it returns what it fetches" in str(sess.explain(lab.v))
    with lab.session(1) as sess:
        assert "in flight" not in str(sess.explain(lab.update))


def test_without_a_device_with_queues_it_changes_nothing():
    with tf.Graph().as_default():
        v = tf.Variable([1.0])
        update = v.assign_add([1.0], read_value=False)
        with tf.Session(config=tf.SessionConfig(steps_in_flight=4)) as sess:
            sess.run(v.initializer)
            for _ in range(3):
                sess.run(update)
            assert sess.run(v).tolist() == [4.0] and not pending(sess)
            sess.synchronize()
