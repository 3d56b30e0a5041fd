"""Interrupts: one that comes while it is held is acted on afterwards, and the handler is the program's own again."""

from __future__ import annotations

import signal
import threading

import pytest
from graphdock_ray.interrupts import Interrupts


def test_an_interrupt_waits_for_what_must_not_be_torn():
    done, before = [], signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), Interrupts() as interrupts:
        with interrupts.held():
            signal.raise_signal(signal.SIGINT)
            done.append("whole")
        done.append("never")
    assert done == ["whole"] and signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_comes_at_once_where_none_is_held():
    with pytest.raises(KeyboardInterrupt), Interrupts() as interrupts:
        with interrupts.held():
            pass
        signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_other_threads_leave_the_handler_alone():
    before, found = signal.getsignal(signal.SIGINT), []

    def work():
        with Interrupts() as interrupts, interrupts.held():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [before]
