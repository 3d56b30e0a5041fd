"""Waits in place end by what stops them, also by a signal that did not wake the lock that is waited for."""

from __future__ import annotations

import _thread
import threading

import graphdock as tf
import pytest


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
