"""BLAS keeps to one thread while somebody is inside, and gets back what it had."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from graphdock_cpu.blas import OneThread
from threadpoolctl import threadpool_info, threadpool_limits


@pytest.fixture
def three():
    """BLAS may use three threads, whatever machine this is."""
    assert np.dot is not None  # NumPy's BLAS is loaded
    with threadpool_limits(3, "blas"):
        yield


def allowed():
    return {found["num_threads"] for found in threadpool_info() if found["user_api"] == "blas"}


def test_one_thread_inside_and_as_before_outside(three):
    one = OneThread()
    assert one.holds and not one.held
    for _ in range(2):
        with one:
            assert allowed() == {1} and one.held
        assert allowed() == {3} and not one.held


def test_an_error_gives_back_too(three):
    with pytest.raises(ZeroDivisionError), OneThread():
        _ = 1 / 0
    assert allowed() == {3}


def test_it_lasts_until_the_last_thread_has_left(three):
    one, inside, leave = OneThread(), threading.Event(), threading.Event()

    def other():
        with one:
            inside.set()
            leave.wait(60)

    thread = threading.Thread(target=other)
    with one:
        thread.start()
        assert inside.wait(60)
    assert allowed() == {1} and not one.held  # the other is inside
    leave.set()
    thread.join(60)
    assert allowed() == {3}


def test_who_was_kept_from_leaving_leaves_next_time(three):
    one = OneThread()
    one.__enter__()  # Ctrl-C came before the block
    with one:
        assert allowed() == {1}
    assert allowed() == {3}
