"""Threads that wait: any number at once, kept for the next call, errors are the caller's."""

from __future__ import annotations

import threading

import pytest
from graphdock.contracts import WaitingThreads


def test_a_call_never_waits_for_another():
    threads, go = WaitingThreads("test"), threading.Event()
    held = [threads.submit(go.wait, 30) for _ in range(50)]
    assert threads.submit(lambda: 3).result(30) == 3
    go.set()
    assert all(call.result(30) for call in held)
    threads.close()


def test_a_thread_is_kept_for_the_next_call():
    threads = WaitingThreads("test")
    first = threads.submit(threading.get_ident).result(30)
    while not threads._idle:
        pass
    assert threads.submit(threading.get_ident).result(30) == first
    threads.close()


def test_an_error_is_the_callers():
    threads = WaitingThreads("test")
    with pytest.raises(ZeroDivisionError):
        threads.submit(lambda: 1 // 0).result(30)
    threads.close()
