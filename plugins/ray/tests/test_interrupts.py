"""Interrupts: what must not be torn is whole before one is acted on, and the handler is the program's own again."""

from __future__ import annotations

import signal
import threading
from concurrent.futures import Future, TimeoutError, wait

import pytest
from graphdock_ray.interrupts import Answer, Interrupts


def test_an_interrupt_waits_for_what_must_not_be_torn():
    done, before = [], signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), Interrupts() as interrupts:
        signal.raise_signal(signal.SIGINT)
        done.append("whole")
        interrupts.during(done.append, "never")
    assert done == ["whole"] and signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_comes_at_once_while_the_thread_sleeps():
    with pytest.raises(KeyboardInterrupt), Interrupts() as interrupts:
        interrupts.during(len, "")
        interrupts.during(signal.raise_signal, signal.SIGINT)
        raise AssertionError
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_an_interrupt_comes_at_the_end_where_the_thread_never_sleeps():
    done = []
    with pytest.raises(KeyboardInterrupt):
        with Interrupts():
            for n in range(3):
                signal.raise_signal(signal.SIGINT)
                done.append(n)
        done.append("never")
    assert done == [0, 1, 2]


def test_other_threads_leave_the_handler_alone():
    before, found = signal.getsignal(signal.SIGINT), []

    def work():
        with Interrupts() as interrupts:
            found.append(interrupts.during(signal.getsignal, signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [before]


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
