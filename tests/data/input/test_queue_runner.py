"""Queue runners: their threads, what ends them, who starts them."""

from __future__ import annotations

import logging

import graphdock as tf
import pytest


def counting(limit, capacity=100):
    """A queue, and a runner that fills it with the numbers up to a limit."""
    counter = tf.Variable(0, trainable=False, collections=[tf.GraphKeys.LOCAL_VARIABLES])
    queue = tf.FIFOQueue(capacity, tf.int32, shapes=[[]])
    runner = tf.train.QueueRunner(queue, [queue.enqueue(counter.count_up_to(limit))])
    return queue, runner


def test_a_runner_fills_its_queue_and_closes_it():
    queue, runner = counting(5)
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        threads = runner.create_threads(session, start=True)
        again = runner.create_threads(session)
        assert again == [] or session.run(queue.size()) == 5, "there are others once the first are done"
        for thread in threads:
            thread.join(60)
        assert session.run(queue.dequeue_many(5)).tolist() == [0, 1, 2, 3, 4]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(queue.dequeue())
    assert runner.exceptions_raised == [] and runner.name == queue.name


def test_the_last_of_several_threads_closes_the_queue():
    counter = tf.Variable(0, trainable=False)
    queue = tf.FIFOQueue(100, tf.int32, shapes=[[]])
    enqueue = queue.enqueue(counter.count_up_to(50))
    runner = tf.train.QueueRunner(queue, [enqueue] * 4)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for thread in runner.create_threads(session, start=True):
            thread.join(60)
        assert sorted(session.run(queue.dequeue_up_to(100)).tolist()) == list(range(50)) and session.run(counter) == 50


def test_a_coordinator_stops_a_runner_that_waits():
    queue, runner = counting(1000, capacity=2)
    coord = tf.train.Coordinator()
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        threads = runner.create_threads(session, coord=coord, start=True)
        assert len(threads) == 2 and session.run(queue.dequeue()) == 0
        coord.request_stop()
        coord.join(threads)
        assert not any(t.is_alive() for t in threads) and session.run(queue.is_closed())


def test_an_error_of_a_runner_is_the_coordinators():
    queue = tf.FIFOQueue(10, tf.float32, shapes=[[]])
    runner = tf.train.QueueRunner(queue, [queue.enqueue(tf.check_numerics(tf.log(tf.constant(-1.0)), "nan"))])
    coord = tf.train.Coordinator()
    with tf.Session() as session:
        threads = runner.create_threads(session, coord=coord, start=True)
        with pytest.raises(tf.errors.InvalidArgumentError, match="nan"):
            coord.join(threads)
        with pytest.raises(tf.errors.OutOfRangeError):  # whoever waits is woken
            session.run(queue.dequeue())


def test_errors_that_mean_that_there_is_no_more():
    queue = tf.FIFOQueue(10, tf.float32, shapes=[[]])
    failing = queue.enqueue(tf.check_numerics(tf.log(tf.constant(-1.0)), "nan"))
    kinds = (tf.errors.OutOfRangeError, tf.errors.InvalidArgumentError)
    runner = tf.train.QueueRunner(queue, [failing], queue_closed_exception_types=kinds)
    with tf.Session() as session:
        for thread in runner.create_threads(session, start=True):
            thread.join(60)
        assert session.run(queue.is_closed()) and runner.queue_closed_exception_types == kinds


def test_what_cannot_be():
    queue = tf.FIFOQueue(10, tf.float32)
    with pytest.raises(ValueError, match="Must provide queue"):
        tf.train.QueueRunner(queue, [])
    with pytest.raises(TypeError, match="queue_closed_exception_types"):
        tf.train.QueueRunner(queue, [queue.close()], queue_closed_exception_types=(ValueError,))
    with pytest.raises(ValueError, match="No default session"):
        tf.train.start_queue_runners()
    with pytest.raises(TypeError, match="tf.Session"):
        tf.train.start_queue_runners(3)


def test_all_runners_of_a_graph(caplog):
    queue, runner = counting(3)
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        with caplog.at_level(logging.WARNING, "graphdock"):
            assert tf.train.start_queue_runners(session) == []
        assert "no queue runners" in caplog.text
        tf.train.add_queue_runner(runner)
        assert len(tf.train.start_queue_runners(session)) == 1
        assert session.run(queue.dequeue_many(3)).tolist() == [0, 1, 2]


def test_a_monitored_session_starts_and_stops_them():
    queue, runner = counting(4)
    tf.train.queue_runner.add_queue_runner(runner)
    taken, seen = queue.dequeue(), []
    with tf.train.MonitoredSession() as session:
        assert tf.train.start_queue_runners(session) == []
        while not session.should_stop():
            seen.append(session.run(taken))
    assert seen == [0, 1, 2, 3]


def test_a_supervisor_starts_and_stops_them():
    queue, runner = counting(4)
    tf.train.add_queue_runner(runner)
    taken, seen = queue.dequeue(), []
    supervisor = tf.train.Supervisor()
    with supervisor.managed_session() as session:
        while not supervisor.should_stop():
            seen.append(session.run(taken))
    assert seen == [0, 1, 2, 3]


def test_as_a_message():
    """The bytes are TensorFlow 2.21's."""
    queue = tf.FIFOQueue(3, tf.int32, name="in/q")
    with tf.name_scope("in"):
        kinds = (tf.errors.OutOfRangeError, tf.errors.CancelledError)
        runner = tf.train.QueueRunner(queue, [queue.enqueue(1, name="put")] * 2, queue_closed_exception_types=kinds)
    message = runner.to_proto()
    assert message.SerializeToString() == (
        b'\n\x04in/q\x12\x06in/put\x12\x06in/put\x1a\nin/q_Close"\x0cin/q_Close_1*\x02\x0b\x01'
    )
    assert runner.to_proto("other") is None and runner.to_proto("in").enqueue_op_name == ["put", "put"]
    for again in (
        tf.train.QueueRunner.from_proto(message),
        tf.train.QueueRunner.from_proto(runner.to_proto("in"), "in"),
    ):
        assert (again.name, again.enqueue_ops) == (
            "in/q",
            runner.enqueue_ops,
        ) and again.queue_closed_exception_types == kinds
        assert (again.close_op, again.cancel_op) == (runner.close_op, runner.cancel_op)
    message.ClearField("queue_closed_exception_types")  # as before TensorFlow had the field
    assert tf.train.QueueRunner.from_proto(message).queue_closed_exception_types == (tf.errors.OutOfRangeError,)
    message.queue_closed_exception_types.append(99)
    with pytest.raises(ValueError, match="99"):
        tf.train.QueueRunner.from_proto(message)
    with pytest.raises(ValueError, match="mutually exclusive"):
        tf.train.QueueRunner(queue, queue_runner_def=message)
    with pytest.raises(TypeError, match="QueueRunnerDef"):
        tf.train.QueueRunner(queue_runner_def=3)
    message.queue_name = "nowhere"
    with pytest.raises(KeyError, match="nowhere"):
        tf.train.QueueRunner.from_proto(message)
