"""Queues as resources: waits, closes and cancels, by Futures alone; what is put in is taken out once."""

from __future__ import annotations

import random
import threading
from concurrent.futures import CancelledError as Cancelled
from concurrent.futures import Future

import numpy as np
import pytest
from graphdock.contracts import ResourceRequest, dtypes, errors
from graphdock_data.resources.queue import QUEUE


def make(order="fifo", capacity=3, kinds=(dtypes.int64,), shapes=((),), least=0, seed=1):
    attrs = {"order": order, "capacity": capacity, "component_types": kinds, "shapes": shapes}
    attrs |= {"min_after_dequeue": least, "seed": seed, "seed2": 0}
    return QUEUE.create(ResourceRequest("data.Queue", "q", "", attrs, None))


def n(value):
    return np.array(value, np.int64)


def waits(result):
    return isinstance(result, Future) and not result.done()


def value(result):
    return (result.result(0) if isinstance(result, Future) else result).tolist()


def test_first_in_first_out():
    queue = make()
    for i in range(3):
        assert queue.enqueue(n(i)) is None
    late = queue.enqueue(n(3))
    assert waits(late) and queue.size() == 3
    assert value(queue.dequeue()) == 0 and late.result(0) is None and queue.size() == 3
    assert value(queue.dequeue_many(n(3))) == [1, 2, 3]
    first, second = queue.dequeue(), queue.dequeue()
    queue.enqueue_many(n([7, 8]))
    assert [value(first), value(second)] == [7, 8]


def test_a_batch_may_be_larger_than_the_queue_and_is_gathered():
    queue = make()
    batch, behind = queue.dequeue_many(n(5)), queue.dequeue()
    assert queue.enqueue_many(n([0, 1, 2, 3])) is None
    assert waits(batch) and waits(behind) and queue.size() == 0
    queue.enqueue_many(n([4, 5]))
    assert value(batch) == [0, 1, 2, 3, 4] and value(behind) == 5


def test_a_cancelled_wait_takes_nothing():
    queue = make()
    waiting = [queue.dequeue() for _ in range(3)]
    assert waiting[0].cancel() and waiting[2].cancel()
    queue.enqueue_many(n([1, 2]))
    assert value(waiting[1]) == 1 and queue.size() == 1
    batch, behind = queue.dequeue_many(n(4)), queue.dequeue()
    queue.enqueue(n(3))
    assert queue.size() == 0 and waits(behind)
    batch.cancel()  # what it had gathered is there again, in order, for who stands behind it
    assert value(behind) == 2 and value(queue.dequeue()) == 3


def test_a_cancelled_wait_puts_nothing():
    queue = make(capacity=1)
    queue.enqueue(n(0))
    lost, kept = queue.enqueue(n(1)), queue.enqueue(n(2))
    lost.cancel()
    assert [value(queue.dequeue()), value(queue.dequeue())] == [0, 2] and kept.done() and queue.size() == 0


def test_closing_lets_in_what_waits_and_gives_out_what_is_left():
    queue = make(capacity=2)
    queue.enqueue_many(n([0, 1]))
    late = queue.enqueue_many(n([2, 3]))
    close = queue.close(False)
    assert waits(late) and waits(close) and not queue.closed
    refused = queue.enqueue(n(9))  # behind the close
    assert value(queue.dequeue_many(n(3))) == [0, 1, 2]
    assert late.done() and close.result(0) is None and queue.closed
    with pytest.raises(errors.CancelledError, match="FIFOQueue 'q' is closed"):
        refused.result(0)
    with pytest.raises(errors.OutOfRangeError, match=r"insufficient elements \(requested 2, current size 1\)"):
        queue.dequeue_many(n(2))
    assert value(queue.dequeue_up_to(n(5))) == [3]
    for take in (queue.dequeue, lambda: queue.dequeue_up_to(n(2))):
        with pytest.raises(errors.OutOfRangeError, match="requested"):
            take()
    with pytest.raises(errors.CancelledError, match="already closed"):
        queue.close(False)
    assert queue.close(True) is None


def test_closing_may_cancel_what_waits_and_wakes_who_takes():
    queue = make(capacity=2)
    pending = queue.enqueue_many(n([0, 1, 2, 3]))
    assert queue.close(True) is None
    with pytest.raises(errors.CancelledError, match="Enqueue operation was cancelled"):
        pending.result(0)
    assert queue.size() == 2
    queue = make()
    one, batch, fewer = queue.dequeue_up_to(n(4)), queue.dequeue_many(n(2)), queue.dequeue()
    queue.enqueue(n(5))
    queue.close(False)
    assert value(one) == [5]
    for future in (batch, fewer):
        with pytest.raises(errors.OutOfRangeError, match="closed"):
            future.result(0)


def test_a_container_that_is_reset_wakes_all():
    queue = make(capacity=1)
    queue.enqueue(n(1))
    put = queue.enqueue(n(2))
    other = make()
    take = other.dequeue()
    for each in (queue, other):
        QUEUE.close(each, None)
    for future in (put, take):
        with pytest.raises(errors.CancelledError, match="closed with its session or container"):
            future.result(0)


def test_shuffling_keeps_some_to_choose_among_until_it_is_closed():
    queue = make("shuffled", 100, least=3)
    queue.enqueue_many(n(range(10)))
    first = value(queue.dequeue_many(n(7)))
    late = queue.dequeue()
    assert waits(late) and queue.size() == 3
    queue.close(False)
    rest = [value(late), *value(queue.dequeue_many(n(2)))]
    assert sorted(first + rest) == list(range(10)) and first + rest != list(range(10))
    again = make("shuffled", 100, least=3)
    again.enqueue_many(n(range(10)))
    assert value(again.dequeue_many(n(7))) == first  # by its seed


def test_priorities():
    queue = make("sorted", 10, (dtypes.string,), ((),))
    queue.enqueue_many(n([3, 1, 2, 1]), np.array([b"c", b"a", b"b", b"a2"], object))
    stuck = queue.dequeue_many(n(5))
    stuck.cancel()
    priorities, values = queue.dequeue_many(n(4))
    assert priorities.tolist() == [1, 1, 2, 3] and values.tolist() == [b"a", b"a2", b"b", b"c"]


def test_padding():
    queue = make("padding", 5, (dtypes.int64, dtypes.string), ((None,), (None, 1)))
    queue.enqueue(n([1, 2]), np.array([[b"a"]], object))
    queue.enqueue(n([3]), np.array([[b"b"], [b"c"]], object))
    numbers, texts = queue.dequeue_many(n(2))
    assert numbers.tolist() == [[1, 2], [3, 0]] and texts.tolist() == [[[b"a"], [b""]], [[b"b"], [b"c"]]]
    with pytest.raises(errors.InvalidArgumentError, match=r"component 0. Expected \[\?\], got \[\]"):
        queue.enqueue(n(1), np.array([[b"a"]], object))


def test_what_cannot_be():
    queue = make()
    for wrong, words in (
        (lambda: queue.enqueue(n([1])), r"component 0. Expected \[\], got \[1\]"),
        (lambda: queue.enqueue_many(n([[1, 2]])), r"component 0. Expected \[1\], got \[1,2\]"),
        (lambda: queue.enqueue_many(n(1)), r"component 0. Expected \[\?\], got \[\]"),
        (lambda: queue.dequeue_many(n(-1)), "negative"),
        (lambda: make(shapes=()).dequeue_many(n(1)), "require the components to have specified shapes"),
        (
            lambda: make(kinds=(dtypes.int64,) * 2, shapes=((), ())).enqueue_many(n([1]), n([1, 2])),
            r"component 1. Expected \[1\], got \[2\]",
        ),
    ):
        with pytest.raises(errors.InvalidArgumentError, match=words):
            wrong()
    assert value(queue.dequeue_many(n(0))) == [] and queue.enqueue_many(n([])) is None


@pytest.mark.parametrize("order", ["fifo", "padding", "shuffled"])
@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_lost_or_taken_twice(order, seed):
    """16 threads put and take, singly and in batches; some waits are cancelled. What comes out is what got in."""
    queue, got_in, came_out, lock = make(order, 5, seed=seed), [], [], threading.Lock()
    done = threading.Event()

    def keep(place, act, rng, values):
        try:
            result = act()
            if rng.random() < 0.3 and isinstance(result, Future):
                result.cancel()
            found = result.result(60) if isinstance(result, Future) else result
        except (Cancelled, errors.OutOfRangeError, errors.CancelledError):
            return False
        with lock:
            place.extend(values if found is None else np.atleast_1d(found).tolist())
        return True

    def put(number):
        rng = random.Random(f"{seed} {number}")
        for i in range(200):
            mine = number * 1000 + i
            keep(got_in, lambda mine=mine: queue.enqueue(n(mine)), rng, [mine])

    def take(number):
        rng = random.Random(f"{seed} {-number}")
        while not (done.is_set() and not queue.size()):
            most = n(rng.randrange(1, 9))
            act = queue.dequeue if rng.random() < 0.5 else lambda most=most: queue.dequeue_up_to(most)
            if not keep(came_out, act, rng, []) and done.is_set() and queue.closed and not queue.size():
                return

    takers = [threading.Thread(target=take, args=(i,)) for i in range(1, 9)]
    putters = [threading.Thread(target=put, args=(i,)) for i in range(1, 9)]
    for thread in [*takers, *putters]:
        thread.start()
    for thread in putters:
        thread.join(120)
    done.set()
    queue.close(False)
    for thread in takers:
        thread.join(120)
    assert not any(t.is_alive() for t in [*takers, *putters])
    assert sorted(came_out) == sorted(got_in) and len(set(got_in)) == len(got_in)
    assert queue.size() == 0 and not queue._puts and not queue._takes


def test_ten_thousand_waits_hold_no_thread():
    queue, before = make(capacity=1 << 20), threading.active_count()
    waiting = [queue.dequeue() for _ in range(10_000)]
    assert threading.active_count() <= before + 1  # that of the log
    queue.enqueue_many(n(range(10_000)))
    assert [f.result(0).item() for f in waiting] == list(range(10_000))
