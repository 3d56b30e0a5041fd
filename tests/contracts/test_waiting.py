"""Waits in place end by what stops them, also by a signal that did not wake the lock that is waited for."""

from __future__ import annotations

import _thread
import signal
import threading
from concurrent.futures import Future, TimeoutError, wait

import graphdock as tf
import pytest
from graphdock.contracts import Answer, ResourceRequest, WaitingThreads, dtypes, wait_until_done
from graphdock_cluster.exchange import Exchange
from graphdock_data.resources.queue import QUEUE


def test_an_interrupt_that_wakes_no_lock_ends_the_wait():
    """``interrupt_main`` notes a signal and wakes nobody: as one does that comes when the main thread is about to sleep."""
    queue = tf.FIFOQueue(1, tf.int64, [[]])
    put, take, size = queue.enqueue(7), queue.dequeue(), queue.size()
    ended = threading.Event()
    with tf.Session() as session:
        session.run([put])
        session.run(take)

        def interrupt():
            if not ended.wait(0.1):
                _thread.interrupt_main()
            if not ended.wait(20):
                session.run(put)  # so that the test fails and does not hang

        thread = threading.Thread(target=interrupt)
        with pytest.raises(KeyboardInterrupt):
            thread.start()
            try:
                session.run(take)
            finally:
                ended.set()
        thread.join()
        session.run(put)
        assert session.run(size) == 1  # the wait that was interrupted takes nothing


def _interrupted(future):
    """Look at a Future until an alarm ends that; whether its lock is free then."""
    armed = [True]

    def ring(number, frame):
        if armed:
            armed.clear()
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0003)
        while True:
            future.done()
    except KeyboardInterrupt:
        other = threading.Thread(target=future.set_result, args=(1,), daemon=True)
        other.start()
        other.join(0.2)
        return not other.is_alive()
    finally:
        signal.signal(signal.SIGALRM, before)


def test_an_answer_is_never_left_locked():
    assert all(_interrupted(Answer()) for _ in range(60))
    assert not all(_interrupted(Future()) for _ in range(60)), "a Future of Python's own need not be replaced any more"


def test_an_answer_is_a_future():
    answer, told = Answer(), []
    answer.add_done_callback(told.append)
    with pytest.raises(TimeoutError):
        answer.result(0)
    assert not wait([answer], timeout=0).done
    threading.Thread(target=answer.set_result, args=(3,)).start()
    assert answer.result(30) == 3 and wait([answer], timeout=30).done == {answer} and told == [answer]


def test_a_wait_ends_with_the_answer_or_the_time():
    answer = Answer()
    wait_until_done(answer, 0)
    assert not answer.done()
    threading.Thread(target=answer.set_exception, args=(ValueError(),)).start()
    wait_until_done(answer, 30)
    wait_until_done(answer)
    assert isinstance(answer.exception(0), ValueError)


def test_what_a_step_of_the_main_thread_waits_for_is_an_answer():
    attrs = {"order": "fifo", "capacity": 3, "component_types": (dtypes.int64,), "shapes": ((),)}
    queue = QUEUE.create(
        ResourceRequest("data.Queue", "q", "", attrs | dict.fromkeys(("min_after_dequeue", "seed", "seed2"), 0), None)
    )
    waits = [Exchange(lambda *sent: None).take(1, "edge"), WaitingThreads("test").submit(int), queue.dequeue()]
    assert [type(one) for one in waits] == [Answer] * 3
