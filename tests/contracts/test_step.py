"""StepContext: made dear things when asked, stops for one reason, and is as new after a reset."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from graphdock.contracts import RendezvousKey
from graphdock.contracts.step import StepContext, StepServices, TraceEvent
from graphdock.errors import AbortedError, DeadlineExceededError, UnimplementedError
from graphdock_testing.rendezvous import LocalRendezvous

KEY = RendezvousKey("s", 1, "/device:a:0", 7, "/device:b:0", 8, "x:0")


class Clock:
    """Time that a test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


class Services:
    """Counts what is made."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.made: list[LocalRendezvous] = []

    def rendezvous(self) -> LocalRendezvous:
        self.made.append(LocalRendezvous(self.clock))
        return self.made[-1]

    def context(self) -> StepContext:
        return StepContext(StepServices("s", self.rendezvous, self.clock))


def test_what_nobody_asks_for_is_not_made_and_needs_no_reset() -> None:
    services = Services()
    step = services.context()
    step.token.check()
    assert step.deadline is None and step.reported() == ()
    assert not step.used and not services.made


@pytest.mark.parametrize(
    "ask",
    [
        lambda s: s.id,
        lambda s: s.rendezvous,
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
    step.token.check()
    services.clock.now = 102.5
    with pytest.raises(DeadlineExceededError, match=r"its limit of 2\.5 s"):
        step.token.check()
    step.reset()
    step.token.check()


def test_the_first_reason_to_stop_stays() -> None:
    step = Services().context()
    first = AbortedError("first")
    step.cancel(first)
    step.cancel(AbortedError("second"))
    with pytest.raises(AbortedError) as caught:
        step.token.check()
    assert caught.value is first


def test_a_step_on_one_task_has_no_rendezvous() -> None:
    step = StepContext(StepServices("s"))
    with pytest.raises(UnimplementedError, match="on one task has nobody to exchange tensors with"):
        step.rendezvous  # noqa: B018
    step.cancel(AbortedError("first"))  # which poisons none


@pytest.mark.parametrize("before", [True, False], ids=["made before", "made after"])
def test_cancelling_poisons_the_rendezvous(before: bool) -> None:
    step, got = Services().context(), []
    reason = AbortedError("stop")
    if before:
        step.rendezvous.receive(KEY, lambda value, error: got.append(error), step.deadline)
        step.cancel(reason)
    else:
        step.cancel(reason)
        step.rendezvous.receive(KEY, lambda value, error: got.append(error), step.deadline)
    assert got == [reason]


def test_the_program_is_interrupted_and_put_right_again() -> None:
    step, told = Services().context(), []
    step.interrupt = told.append
    step.limit(1.0)
    step.reset()
    assert told == [], "a step that was not cancelled"
    reason = AbortedError("stop")
    step.cancel(reason)
    step.reset()
    assert told == [reason, None]


def test_events_come_in_order() -> None:
    step = Services().context()
    events = [TraceEvent("a", "cpu:0", 100.0, 1.0), TraceEvent("b", "cpu:0", 101.0, 2.0)]
    for event in events:
        step.events.append(event)
    assert step.reported() == tuple(events)
