"""Exchanges: values before and after who waits for them, aborted and ended steps."""

from __future__ import annotations

from concurrent.futures import Future

import numpy as np
import pytest
from graphdock import errors
from graphdock_cluster.exchange import Exchange, find_exchange
from graphdock_cluster.kernels.exchange import from_upper_half, upper_half


def made():
    return Exchange(lambda *sent: None)


def test_a_value_may_come_before_its_taker_and_after():
    exchange = made()
    exchange.arrive(1, "a", 3)
    assert exchange.take(1, "a") == 3
    waits = exchange.take(1, "b")
    assert isinstance(waits, Future) and not waits.done()
    exchange.arrive(1, "b", 4)
    assert waits.result(0) == 4


def test_steps_do_not_meet():
    exchange = made()
    waits = exchange.take(2, "a")
    exchange.arrive(1, "a", 3)
    assert not waits.done() and exchange.steps == [2, 1]


def test_an_abort_ends_what_waits_and_what_will():
    exchange, error = made(), errors.AbortedError("gone")
    waits = exchange.take(1, "a")
    exchange.abort(1, error)
    exchange.abort(1, errors.AbortedError("later"))
    assert waits.exception(0) is error
    exchange.arrive(1, "b", 2)  # dropped
    with pytest.raises(errors.AbortedError, match="gone"):
        exchange.take(1, "b")


def test_what_arrives_for_a_step_that_has_ended_is_dropped():
    exchange = made()
    exchange.end(1)
    exchange.arrive(1, "a", 2)
    assert exchange.steps == []
    with pytest.raises(errors.AbortedError, match="step 1 has ended"):
        exchange.take(1, "a")


def test_a_wait_that_is_cancelled_loses_its_value_and_nothing_else():
    exchange = made()
    exchange.take(1, "a").cancel()
    exchange.arrive(1, "a", 2)
    exchange.arrive(1, "b", 3)
    assert exchange.take(1, "b") == 3


def test_a_value_is_sent_and_taken_once():
    exchange = made()
    exchange.arrive(1, "a", 2)
    with pytest.raises(errors.AlreadyExistsError, match="sent twice"):
        exchange.arrive(1, "a", 2)
    exchange.take(1, "b")
    with pytest.raises(errors.AlreadyExistsError, match="taken twice"):
        exchange.take(1, "b")


def test_an_exchange_is_found_as_long_as_it_lives():
    exchange = made()
    name = exchange.name
    assert find_exchange(name) is exchange
    del exchange
    with pytest.raises(errors.AbortedError, match="closed"):
        find_exchange(name)


def test_half_of_a_float_is_its_upper_bits():
    values = np.array([1.0, -2.5, np.pi, np.inf, -np.inf, np.nan, 1e-40, 0.0, -0.0], np.float32)
    back = from_upper_half(upper_half(values))
    assert upper_half(values).nbytes * 2 == values.nbytes
    np.testing.assert_allclose(back[:3], values[:3], rtol=2**-7)
    np.testing.assert_array_equal(back[3:6], values[3:6])
    assert np.signbit(back[-1]) and (np.abs(back) <= np.abs(values))[:3].all()


def test_who_needs_several_values_is_called_when_the_last_has_come_or_the_step_is_aborted():
    exchange, called = Exchange(lambda *_: None), []
    exchange.arrive(1, "a", 1)
    assert exchange.meet(1, ["a"], lambda: called.append("never"))
    assert not exchange.meet(2, ["a", "b"], lambda: called.append(2))
    assert not exchange.meet(3, ["a"], lambda: called.append(3))
    assert not exchange.meet(4, ["a"], lambda: called.append(4))
    exchange.arrive(2, "b", 1)
    assert called == []
    exchange.arrive(2, "a", 1)
    exchange.arrive(2, "c", 1)
    exchange.abort(3, errors.CancelledError("stopped"))
    exchange.abort_all(errors.CancelledError("closed"))
    exchange.end(5)
    assert exchange.meet(5, ["a"], lambda: called.append("never"))
    assert called == [2, 3, 4]
