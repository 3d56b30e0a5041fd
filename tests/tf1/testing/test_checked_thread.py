"""Threads of a test: their errors, and those that do not end, fail it."""

from __future__ import annotations

import threading

import graphdock as tf
import pytest


def test_an_error_of_a_thread_fails_the_test() -> None:
    case = tf.test.TestCase()
    done = []
    fine = case.checkedThread(done.append, args=(1,))
    fine.start()
    fine.join()
    assert done == [1] and not fine.is_alive()
    broken = case.checkedThread(int, args=("x",))
    broken.start()
    with pytest.raises(AssertionError, match="Error in checkedThread: invalid literal"):
        broken.join()
    case.tearDown()


def test_an_error_that_nobody_joined_for_fails_the_test_at_its_end() -> None:
    case = tf.test.TestCase()
    broken = case.checkedThread(int, kwargs={"base": 7})
    broken.start()
    broken._thread.join()
    with pytest.raises(AssertionError, match="Error in checkedThread"):
        case.tearDown()


def test_a_thread_that_runs_on_fails_the_test() -> None:
    case = tf.test.TestCase()
    gate = threading.Event()
    waiting = case.checkedThread(gate.wait)
    waiting.start()
    with pytest.raises(AssertionError, match="was not terminated"):
        case.tearDown()
    gate.set()
