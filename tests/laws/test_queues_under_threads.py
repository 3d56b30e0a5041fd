"""Queues between sixteen threads: every element comes once; many waits hold no thread; steps leave nothing behind."""

from __future__ import annotations

import gc
import threading
import tracemalloc
from concurrent.futures import Future

import graphdock as tf
import numpy as np
import pytest


def _totals(steps: int, make) -> None:
    """Eight threads put numbers, one or several at a time, eight take them, in so many steps in all."""
    queue = make()
    many = tf.placeholder(tf.int64, [None])
    put, put_many, take, take_many = None, queue.enqueue_many(many), queue.dequeue(), queue.dequeue_many(4)
    one = tf.placeholder(tf.int64, [])
    put = queue.enqueue(one)
    rounds, width = steps // 16, 4
    found: list[list[int]] = [[] for _ in range(8)]
    with tf.Session() as session:

        def putting(which):
            for i in range(rounds):
                base = (which * rounds + i) * width
                if i % 2:
                    session.run(put_many, {many: range(base, base + width)})
                else:
                    for number in range(base, base + width):
                        session.run(put, {one: number})

        def taking(which):
            for i in range(rounds):
                if i % 2:
                    found[which] += session.run(take_many).tolist()
                else:
                    found[which] += [int(session.run(take)) for _ in range(width)]

        threads = [threading.Thread(target=putting, args=(i,)) for i in range(8)]
        threads += [threading.Thread(target=taking, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(600)
            assert not thread.is_alive()
        assert session.run(queue.size()) == 0
    assert sorted(number for mine in found for number in mine) == list(range(8 * rounds * width))


_KINDS = {
    "fifo": lambda: tf.FIFOQueue(7, tf.int64, [[]]),
    "shuffle": lambda: tf.RandomShuffleQueue(7, 0, tf.int64, [[]]),
    "padding": lambda: tf.PaddingFIFOQueue(7, tf.int64, [[]]),
}


@pytest.mark.parametrize("kind", _KINDS)
def test_totals_of_sixteen_threads_are_exact(kind):
    _totals(320, _KINDS[kind])


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", _KINDS)
def test_totals_of_ten_thousand_steps_are_exact(kind):
    _totals(10_000, _KINDS[kind])


def _waits(count: int) -> None:
    """So many waits of one step; another step lets all of them end."""
    queue = tf.FIFOQueue(count, tf.int64, [[]])
    total = tf.add_n([queue.dequeue() for _ in range(count)])
    put = queue.enqueue_many([np.arange(count)])
    config = tf.SessionConfig(executor="dataflow")
    with tf.Session(config=config) as session:
        done: Future[int] = Future()
        before = threading.active_count()
        thread = threading.Thread(target=lambda: done.set_result(int(session.run(total))))
        thread.start()
        size = queue.size()
        while session.run(size) or not thread.is_alive():
            pass
        most = threading.active_count()
        session.run(put)
        assert done.result(300) == count * (count - 1) // 2
        thread.join()
    # the step's own thread, and the one that tells of late waits
    assert most - before <= 2


def test_waits_of_one_step_hold_no_thread():
    _waits(300)


@pytest.mark.exhaustive
def test_ten_thousand_waits_of_one_step_hold_no_thread():
    _waits(10_000)


def growth(steps: int) -> float:
    """Bytes of Python's memory that each step leaves behind, of an enqueue, a dequeue and an iterator's element; the fewer of two
    runs, since whatever else the process begins meanwhile counts once."""
    queue = tf.FIFOQueue(3, tf.float32, [[8]])
    put, take = queue.enqueue(tf.ones([8])), queue.dequeue()
    element = (
        tf.data.Dataset.range(10).repeat().map(lambda x: x + 1).shuffle(5).batch(2).make_one_shot_iterator().get_next()
    )
    with tf.Session() as session:

        def run(count):
            for _ in range(count):
                session.run(put)
                session.run([take, element])

        run(300)
        gc.collect()
        tracemalloc.start()
        held = [tracemalloc.get_traced_memory()[0]]
        for _ in range(2):
            run(steps // 2)
            gc.collect()
            held.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
    return min(held[1] - held[0], held[2] - held[1]) / (steps // 2)


@pytest.mark.plain
def test_steps_leave_nothing_behind():
    assert growth(2000) < 4


@pytest.mark.exhaustive
def test_a_hundred_thousand_steps_leave_nothing_behind():
    assert growth(100_000) < 0.1
