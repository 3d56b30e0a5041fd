"""Exchanges: what is logged of a wait, and what an interrupt leaves. How waits end is tested in test_queue.py."""

from __future__ import annotations

import dis
import sys
import time
import traceback

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import dtypes, waiting
from graphdock_data.resources import exchange
from graphdock_data.resources import queue as queue_module
from graphdock_data.resources.queue import Queue
from graphdock_dataflow import kernels
from graphdock_executor.straight_line import instance_builder

from tests.planning.interrupter import Interrupter
from tests.planning.own_thread import in_its_own_thread


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


class Signals(Interrupter):
    """Interrupts where CPython looks for signals: neither while a function returns nor while the caller keeps what it got."""

    def _opcode(self, frame, event, arg):
        code = frame.f_code.co_code
        if event == "opcode" and dis.opname[code[frame.f_lasti]] in ("RETURN_VALUE", "STORE_FAST"):
            return self._opcode
        return super()._opcode(frame, event, arg)


@pytest.mark.parametrize("executor", ["straight_line", "dataflow"])
@in_its_own_thread
def test_an_interrupt_at_any_bytecode_leaves_no_wait_behind(executor):
    """Of a step that waits for room: what it would put is nowhere, and neither is its place in the line."""
    if sys.gettrace() is not None:
        pytest.skip("a tracer is at work")
    with tf.Graph().as_default() as graph:
        queue = tf.FIFOQueue(1, tf.int64, shapes=[()])
        put, take, size = queue.enqueue(7), queue.dequeue(), queue.size()
        full = queue.enqueue(1)
        watched = [exchange, waiting, queue_module, kernels if executor == "dataflow" else instance_builder]
        points, passed, polls = 0, set(), 0
        with tf.Session(graph=graph, config=tf.SessionConfig(executor=executor)) as sess:
            for fetched in (put, take, size, full):
                sess.run(fetched)
            while polls < 5:  # by then it waits, and would until somebody takes
                try:
                    with Signals(points, watched):
                        sess.run(put)
                except KeyboardInterrupt as error:
                    names = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
                    passed.update(names)
                    polls += not {"wait_until_done", "_taken"}.isdisjoint(names[-3:]) and "_line_up" in passed
                assert [sess.run(take), sess.run(size)] == [1, 0], f"what was to be put came after bytecode {points}"
                sess.run(full)
                points += 1
    assert "_line_up" in passed
