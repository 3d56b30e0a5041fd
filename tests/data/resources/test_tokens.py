"""Tokens: each replica takes the last one once, whatever replicas that ended have left or taken."""

from __future__ import annotations

import pytest
from graphdock.contracts import errors

from tests.data.resources.test_queue import make, n, value, waits


def test_a_queue_that_is_begun_anew_is_empty_and_ends_those_who_took_since_before():
    queue = make()
    queue.enqueue(n(1))
    assert value(queue.dequeue_since(n(0), n(0))) == 1
    late = queue.dequeue_since(n(0), n(0))
    queue.reset(False)
    assert waits(late)
    queue.reset()
    with pytest.raises(errors.AbortedError, match="begun anew"):
        late.result(0)
    with pytest.raises(errors.AbortedError, match="begun anew"):
        queue.dequeue_since(n(0), n(0))
    queue.enqueue(n(2)), queue.close(False)
    assert value(queue.dequeue_since(n(1), n(0))) == 2
    queue.reset()
    assert queue.size() == 0 and not queue.closed and queue.generation == 2


def test_before_tokens_stay_each_is_taken_once_in_order():
    queue = make()
    queue.enqueue_many(n([5, 3, 4]))
    assert [value(queue.dequeue_since(n(0), n(9))) for _ in range(3)] == [5, 3, 4]


def test_a_token_that_a_replica_left_is_taken_by_none_that_has_had_its_step():
    queue = make(capacity=-1)
    queue.reset(False)
    queue.enqueue_many(n([6, 6]))
    assert value(queue.dequeue_since(n(0), n(5))) == 6  # the other replica ended in its wait, and began anew at step 6
    both = [queue.dequeue_since(n(0), n(6)) for _ in range(2)]
    assert all(map(waits, both))
    queue.enqueue_many(n([7, 7]))
    assert [value(each) for each in both] == [7, 7]


def test_who_takes_once_more_after_it_lost_its_token_takes_nobody_elses():
    queue = make(capacity=-1)
    queue.reset(False)
    queue.enqueue_many(n([7, 7]))
    assert [value(queue.dequeue_since(n(0), n(6))) for _ in range(3)] == [7, 7, 7]


def test_who_waits_for_a_later_step_keeps_none_behind_it_from_an_earlier_one():
    queue = make(capacity=-1)
    queue.reset(False)
    first, second = queue.dequeue_since(n(0), n(7)), queue.dequeue_since(n(0), n(6))
    queue.enqueue_many(n([7, 7]))
    assert waits(first) and value(second) == 7
    queue.enqueue(n(6))  # one that is given back
    assert value(queue.dequeue_since(n(0), n(6))) == 7
    queue.close(False)
    with pytest.raises(errors.OutOfRangeError, match="closed"):
        first.result(0)
    assert value(queue.dequeue_since(n(0), n(6))) == 7


def test_a_wait_that_is_cancelled_leaves_the_token():
    queue = make(capacity=-1)
    queue.reset(False)
    waiting = queue.dequeue_since(n(0), n(6))
    assert waiting.cancel()
    queue.enqueue_many(n([7, 7]))
    assert queue.size() == 1 and value(queue.dequeue_since(n(0), n(6))) == 7
