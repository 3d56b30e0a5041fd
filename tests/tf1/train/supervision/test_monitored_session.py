"""Monitored sessions do what TensorFlow's do: tests/oracle/test_supervision.py runs one program under both."""

from __future__ import annotations

import logging
import threading

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import DeviceLostError, FailedPreconditionError, InvalidArgumentError


class Recorder(tf.train.SessionRunHook):
    """Notes each call; fails where it is told to."""

    def __init__(self, calls, name="a", fails=None):
        self.calls, self.name, self.fails = calls, name, fails or {}

    def note(self, what):
        self.calls.append(f"{self.name} {what}")
        failures = self.fails.get(what, [])
        error = failures.pop(0) if failures else None
        if error is not None:
            raise error

    def begin(self):
        self.note("begin")

    def after_create_session(self, session, coord):
        self.note("made")

    def before_run(self, run_context):
        self.note("before")

    def after_run(self, run_context, run_values):
        self.note("after")

    def end(self, session):
        self.note("end")


def build():
    x = tf.get_variable("x", initializer=1.0)
    step = tf.train.get_or_create_global_step()
    return tf.train.GradientDescentOptimizer(0.25).minimize(tf.square(x), global_step=step)


@pytest.fixture
def train():
    with tf.Graph().as_default():
        yield build()


def until_stop(session, op):
    while not session.should_stop():
        session.run(op)


def test_hooks_are_called_in_their_order(train):
    calls = []
    hooks = [Recorder(calls, "a"), tf.train.StopAtStepHook(last_step=2), Recorder(calls, "b")]
    with tf.train.MonitoredSession(hooks=hooks) as sess:
        assert sess.graph is tf.get_default_graph() and sess.graph.finalized
        until_stop(sess, train)
        with pytest.raises(FailedPreconditionError, match="Run called even after should_stop requested"):
            sess.run(train)
    each = ["begin", "made", "before", "after", "before", "after", "end"]
    order = [each[0:1], each[1:2], *[[e] for e in each[2:6]], each[6:]]
    assert calls == [f"{who} {what}" for (what,) in order for who in "ab"]
    assert not tf.get_default_graph().finalized and sess.should_stop() and sess.graph is None
    with pytest.raises(FailedPreconditionError, match="already closed"):
        sess.close()
    with pytest.raises(FailedPreconditionError, match="already closed"):
        sess.run(train)


@pytest.mark.parametrize(
    ("error", "is_raised"),
    [
        (tf.errors.OutOfRangeError(None, None, "no more"), False),
        (StopIteration(), False),
        (ValueError("wrong"), True),
        (KeyboardInterrupt(), True),
    ],
    ids=lambda v: type(v).__name__,
)
def test_what_ends_the_block_quietly(train, error, is_raised):
    calls, caught = [], None
    try:
        with tf.train.MonitoredSession(hooks=[Recorder(calls)]) as sess:
            sess.run(train)
            raw = sess.run_step_fn(lambda step_context: step_context.session)
            raise error
    except BaseException as raised:  # noqa: BLE001 - what it is is looked at below
        caught = raised
    assert (caught is error) == is_raised and ("a end" in calls) == (not is_raised)
    assert not tf.get_default_graph().finalized
    with pytest.raises(FailedPreconditionError, match="closed"):
        raw.run(train)


def test_training_is_saved_and_resumed(tmp_path):
    inits = []
    runs = {6: ["0", "4", "6"], 11: ["0", "4", "6", "10", "11"], 14: ["4", "6", "10", "11", "14"]}
    for last, files in runs.items():
        with tf.Graph().as_default():
            train = build()
            with tf.train.MonitoredTrainingSession(
                checkpoint_dir=str(tmp_path),
                save_checkpoint_steps=4,
                scaffold=tf.train.Scaffold(init_fn=lambda scaffold, sess: inits.append(float(sess.run("x:0")))),
                hooks=[tf.train.StopAtStepHook(last_step=last)],
            ) as sess:
                until_stop(sess, train)
        found = sorted((p.stem.split("-")[1] for p in tmp_path.glob("model.ckpt-*.index")), key=int)
        assert found == files, "the last five, of all runs"
    assert inits == [1.0], "not where a checkpoint was restored"
    assert tf.train.load_variable(str(tmp_path), "x") == np.float32(0.5**14)


def test_a_failure_that_may_pass_makes_a_new_session(tmp_path, train, caplog):
    calls = []
    failing = Recorder(calls, fails={"after": [None, tf.errors.AbortedError(None, None, "boom"), None, None]})
    session = tf.train.MonitoredTrainingSession(
        checkpoint_dir=str(tmp_path), save_checkpoint_steps=1, hooks=[failing, tf.train.StopAtStepHook(last_step=4)]
    )
    with caplog.at_level(logging.INFO, "graphdock"), session as sess:
        until_stop(sess, train)
    assert "Error: boom" in caplog.text
    assert (
        calls.count("a begin") == 1
        and calls.count("a made") == 2
        and calls.count("a after") == 4
        and calls[-1] == "a end"
    )
    assert tf.train.load_variable(str(tmp_path), "global_step") == 4, "step 2 had been saved before its hook failed"


def test_a_session_that_could_not_be_made_is_tried_again(train):
    calls = []
    lost = [tf.errors.UnavailableError(None, None, "later") for _ in range(3)]
    with tf.train.MonitoredSession(hooks=[Recorder(calls, fails={"made": lost})]) as sess:
        sess.run(train)
    assert calls.count("a made") == 4


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (tf.train.SingularMonitoredSession, tf.errors.AbortedError(None, None, "boom")),
        (tf.train.MonitoredSession, DeviceLostError("fake:0", "it burns")),
    ],
    ids=["singular", "a lost device"],
)
def test_what_does_not_pass_is_raised(train, make, error):
    calls = []
    with pytest.raises(type(error)), make(hooks=[Recorder(calls, fails={"after": [error]})]) as sess:
        sess.run(train)
    assert calls.count("a made") == 1 and "a end" not in calls


def test_one_that_never_passes_is_raised_in_the_end(train):
    calls = []
    failing = Recorder(calls, fails={"after": [tf.errors.AbortedError(None, None, "again") for _ in range(100)]})
    with pytest.raises(tf.errors.AbortedError, match="again"), tf.train.MonitoredSession(hooks=[failing]) as sess:
        sess.run(train)
    assert calls.count("a made") == 11


def test_the_error_of_a_thread_that_feeds_is_the_cause(train):
    """A step that failed for want of input is tried again when the thread that brings the input was aborted."""
    calls, brought = [], threading.Event()

    class Feeder:
        def create_threads(self, sess, coord, daemon, start):
            def work():
                if len(calls) < 3:
                    coord.request_stop(tf.errors.AbortedError(None, None, "no input today"))
                brought.set()

            thread = threading.Thread(target=work, daemon=daemon)
            coord.register_thread(thread)
            thread.start()
            return [thread]

    tf.add_to_collection(tf.GraphKeys.QUEUE_RUNNERS, Feeder())

    class Starved(Recorder):
        def before_run(self, run_context):
            super().before_run(run_context)
            assert brought.wait(60)
            if len(calls) == 3:
                raise ValueError("nothing to read")

    with tf.train.MonitoredSession(hooks=[Starved(calls)]) as sess:
        sess.run(train)
    assert calls == ["a begin", "a made", "a before", "a made", "a before", "a after", "a end"]


def test_hooks_add_fetches_feeds_and_options(train):
    p = tf.placeholder(tf.float32, [])
    double, seen = p * 2, {}

    class Asks(tf.train.SessionRunHook):
        def before_run(self, run_context):
            seen["caller"] = run_context.original_args.fetches
            options = tf.RunOptions(timeout_in_ms=50_000, trace_level=tf.RunOptions.SOFTWARE_TRACE)
            return tf.train.SessionRunArgs({"d": [double]}, {p: 3.0}, options)

        def after_run(self, run_context, run_values):
            seen.update(run_values._asdict())

    with tf.train.MonitoredSession(hooks=[Asks(), tf.train.SessionRunHook()]) as sess:
        assert sess.run({"mine": double}, options=tf.RunOptions(timeout_in_ms=60_000)) == {"mine": 6.0}
        assert seen["caller"] == {"mine": double} and seen["results"] == {"d": [6.0]}
        assert seen["options"].timeout_in_ms == 60_000 and seen["run_metadata"].events
        with pytest.raises(InvalidArgumentError, match="Same tensor is fed by a SessionRunHook and user"):
            sess.run(double, {p: 1.0})
        assert sess.run_step_fn(lambda step_context: step_context.run_with_hooks(double)) == 6.0
        with pytest.raises(InvalidArgumentError, match="may either have one `step_context` argument"):
            sess.run_step_fn(lambda context: None)

        def stop(step_context):
            step_context.request_stop()

        sess.run_step_fn(stop)
        pytest.fail("StopIteration ends the block")
    with (
        pytest.raises(InvalidArgumentError, match="Same tensor is fed by two hooks"),
        tf.train.MonitoredSession(hooks=[Asks(), Asks()]) as sess,
    ):
        sess.run(double)


def test_a_worker_waits_for_the_chief():
    """Both share a container; the worker's session is ready once the chief has initialised."""
    with tf.Graph().as_default(), tf.container("workers of test_monitored_session"):
        v = tf.get_variable("v", initializer=5.0)
        scaffold = tf.train.Scaffold(local_init_op=tf.no_op())
        with pytest.raises(tf.errors.DeadlineExceededError, match="not ready after waiting 0 secs") as caught:
            tf.train.MonitoredTrainingSession(is_chief=False, scaffold=scaffold, max_wait_secs=0)
        assert "Variables not initialized: v" in str(caught.value)
        with tf.train.MonitoredTrainingSession(scaffold=scaffold) as chief, tf.Graph().as_default():
            chief.run(v)
            with tf.container("workers of test_monitored_session"):
                again = tf.get_variable("v", initializer=9.0)
            with tf.train.MonitoredTrainingSession(is_chief=False, max_wait_secs=0) as worker:
                assert worker.run(again) == 5.0
    tf.Session.reset(containers=["workers of test_monitored_session"])


def test_tables_that_a_plugin_brings_are_initialised_with_the_others() -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        sess.run(tf.tables_initializer())  # there are none
        table = tf.get_variable("table", initializer=3, collections=[tf.GraphKeys.LOCAL_VARIABLES])
        tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, table.initializer)
        sess.run(tf.tables_initializer(name="tables"))
        assert sess.run(table) == 3 and tf.get_default_graph().get_operation_by_name("tables")
