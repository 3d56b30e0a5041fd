"""Interrupts: what must not be torn is whole before one is acted on, and the handler is the program's own again."""

from __future__ import annotations

import signal
import threading

import pytest
from graphdock.contracts.interrupts import Interrupts


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
