"""Coordinator and LooperThread: who stops whom, and which error is raised."""

from __future__ import annotations

import sys
import threading

import graphdock as tf
import pytest
from graphdock.errors import FailedPreconditionError, InvalidArgumentError, OutOfRangeError


def thread(target):
    made = threading.Thread(target=target, name="the worker", daemon=True)
    made.start()
    return made


def test_join_waits_until_all_have_ended():
    coord, done = tf.train.Coordinator(), []
    coord.join([thread(lambda: done.append(coord.wait_for_stop(0.001)))])
    assert done == [False] and coord.joined and not coord.should_stop()


def test_the_first_error_stops_all_and_is_raised():
    coord, first = tf.train.Coordinator(), threading.Event()

    def fails():
        with coord.stop_on_exception():
            raise ValueError("first")

    def waits():
        first.set()
        assert coord.wait_for_stop(60)
        coord.request_stop(RuntimeError("second"))

    waiting = thread(waits)
    assert first.wait(60)
    with pytest.raises(ValueError, match="first"):
        coord.join([waiting, thread(fails)])
    with pytest.raises(ValueError, match="first"):
        coord.raise_requested_exception()
    with pytest.raises(RuntimeError, match="late"):
        coord.request_stop(RuntimeError("late"))
    coord.clear_stop()
    assert not coord.should_stop() and not coord.joined
    coord.raise_requested_exception()


@pytest.mark.parametrize("form", [lambda e: e, lambda e: (type(e), e, None)])
def test_errors_that_mean_the_end_are_not_raised(form):
    coord = tf.train.Coordinator()
    coord.request_stop(form(OutOfRangeError("no more")))
    coord.join()
    assert coord.should_stop()
    with pytest.raises(OutOfRangeError):
        strict = tf.train.Coordinator(clean_stop_exception_types=())
        strict.request_stop(form(OutOfRangeError("no more")))
        strict.join()
    with pytest.raises(InvalidArgumentError, match="an exception or sys.exc_info"):
        tf.train.Coordinator().request_stop("stop")
    try:
        raise ValueError("as a tuple")
    except ValueError:
        coord = tf.train.Coordinator()
        coord.request_stop(sys.exc_info())
    with pytest.raises(ValueError, match="as a tuple"):
        coord.join()


def test_threads_that_do_not_end(caplog):
    release = threading.Event()
    for ignored in (False, True):
        coord = tf.train.Coordinator()
        coord.register_thread(thread(release.wait))
        coord.request_stop()
        if ignored:
            coord.join(stop_grace_period_secs=0, ignore_live_threads=True)
        else:
            with pytest.raises(FailedPreconditionError, match="still running: the worker"):
                coord.join(stop_grace_period_secs=0)
    release.set()


def test_a_looper_calls_until_all_stop():
    coord, calls = tf.train.Coordinator(), []

    def work(item, more):
        calls.append((item, more))
        if len(calls) == 3:
            coord.request_stop()

    tf.train.LooperThread.loop(coord, 0.001, work, (1,), {"more": 2})
    coord.join()
    assert calls == [(1, 2)] * 3

    class Own(tf.train.LooperThread):
        def start_loop(self):
            calls.append("start")

        def run_loop(self):
            raise ValueError("in the loop")

        def stop_loop(self):
            calls.append("not after an error")

    coord = tf.train.Coordinator()
    Own(coord, None).start()
    with pytest.raises(ValueError, match="in the loop"):
        coord.join()
    assert calls[3:] == ["start"]


def test_what_a_looper_refuses():
    with pytest.raises(InvalidArgumentError, match="must be a Coordinator"):
        tf.train.LooperThread(None, 1)
    with pytest.raises(InvalidArgumentError, match="also pass 'target'"):
        tf.train.LooperThread(tf.train.Coordinator(), 1, args=(1,))
