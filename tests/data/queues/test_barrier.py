"""Barriers: elements are complete once each component has come. What is expected was worked out by hand."""

from __future__ import annotations

import graphdock as tf
import pytest
from graphdock_data.queues.barrier import Barrier


def test_elements_are_taken_once_they_are_complete(start):
    barrier = Barrier((tf.float32, tf.string), shapes=((), (2,)))
    first = barrier.insert_many(0, ["a", "b", "c"], [1.0, 2.0, 3.0])
    second = barrier.insert_many(1, ["c", "a"], [["x", "y"], ["z", "w"]])
    indices, keys, (numbers, texts) = barrier.take_many(2)
    assert texts.shape.as_list() == [None, 2]
    with tf.Session() as session:
        session.run(first)
        assert session.run([barrier.ready_size(), barrier.incomplete_size()]) == [0, 3]
        step = start(lambda: session.run([indices, keys, numbers, texts]))
        session.run(second)
        places, names, values, parts = step.join().result
        assert names.tolist() == [b"a", b"c"] and values.tolist() == [1, 3]
        assert places.tolist() == [-(1 << 63)] * 2 and parts.tolist() == [[b"z", b"w"], [b"x", b"y"]]
        with pytest.raises(tf.errors.InvalidArgumentError, match="already has a value for component 0"):
            session.run(barrier.insert_many(0, ["b"], [1.0]))


def test_closing():
    barrier = Barrier([tf.int32, tf.int32])
    put = [barrier.insert_many(i, ["a", "b"], [1, 2]) for i in range(2)]
    fewer = barrier.take_many(5, allow_small_batch=True)[2]
    with tf.Session() as session:
        session.run(put[0])
        session.run(barrier.close())
        with pytest.raises(tf.errors.CancelledError, match="no new keys"):
            session.run(barrier.insert_many(0, ["z"], [1]))
        session.run(put[1])
        with pytest.raises(tf.errors.OutOfRangeError, match="requested 3, total size 2"):
            session.run(barrier.take_many(3)[0])
        assert [v.tolist() for v in session.run(fewer)] == [[1, 2], [1, 2]]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(fewer)
        session.run(barrier.close(cancel_pending_enqueues=True))
        with pytest.raises(tf.errors.CancelledError, match="already closed"):
            session.run(barrier.close())


def test_inserts_are_counted_and_a_closed_barrier_gives_what_is_complete():
    """The numbers and batches were seen in TensorFlow 2.21."""
    barrier = Barrier([tf.int32, tf.int32], shapes=((), ()))
    index, keys, _ = barrier.take_many(3, allow_small_batch=True)
    with tf.Session() as session:
        session.run(barrier.insert_many(0, ["a", "b"], [1, 2]))
        session.run(barrier.insert_many(0, ["c"], [3]))
        session.run(barrier.insert_many(1, ["c", "b"], [30, 20]))
        session.run(barrier.close())
        places, names = session.run([index, keys])  # "a" may still become complete
        assert names.tolist() == [b"b", b"c"] and places.tolist() == [-(1 << 63), -(1 << 63) + 1]
        session.run(barrier.insert_many(0, tf.constant([], tf.string), tf.constant([], tf.int32)))
        session.run(barrier.insert_many(1, ["a"], [10]))
        assert session.run(keys).tolist() == [b"a"]


def test_what_cannot_be():
    with pytest.raises(ValueError, match="Empty tensors are not supported.*at index 1"):
        Barrier([tf.int32, tf.int32], shapes=[(1,), (0,)])
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="no elements are not supported"):
        session.run(Barrier([tf.float32]).insert_many(0, ["a", "b"], [[], []]))
    assert Barrier(tf.float32, shapes=()).take_many(1)[2][0].shape.as_list() == [None]
    with pytest.raises(ValueError, match="shapes"):
        Barrier([tf.int32], shapes=[[None]])
    barrier = Barrier([tf.int32], shapes=[()])
    with tf.Session() as session:
        for wrong, message in (
            (barrier.insert_many(3, ["a"], [1]), "component"),
            (barrier.insert_many(0, ["a"], [[1]]), r"Shape mismatch in tuple component 0. Expected \[1\], got \[1,1\]"),
        ):
            with pytest.raises(tf.errors.InvalidArgumentError, match=message):
                session.run(wrong)
