"""Threads that make elements ahead: how far, what wakes those who wait for them, and that they end."""

from __future__ import annotations

import gc
import threading

import graphdock as tf
import pytest

Dataset = tf.data.Dataset


def threads():
    return [t for t in threading.enumerate() if t.name == "graphdock-prefetch"]


def joined():
    """Wait for the end of all threads that prefetch; they were told to end."""
    gc.collect()
    for thread in threads():
        thread.join(60)
    return not threads()


class Source:
    """A generator that says how far it is, and may be held up."""

    def __init__(self):
        self.made, self.gate, self.reached = 0, threading.Semaphore(0), threading.Event()

    def __call__(self):
        while True:
            self.reached.set()
            self.gate.acquire()
            self.made += 1
            yield self.made

    def dataset(self, size):
        return Dataset.from_generator(self, tf.int64, []).prefetch(size)


def test_a_thread_makes_as_many_elements_as_the_buffer_holds_and_no_more():
    made, full = [], threading.Semaphore(0)

    def endless():
        while True:
            made.append(len(made))
            full.release()
            yield len(made)

    element = Dataset.from_generator(lambda: endless(), tf.int64, []).prefetch(3).make_one_shot_iterator().get_next()
    with tf.Session() as sess:
        assert not threads()  # none before the first element is asked for
        for taken in range(1, 6):
            assert sess.run(element) == taken
        for _ in range(8):
            assert full.acquire(timeout=60)
        assert not full.acquire(timeout=0.05) and len(made) == 8
    assert joined()


def test_closing_a_session_wakes_who_waits_and_ends_the_thread():
    source = Source()
    element = source.dataset(2).make_one_shot_iterator().get_next()
    session, failed = tf.Session(), []

    def wait():
        try:
            session.run(element)
        except tf.errors.OpError as error:
            failed.append(error)

    waiter = threading.Thread(target=wait)
    waiter.start()
    assert source.reached.wait(60)
    session.close()
    waiter.join(60)
    assert isinstance(failed[0], tf.errors.CancelledError)
    source.gate.release()
    assert joined()


def test_a_deadline_ends_a_wait_and_loses_no_element():
    source = Source()
    element = source.dataset(2).make_one_shot_iterator().get_next()
    with tf.Session() as sess:
        for _ in range(3):
            with pytest.raises(tf.errors.DeadlineExceededError):
                sess.run(element, options=tf.RunOptions(timeout_in_ms=20))
        source.gate.release(4)
        assert [sess.run(element) for _ in range(4)] == [1, 2, 3, 4]
        source.gate.release()  # the thread is at its next element
    assert joined()


def test_an_iterator_that_begins_anew_or_is_forgotten_ends_its_thread():
    it = Dataset.range(10).repeat().prefetch(2).make_initializable_iterator()
    element = it.get_next()
    session = tf.Session()
    for _ in range(5):
        session.run(it.initializer)
        assert [session.run(element) for _ in range(3)] == [0, 1, 2]
    assert len(threads()) <= 2  # the last one, and perhaps one that is about to end
    session.close()
    assert joined()


def test_threads_of_inner_datasets_end_with_them():
    def inner(x):
        return Dataset.range(x * 10, x * 10 + 5).prefetch(2).take(2)

    element = Dataset.range(40).flat_map(inner).make_one_shot_iterator().get_next()
    with tf.Session() as sess:
        assert [sess.run(element) for _ in range(60)] == [10 * i + j for i in range(30) for j in range(2)]
        gc.collect()
        assert len(threads()) <= 3
    assert joined()


def test_an_error_and_the_end_come_where_they_belong():
    dataset = Dataset.from_tensor_slices([1.0, 0.0, 2.0]).map(lambda x: tf.check_numerics(1 / x, "division"))
    element = dataset.prefetch(5).make_one_shot_iterator().get_next()
    with tf.Session() as sess:
        assert sess.run(element) == 1
        with pytest.raises(tf.errors.InvalidArgumentError, match="MapDataset.*division"):
            sess.run(element)
        assert sess.run(element) == 0.5
        for _ in range(2):
            with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
                sess.run(element)
    assert joined()


def test_many_threads_take_each_element_once():
    element = Dataset.range(2000).map(lambda x: x + 1).prefetch(8).make_one_shot_iterator().get_next()
    found = [[] for _ in range(4)]
    with tf.Session() as sess:

        def take(mine):
            while True:
                try:
                    mine.append(int(sess.run(element)))
                except tf.errors.OutOfRangeError:
                    return

        workers = [threading.Thread(target=take, args=(mine,)) for mine in found]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(120)
    assert sorted(x for mine in found for x in mine) == list(range(1, 2001))
    assert all(mine == sorted(mine) for mine in found)
    assert joined()


def test_a_parallel_map_makes_several_calls_at_once_and_its_threads_end():
    together = threading.Barrier(3)  # broken unless three calls are made at once

    def meet(x):
        together.wait(60)
        return x

    element = Dataset.range(9).map(lambda x: tf.py_func(meet, [x], tf.int64), 3).make_one_shot_iterator().get_next()
    with tf.Session() as sess:
        assert [sess.run(element) for _ in range(9)] == list(range(9))
    gc.collect()


def test_a_cache_reads_its_source_once_per_iterator():
    begun = []

    def source():
        begun.append(1)
        yield from range(3)

    it = Dataset.from_generator(source, tf.int64, []).cache().repeat(4).make_initializable_iterator()
    element = it.get_next()
    with tf.Session() as sess:
        for times in (1, 2):
            sess.run(it.initializer)
            assert [int(sess.run(element)) for _ in range(12)] == [0, 1, 2] * 4
            assert len(begun) == times
