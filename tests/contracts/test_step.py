"""StepContext: made dear things when asked, stops for one reason, and is as new after a reset."""

from __future__ import annotations

import math
import threading
from concurrent.futures import Future
from typing import Any

import pytest
from graphdock.contracts import wait_for
from graphdock.contracts.deadlines import DeadlineClock
from graphdock.contracts.step import StepContext, StepServices, TraceEvent
from graphdock.errors import AbortedError, DeadlineExceededError


class Clock:
    """Time that a test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


class Services:
    """Counts what is made."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.deadlines = DeadlineClock(self.clock, runs=False)

    def context(self) -> StepContext:
        return StepContext(StepServices("s", deadlines=self.deadlines))


def test_what_nobody_asks_for_is_not_made_and_needs_no_reset() -> None:
    services = Services()
    step = services.context()
    step.token.check()
    assert step.deadline is None and step.reported() == ()
    assert not step.used


@pytest.mark.parametrize(
    "ask",
    [
        lambda s: s.id,
        lambda s: s.events,
        lambda s: s.limit(1.0),
        lambda s: s.cancel(AbortedError("")),
    ],
)
def test_what_is_asked_for_stays_for_the_step_and_is_gone_after_a_reset(ask: Any) -> None:
    step = Services().context()
    made = ask(step)
    assert step.used
    if made is not None:
        assert ask(step) is made
    step.reset()
    assert not step.used and step.deadline is None and step.reported() == () and step.token.error is None
    step.token.check()
    if made is not None:
        assert ask(step) is not made


def test_ids_are_unique_over_contexts_and_threads() -> None:
    services, ids = Services(), []
    shared = services.context()
    both = [threading.Thread(target=lambda: ids.append(shared.id)) for _ in range(8)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert len(set(ids)) == 1
    other = services.context().id
    shared.reset()
    assert len({ids[0], other, shared.id}) == 3


def test_a_deadline_is_in_the_clocks_time() -> None:
    services = Services()
    step = services.context()
    step.limit(2.5)
    assert step.deadline == 102.5
    services.clock.now = 102.4
    assert services.deadlines.look() == 102.5
    step.token.check()
    services.clock.now = 102.5
    assert services.deadlines.look() == math.inf
    with pytest.raises(DeadlineExceededError, match=r"its limit of 2\.5 s"):
        step.token.check()
    step.reset()
    services.clock.now = 200.0
    assert services.deadlines.look() == math.inf
    step.token.check()


def test_the_clock_sleeps_until_the_earliest_deadline_and_cancels_on_its_own_thread() -> None:
    """Of 1,000 contexts one is late, which is asked for last."""
    steps = [StepContext(StepServices("s")) for _ in range(1000)]
    for step in steps[:-1]:
        step.limit(3600.0)
    ended = threading.Event()
    cancelled_on: list[str] = []

    def told(error: BaseException) -> None:
        cancelled_on.append(threading.current_thread().name)
        ended.set()

    steps[-1].token.watch(told)
    steps[-1].limit(0.001)
    assert ended.wait(60) and cancelled_on == ["graphdock deadlines"]
    assert isinstance(steps[-1].token.error, DeadlineExceededError)
    assert not any(step.token.error for step in steps[:-1])


def test_a_deadline_that_a_step_has_no_more_cancels_nothing() -> None:
    services = Services()
    first, second = services.context(), services.context()
    for step in (first, second):
        step.limit(1.0)
    first.reset()
    services.clock.now = 101.5
    services.deadlines.look()
    assert first.token.error is None and second.token.error is not None
    first.limit(1.0)
    services.clock.now = 102.4
    assert services.deadlines.look() == 102.5 and first.token.error is None


def test_the_first_reason_to_stop_stays() -> None:
    step = Services().context()
    first = AbortedError("first")
    step.cancel(first)
    step.cancel(AbortedError("second"))
    with pytest.raises(AbortedError) as caught:
        step.token.check()
    assert caught.value is first


def test_who_watches_for_good_is_told_of_each_step_that_stops_and_of_the_next() -> None:
    step, told = Services().context(), list[Any]()
    forget = step.token.watch(told.append, lambda: told.append("renewed"))
    step.limit(1.0)
    step.reset()
    assert told == [], "a step that was not cancelled"
    reason = AbortedError("stop")
    step.cancel(reason)
    step.cancel(AbortedError("again"))
    step.reset()
    assert told == [reason, "renewed"]
    forget()
    step.cancel(reason)
    assert told == [reason, "renewed"]


def test_a_watch_of_one_step_ends_with_it() -> None:
    step, told = Services().context(), list[Any]()
    forget = step.token.watch(told.append)
    step.token.watch(told.append)
    forget()
    reason = AbortedError("stop")
    step.cancel(reason)
    assert told == [reason]
    step.token.watch(told.append)
    assert told == [reason, reason], "who comes late is told at once"
    step.reset()
    step.cancel(AbortedError("of the next step"))
    assert told == [reason, reason]


@pytest.mark.parametrize("end", ["value", "error", "cancelled step", "cancelled future"])
def test_a_wait_in_place_ends_with_the_future_or_the_step(end: str) -> None:
    step, future = Services().context(), Future[int]()
    reason = AbortedError("stop")

    def act() -> None:
        if end == "value":
            assert future.set_running_or_notify_cancel()
            future.set_result(7)
        elif end == "error":
            future.set_exception(reason)
        elif end == "cancelled step":
            step.cancel(reason)
        else:
            future.cancel()

    thread = threading.Thread(target=act)
    thread.start()
    if end == "value":
        assert wait_for(future, step.token) == 7
    else:
        with pytest.raises(AbortedError, match="stop" if end != "cancelled future" else "was cancelled"):
            wait_for(future, step.token)
    thread.join()
    assert future.cancelled() == end.startswith("cancelled")
    assert not step.token._watches, "nobody watches a wait that has ended"


def test_events_come_in_order() -> None:
    step = Services().context()
    events = [TraceEvent("a", "cpu:0", 100.0, 1.0), TraceEvent("b", "cpu:0", 101.0, 2.0)]
    for event in events:
        step.events.append(event)
    assert step.reported() == tuple(events)


def test_a_closed_context_stays_cancelled_for_the_step_that_is_about_to_begin():
    """Between the look at a context and its reset another thread may close it."""
    step = StepContext(StepServices("s"))
    told = []
    step.token.watch(told.append, lambda: told.append("renewed"))
    step.cancel(ValueError("an earlier reason"))
    step.reset()
    assert step.token.error is None and told[1:] == ["renewed"]
    error = ValueError("closed")
    step.close(error)
    step.reset()
    with pytest.raises(ValueError, match="closed"):
        step.token.check()
    assert told[2:] == [error]
    step.token.watch(told.append)
    assert told[3:] == [error]


def test_a_cancel_that_means_another_step_does_nothing() -> None:
    step = Services().context()
    step.limit(1.0)
    meant = step.token.deadline
    step.reset()
    step.limit(2.0)
    assert not step.token.cancel(AbortedError("late"), meant) and step.token.error is None
    assert step.token.cancel(AbortedError("now"), step.token.deadline)
