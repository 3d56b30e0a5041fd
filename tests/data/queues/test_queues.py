"""Queues in graphs: names, shapes and errors as seen in TensorFlow 2.21's compat.v1; steps that wait, and what wakes them."""

from __future__ import annotations

import random
import threading
import time

import graphdock as tf
import numpy as np
import pytest
from graphdock_data.resources.queue import Queue


def waiting(session, queue, container=""):
    """Wait until a step waits in a queue."""
    limit = time.monotonic() + 60
    while not (resource := resource_of(session, queue, container))._takes and not resource._puts:
        assert time.monotonic() < limit
        time.sleep(0.001)


def resource_of(session, queue, container="") -> Queue:
    return session._container(container).get(queue.queue_ref.op.name).open()


def test_names_and_shapes():
    q = tf.FIFOQueue(2, [tf.int32, tf.float32], shapes=[[], [2]], names=["a", "b"], name="qq")
    assert (q.name, q.queue_ref.op.type, q.dtypes, q.names) == ("qq", "FIFOQueueV2", [tf.int32, tf.float32], ["a", "b"])
    enqueue, one, many, fewer = q.enqueue({"a": 1, "b": [1.0, 2.0]}), q.dequeue(), q.dequeue_many(2), q.dequeue_up_to(3)
    assert (enqueue.name, enqueue.type) == ("qq_enqueue", "QueueEnqueueV2")
    assert {k: (v.name, v.shape.as_list()) for k, v in one.items()} == {
        "a": ("qq_Dequeue:0", []),
        "b": ("qq_Dequeue:1", [2]),
    }
    assert {k: v.shape.as_list() for k, v in many.items()} == {"a": [2], "b": [2, 2]}
    assert {k: v.shape.as_list() for k, v in fewer.items()} == {"a": [None], "b": [None, 2]}
    names = [q.enqueue_many({"a": [1], "b": [[1, 2]]}), q.size(), q.is_closed(), q.close()]
    assert [n.name.partition(":")[0] for n in names] == ["qq_EnqueueMany", "qq_Size", "qq_Is_Closed", "qq_Close"]
    with tf.Session() as session:
        session.run(enqueue)
        got = session.run(one)
        assert got["a"] == 1 and got["b"].tolist() == [1, 2]


def test_a_queue_that_is_closed():
    q = tf.FIFOQueue(3, tf.int32, shapes=[[]])
    enqueue, close, many, fewer = q.enqueue(7), q.close(), q.dequeue_many(2), q.dequeue_up_to(2)
    with tf.Session() as session:
        session.run(enqueue)
        session.run(close)
        assert session.run([q.is_closed(), q.size()]) == [True, 1]
        for operation, kind in (
            (close, tf.errors.CancelledError),
            (enqueue, tf.errors.CancelledError),
            (many, tf.errors.OutOfRangeError),
        ):
            with pytest.raises(kind, match="closed") as caught:
                session.run(operation)
            assert "fifo_queue" in str(caught.value) and "test_queues.py" in str(caught.value)
        assert session.run(fewer).tolist() == [7]
        with pytest.raises(tf.errors.OutOfRangeError, match="requested 2, current size 0"):
            session.run(fewer)


@pytest.mark.parametrize("end", ["close", "cancel", "session", "reset", "deadline"])
def test_what_wakes_a_step_that_waits(start, end):
    with tf.container("pipeline" if end == "reset" else ""):
        q = tf.FIFOQueue(3, tf.int32, shapes=[[]])
    taken, close, cancel = q.dequeue(), q.close(), q.close(cancel_pending_enqueues=True)
    session = tf.Session()
    if end == "deadline":
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(taken, options=tf.RunOptions(timeout_in_ms=20))
        session.run(q.enqueue(1))
        assert session.run(q.size()) == 1  # the wait that ended took nothing
        return
    session.run(q.size())
    step = start(lambda: session.run(taken))
    waiting(session, q, "pipeline" if end == "reset" else "")
    if end == "reset":
        tf.Session.reset(containers=["pipeline"])
    elif end == "session":
        session.close()
    else:
        session.run(close if end == "close" else cancel)
    kinds = {"session": tf.errors.CancelledError, "reset": tf.errors.OpError}
    assert isinstance(step.join().error, kinds.get(end, tf.errors.OutOfRangeError)), step.error


def test_a_full_queue_keeps_a_step_waiting(start):
    q = tf.FIFOQueue(2, tf.int32, shapes=[[]])
    fill, one = q.enqueue_many([[1, 2, 3, 4]]), q.dequeue()
    with tf.Session() as session:
        session.run(q.size())
        step = start(lambda: session.run(fill))
        waiting(session, q)
        assert [session.run(one) for _ in range(2)] == [1, 2] and step.join().error is None
        assert session.run(q.size()) == 2


@pytest.mark.parametrize("full", [False, True])
def test_a_close_behind_pending_elements_closes_when_its_turn_comes(start, full):
    """In TensorFlow nothing cancels it; here its step may end before, at its deadline, and it stays in the line."""
    q = tf.FIFOQueue(2, tf.int32, shapes=[[]])
    fill, one, close, put = q.enqueue_many([[1, 2, 3, 4]]), q.dequeue(), q.close(), q.enqueue(5)
    with tf.Session() as session:
        session.run(q.size())
        step = start(lambda: session.run(fill))
        waiting(session, q)
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(close, options=tf.RunOptions(timeout_in_ms=20))
        assert not session.run(q.is_closed())
        behind = start(lambda: session.run(put)) if full else None
        assert [session.run(one) for _ in range(2)] == [1, 2] and step.join().error is None
        assert session.run(q.is_closed())
        if behind is not None:
            assert isinstance(behind.join().error, tf.errors.CancelledError)
        with pytest.raises(tf.errors.CancelledError, match="closed"):
            session.run(put)
        assert [session.run(one) for _ in range(2)] == [3, 4]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(one)


def test_a_step_that_waits_lets_others_update_variables(start):
    q = tf.FIFOQueue(2, tf.float32, shapes=[[]])
    v = tf.Variable(1.0)
    total, update, put = v.assign_add(q.dequeue()), v.assign_add(10.0), q.enqueue(100.0)
    with tf.Session() as session:
        session.run([v.initializer, q.size()])
        step = start(lambda: session.run(total))
        waiting(session, q)
        session.run(update)
        session.run(put)
        assert step.join().result == 111.0


def test_queues_are_shared_by_name_and_chosen_by_number():
    with tf.container("queues"):
        one = tf.FIFOQueue(3, tf.int32, shapes=[[]], shared_name="x")
        same = tf.FIFOQueue(3, tf.int32, shapes=[[]], shared_name="x")
        other = tf.FIFOQueue(3, tf.int32, shapes=[[]], shared_name="y")
    index = tf.placeholder(tf.int32, [])
    chosen = tf.QueueBase.from_list(index, [one, other])
    put, take = chosen.enqueue(index * 10), chosen.dequeue()
    with tf.Session() as first, tf.Session() as second:
        first.run(one.enqueue(5))
        assert second.run(same.dequeue()) == 5
        for i in (1, 0):
            first.run(put, {index: i})
        assert first.run([one.size(), other.size()]) == [1, 1]
        assert [first.run(take, {index: i}) for i in (0, 1)] == [0, 10]
        with pytest.raises(tf.errors.InvalidArgumentError, match="range|bounds"):
            first.run(take, {index: 2})
    tf.Session.reset(containers=["queues"])
    with pytest.raises(TypeError, match="list of queues"):
        tf.QueueBase.from_list(0, [])
    with pytest.raises(TypeError, match="component dtypes"):
        tf.QueueBase.from_list(0, [one, tf.FIFOQueue(3, tf.float32)])


def test_the_other_orders():
    priorities = tf.PriorityQueue(10, [tf.string], shapes=[[]])
    padded = tf.PaddingFIFOQueue(5, [tf.int32, tf.string], shapes=[[None], [None, 2]])
    shuffled = tf.RandomShuffleQueue(20, 2, [tf.int32], shapes=[[]], seed=1)
    with tf.Session() as session:
        session.run(priorities.enqueue_many(([3, 1, 2, 1], ["c", "a", "b", "a2"])))
        keys, values = session.run(priorities.dequeue_many(4))
        assert keys.tolist() == [1, 1, 2, 3] and values.tolist() == [b"a", b"a2", b"b", b"c"]
        session.run(padded.enqueue(([1, 2], [["a", "b"]])))
        session.run(padded.enqueue(([3], [["c", "d"], ["e", "f"]])))
        batch = padded.dequeue_many(2)
        assert batch[0].shape.as_list() == [2, None] and padded.dequeue()[0].shape.as_list() == [None]
        numbers, texts = session.run(batch)
        assert numbers.tolist() == [[1, 2], [3, 0]] and texts[0].tolist() == [[b"a", b"b"], [b"", b""]]
        session.run(shuffled.enqueue_many([list(range(12))]))
        got = session.run(shuffled.dequeue_many(10)).tolist()
        assert len(set(got)) == 10 and got != sorted(got)


def test_one_shape_stands_for_a_list_of_one():
    assert tf.FIFOQueue(3, tf.int32, (2, 3)).shapes == [tf.TensorShape([2, 3])]
    assert tf.FIFOQueue(3, tf.int32, ()).shapes == tf.FIFOQueue(3, tf.int32, tf.TensorShape([])).shapes


def test_what_cannot_be():
    names = tf.FIFOQueue(3, [tf.int32], names=["a"])
    plain = tf.FIFOQueue(3, [tf.int32, tf.float32], shapes=[[], [2]])
    for wrong, words in (
        (lambda: tf.FIFOQueue(3, [tf.int32, tf.int32], shapes=[[]]), "same length"),
        (lambda: tf.FIFOQueue(3, [tf.int32], shapes=[[None]]), "fully defined"),
        (lambda: tf.FIFOQueue(3, [tf.int32], names=["a", "b"]), "names"),
        (lambda: tf.PaddingFIFOQueue(3, [tf.int32], None), "list of shapes"),
        (lambda: tf.PaddingFIFOQueue(3, [tf.int32], [None]), "list of shapes"),
        (lambda: tf.PaddingFIFOQueue(3, [tf.int32], [tf.TensorShape(None)]), "rank"),
        (lambda: names.enqueue(3), "dictionary"),
        (lambda: names.enqueue({"b": 3}), "Keys"),
        (lambda: plain.enqueue({"b": 3}), "names"),
        (lambda: plain.enqueue(3), "number of components"),
        (lambda: plain.enqueue((3, [1.0])), "compatible"),
        (lambda: plain.enqueue_many(([3], [[1.0, 2.0]] * 2)), "do not agree"),
    ):
        with pytest.raises(ValueError, match=words):
            wrong()
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="specified shapes"):
        session.run(names.dequeue_many(1))
    for capacity, least in ((3, 3), (3, 4), (0, 0)):
        never = tf.RandomShuffleQueue(capacity, least, [tf.int32], shapes=[[]])
        with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="must be < capacity"):
            session.run(never.size())


def test_what_is_dequeued_is_the_callers(start):
    """An element is nobody else's, whatever is done with it in place."""
    q = tf.FIFOQueue(10, tf.float32, shapes=[[2]])
    fed = tf.placeholder(tf.float32, [3, 2])
    put, take = q.enqueue_many([fed]), q.dequeue()
    value = np.arange(6, dtype=np.float32).reshape(3, 2)
    with tf.Session() as session:
        session.run(put, {fed: value})
        value[:] = -1
        first = session.run(take)
        first[:] = 9
        assert session.run(take * 2).tolist() == [4, 6] and session.run(take).tolist() == [4, 5]


@pytest.mark.parametrize("deadlines", [False, True])
def test_totals_are_exact_under_16_threads_and_no_thread_stays(deadlines):
    """They put and take in steps. With deadlines, a step may end behind what it put or took: nothing is taken twice then."""
    q = tf.FIFOQueue(5, tf.int64, shapes=[[]])
    value = tf.placeholder(tf.int64, [])
    put, one, some, size = q.enqueue(value), q.dequeue(), q.dequeue_up_to(4), q.size()
    close = q.close()
    before = {t.name for t in threading.enumerate()} | {"graphdock late waits", "graphdock deadlines"}
    session, lock, tried, got_in, came_out = tf.Session(), threading.Lock(), [], [], []

    def work(number, takes):
        rng = random.Random(number)
        for i in range(1 << 20 if takes else 100):
            limit = rng.choice([None, 1, 5, 1000])
            options = tf.RunOptions(timeout_in_ms=limit) if deadlines and limit else None
            try:
                if takes:
                    found = np.atleast_1d(session.run(rng.choice([one, some]), options=options)).tolist()
                    with lock:
                        came_out.extend(found)
                else:
                    mine = number * 1000 + i
                    tried.append(mine)
                    session.run(put, {value: mine}, options)
                    with lock:
                        got_in.append(mine)
            except tf.errors.DeadlineExceededError:
                pass
            except tf.errors.OutOfRangeError:
                if session.run(size) == 0:
                    return

    session.run(size)
    threads = [threading.Thread(target=work, args=(n, n % 2 == 1), name=f"w{n}") for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads[::2]:
        thread.join(120)
    session.run(close)
    for thread in threads[1::2]:
        thread.join(120)
    assert not any(t.is_alive() for t in threads)
    assert len(set(came_out)) == len(came_out) > 50 and set(came_out) <= set(tried)
    assert deadlines or sorted(came_out) == sorted(got_in) == sorted(tried)
    session.close()
    assert {t.name for t in threading.enumerate()} <= before


def test_how_many_to_take_may_be_a_tensor():
    queue, count = tf.FIFOQueue(9, tf.int64, [[]]), tf.placeholder(tf.int32, [])
    put, some, two = queue.enqueue_many([[1, 2, 3, 4]]), queue.dequeue_many(count), queue.dequeue_many(tf.constant(2))
    assert some.shape.as_list() == [None] and two.shape.as_list() == [2]
    with tf.Session() as session:
        session.run(put)
        assert session.run(some, {count: 1}).tolist() == [1] and session.run(two).tolist() == [2, 3]


def test_a_shared_shuffle_queue_has_the_seeds_of_its_name():
    """The number was seen in TensorFlow 2.21 under the graph's seed."""
    tf.set_random_seed(87654321)
    tf.random_normal([2])
    first = tf.RandomShuffleQueue(1, 0, tf.float32, shared_name="shared_queue")
    assert first.queue_ref.op.get_attr("seed2") == 887634792
    second = tf.RandomShuffleQueue(1, 0, tf.float32, shared_name="shared_queue")
    with tf.Session() as session:
        session.run(first.enqueue([2.0]))
        assert session.run(second.dequeue()) == 2.0


def test_a_priority_queue_gives_several_once_there_are_as_many(start):
    """As TensorFlow 2.21: 5 came first, 1 is the lowest."""
    queue = tf.PriorityQueue(10, tf.int32, ())
    priority = tf.placeholder(tf.int64, [])
    put, two = queue.enqueue((priority, 0)), queue.dequeue_many(2)[0]
    with tf.Session() as session:
        step = start(lambda: session.run(two))
        session.run(put, {priority: 5})
        assert session.run(queue.size()) == 1
        session.run(put, {priority: 1})
        assert step.join().result.tolist() == [1, 5]
        many = start(lambda: session.run(queue.dequeue_up_to(3)[0]))
        session.run(put, {priority: 4})
        session.run(queue.close())
        assert many.join().result.tolist() == [4]


@pytest.mark.parametrize(
    "other",
    [
        lambda: tf.FIFOQueue(3, tf.float32, shared_name="q"),
        lambda: tf.FIFOQueue(4, tf.int32, shared_name="q"),
        lambda: tf.FIFOQueue(3, tf.int32, shapes=[[]], shared_name="q"),
        lambda: tf.RandomShuffleQueue(3, 1, tf.int32, shared_name="q"),
    ],
    ids=["dtype", "capacity", "shapes", "kind"],
)
def test_the_operation_of_a_shared_queue_refuses_another_queue(other):
    """TensorFlow's raises InvalidArgumentError, at the second of the two."""
    mine, same, another = (
        tf.FIFOQueue(3, tf.int32, shared_name="q"),
        tf.FIFOQueue(3, tf.int32, shared_name="q"),
        other(),
    )
    with tf.Session():
        for _ in range(2):
            mine.queue_ref.op.run()
            same.queue_ref.op.run()
            with pytest.raises(tf.errors.FailedPreconditionError, match="'q' exists in this session with other"):
                another.queue_ref.op.run()
        assert mine.size().eval() == 0
    with tf.Session():
        another.queue_ref.op.run()
        with pytest.raises(tf.errors.FailedPreconditionError, match="'q' exists in this session with other"):
            mine.queue_ref.op.run()


@pytest.mark.parametrize(
    ("components", "message"),
    [
        (([[1.0, 2.0], [1.0, 2.0]], [1.0]), r"component 1\. Expected \[2\], got \[1\]"),
        (([[1.0, 2.0], [1.0, 2.0]], 1.0), r"component 1\. Expected \[2\], got \[\]"),
        (([[1.0, 2.0, 3.0]], [1.0]), r"component 0\. Expected \[1,2\], got \[1,3\]"),
    ],
)
def test_a_batch_of_another_shape_is_refused_in_tensorflows_words(components, message):
    for shapes in ([[2], []], None):
        if shapes is None and "Expected [1,2]" in message.replace("\\", ""):
            continue  # any shape is taken
        queue = tf.FIFOQueue(10, [tf.float32, tf.float32], shapes=shapes)
        fed = [tf.placeholder_with_default(tf.constant(c), None) for c in components]
        with (
            tf.Session() as session,
            pytest.raises(tf.errors.InvalidArgumentError, match="Shape mismatch in tuple " + message),
        ):
            session.run(queue.enqueue_many(fed))
