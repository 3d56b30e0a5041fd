"""Exchanges: what is logged of a wait. How waits end is tested in test_queue.py."""

from __future__ import annotations

import time

import numpy as np
from graphdock.contracts import dtypes
from graphdock_data.resources.queue import Queue


def test_the_oldest_wait_says_what_is_waited_for():
    queue = Queue("q", "FIFOQueue", 1, [dtypes.int64], [()])
    assert queue.oldest_wait() is None
    before = time.monotonic()
    queue.dequeue()
    since, text = queue.oldest_wait()
    assert before <= since <= time.monotonic()
    assert text == ("'q' (FIFOQueue with 0 elements): a step waits for something to take; were queue runners started?")
    queue.enqueue_many(np.arange(3))
    assert queue.oldest_wait()[1] == "'q' (FIFOQueue with 1 elements): a step waits for room"
