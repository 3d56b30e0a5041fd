"""Producers: what they give in how many epochs, in which order."""

from __future__ import annotations

import graphdock as tf
import pytest


def all_of(fetches):
    """What steps give until there is no more."""
    found = []
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        try:
            while True:
                found.append(session.run(fetches))
        except tf.errors.OutOfRangeError:
            coord.request_stop()
        coord.join(threads)
    return found


def test_rows_in_order_and_the_names_of_what_makes_them():
    queue = tf.train.input_producer([[1, 2], [3, 4]], num_epochs=2, shuffle=False)
    assert queue.name == "input_producer/FIFOQueueV2" and queue.shapes[0].as_list() == [2]
    assert [row.tolist() for row in all_of(queue.dequeue())] == [[1, 2], [3, 4]] * 2


def test_each_epoch_has_all_strings_in_another_order():
    names = [f"file{i}" for i in range(20)]
    queue = tf.train.string_input_producer(names, num_epochs=2, seed=7)
    found = [n.decode() for n in all_of(queue.dequeue())]
    assert sorted(found[:20]) == sorted(found[20:]) == sorted(names)
    assert found[:20] != names and found[:20] != found[20:]
    (summary,) = tf.get_collection(tf.GraphKeys.SUMMARIES)
    assert "fraction_of_32_full" in summary.op.name


def test_integers_and_slices():
    assert sorted(all_of(tf.train.range_input_producer(5, num_epochs=1).dequeue())) == [0, 1, 2, 3, 4]
    number, text = tf.train.slice_input_producer([[1, 2, 3], ["a", "b", "c"]], num_epochs=1)
    assert number.shape == [] and sorted(map(tuple, all_of([number, text]))) == [(1, b"a"), (2, b"b"), (3, b"c")]


def test_for_ever():
    queue = tf.train.range_input_producer(3, shuffle=False, capacity=5)
    assert tf.get_collection(tf.GraphKeys.LOCAL_VARIABLES) == []
    with tf.Session() as session:
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        assert session.run(queue.dequeue_many(8)).tolist() == [0, 1, 2, 0, 1, 2, 0, 1]
        coord.request_stop()
        coord.join(threads)


def test_limit_epochs():
    limited = tf.train.limit_epochs(tf.constant([7]), 2)
    assert [v.tolist() for v in all_of(limited)] == [[7], [7]]
    plain = tf.constant(1)
    assert tf.train.limit_epochs(plain) is plain
    with pytest.raises(ValueError, match="num_epochs"):
        tf.train.limit_epochs(plain, 0)


def test_what_cannot_be():
    with pytest.raises(ValueError, match="element_shape"):
        tf.train.input_producer(tf.placeholder(tf.float32, [None, None]))
    with pytest.raises(ValueError, match="non-null"):
        tf.train.string_input_producer([])
    with pytest.raises(ValueError, match="at least one"):
        tf.train.slice_input_producer([])
    nothing = tf.train.string_input_producer(tf.constant([], tf.string))
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="non-null"):
        coord = tf.train.Coordinator()
        coord.join(tf.train.start_queue_runners(session, coord))
    assert nothing.dtypes == [tf.string]
