"""Accumulators as resources: means and sums, stale gradients, waits."""

from __future__ import annotations

from concurrent.futures import Future

import numpy as np
import pytest
from graphdock.contracts import ResourceRequest, dtypes, errors
from graphdock_data.resources.accumulator import ACCUMULATOR


def make(sparse=False, shape=None, reduction_type="MEAN"):
    attrs = {"sparse": sparse, "dtype": dtypes.float32, "shape": shape, "reduction_type": reduction_type}
    return ACCUMULATOR.create(ResourceRequest("data.Accumulator", "acc", "", attrs, None))


def f(*values):
    return np.array(values, np.float32)


def rows(indices, values, shape=()):
    return np.array(indices, np.int64), np.array(values, np.float32), np.array(shape, np.int64)


def test_the_mean_of_enough_gradients():
    acc = make(shape=(2,))
    acc.apply(0, f(1, 2))
    late = acc.take(2)
    assert isinstance(late, Future) and not late.done() and acc.number() == 1
    acc.apply(0, f(3, 6))
    assert late.result(0).tolist() == [2, 4] and acc.number() == 0 and acc.step == 1
    acc.apply(0, f(9, 9))  # of a step before the global one
    assert acc.number() == 0
    acc.apply(1, f(5, 5))
    acc.apply(7, f(6, 6))
    assert acc.take(1).tolist() == [5.5, 5.5]
    total = make(reduction_type="SUM")
    total.apply(0, f(1))
    total.apply(0, f(2))
    assert total.take(1).tolist() == [3]


def test_a_cancelled_wait_takes_nothing():
    acc = make()
    first, second = acc.take(1), acc.take(1)
    first.cancel()
    acc.apply(0, f(4))
    assert second.result(0).tolist() == [4] and acc.step == 1
    late = acc.take(1)
    ACCUMULATOR.close(acc, None)
    with pytest.raises(errors.CancelledError):
        late.result(0)


def test_the_step_never_goes_back():
    acc = make()
    acc.set_step(5)
    acc.set_step(3)
    acc.apply(4, f(1))
    assert acc.step == 5 and acc.number() == 0


def test_a_reset_begins_anew():
    acc = make()
    acc.apply(4, f(1))  # of a worker that is early
    acc.reset(4)
    assert acc.number() == 1 and acc.take(1).tolist() == [1] and acc.step == 5
    late = acc.take(2)
    acc.apply(5, f(1))
    acc.reset(3)
    with pytest.raises(errors.CancelledError, match="was reset to step 3"):
        late.result(0)
    assert acc.number() == 0 and acc.dropped == 0
    acc.apply(5, f(8))  # of the training before
    acc.apply(3, f(2))
    assert acc.dropped == 1 and acc.take(1).tolist() == [2]
    acc.apply(6, f(3))
    assert acc.take(1).tolist() == [3]


def test_a_replica_counts_once_after_a_reset_that_says_so():
    acc = make()
    acc.apply(4, f(1), replica=0)
    assert not acc.reset(4, once=True) and acc.number() == 1
    acc.apply(4, f(5), replica=0)  # computed again
    acc.apply(5, f(7), replica=1)  # of the training before
    assert acc.number() == 1 and acc.dropped == 2
    acc.apply(4, f(3), replica=1)
    assert acc.take(2).tolist() == [2]
    acc.apply(5, f(2), replica=0)
    assert acc.reset(5, once=True) and acc.number() == 0
    fresh = make()
    fresh.apply(3, f(1), replica=0)
    assert fresh.reset(2, once=True) and fresh.number() == 0


def test_rows_are_divided_by_the_gradients_that_had_them():
    acc = make(sparse=True, shape=(5, 2))
    acc.apply(0, *rows([0, 2], [[1, 1], [2, 2]], [5, 2]))
    acc.apply(0, *rows([2, 2], [[4, 4], [6, 6]]))
    indices, values, shape = acc.take(2)
    assert indices.tolist() == [0, 2] and values.tolist() == [[1, 1], [6, 6]] and shape.tolist() == [5, 2]


def test_a_shape_may_leave_out_trailing_dimensions():
    acc = make(sparse=True, shape=(2, None))
    acc.apply(0, *rows([0], np.ones([1, 2, 2, 3])))
    for wrong in (np.ones([1, 2, 2]), np.ones([1, 2, 2, 4])):  # the first one's hold until some are taken
        with pytest.raises(errors.InvalidArgumentError, match="Shape mismatch"):
            acc.apply(0, *rows([0], wrong))
    assert acc.take(1)[2].tolist() == [2, 2, 2, 3]
    acc.apply(1, *rows([1], [[5]]))
    assert acc.take(1)[2].tolist() == [2, 1]
    free = make(sparse=True, shape=())
    free.apply(0, *rows([3], [[1, 1]], [4, 2]))
    assert free.take(1)[2].tolist() == [-1, 2]


def test_what_does_not_fit():
    dense, sparse = make(shape=(2,)), make(sparse=True, shape=(5, 2))
    for wrong in (
        lambda: dense.apply(0, f(1)),
        lambda: dense.take(0),
        lambda: sparse.apply(0, *rows([5], [[1, 1]])),
        lambda: sparse.apply(0, *rows([0], [[1, 1, 1]])),
        lambda: sparse.apply(0, *rows([0, 1], [[1, 1]])),
        lambda: sparse.apply(0, *rows([0], [[1, 1]], [6, 2])),
        lambda: sparse.apply(0, *rows([0], 1)),
        lambda: make(sparse=True, shape=(2, 2, 2)).apply(0, *rows([0], [[1, 1]])),
    ):
        with pytest.raises(errors.InvalidArgumentError):
            wrong()
    free = make()
    free.apply(0, f(1))
    with pytest.raises(errors.InvalidArgumentError, match="Shape mismatch"):
        free.apply(0, f(1, 2))
