"""A step in submitted: when its context is idle again, and that its error is kept until it is raised, once."""

from __future__ import annotations

import pytest
from graphdock.contracts.in_flight import InFlightSteps
from graphdock.contracts.step import StepContext, StepServices
from graphdock.errors import DeviceLostError, GraphdockError, InternalError
from graphdock.plugin.host import Host
from graphdock_executor.in_flight import QueuedStep
from graphdock_executor.stream_slots import SLOTS_LOCK, StreamSlots
from graphdock_testing import queued


class Bench:
    """Where steps are submitted: a device, and stream slots of an instance for each step."""

    def __init__(self):
        self.host = Host()
        self.device = queued.install(self.host, seed=0, laziness=1.0, stream_slots=4)
        self.in_flight = InFlightSteps(2)
        self.idle = []

    def stream_slots(self, own=False):
        return StreamSlots([self.device], own, lambda: "a step", {}, True, 4)

    def take_back(self, held):
        self.idle.append(held.pop())

    def start(self, name, stream_slots, work=None):
        step = StepContext(StepServices("test", lambda: None))
        submitted = QueuedStep(
            self.in_flight, step, lambda: f"the step of {name}", self.take_back, lambda d: f"{name} on {d}"
        )
        step.on_submit = submitted.submit

        def call():
            for stream_slot in stream_slots:
                stream_slot.queue.launch(name, work or (lambda: None))

        stream_slots.take(step, lambda: stream_slots.run({}, call, ()))
        return submitted

    def step(self, name, work=None):
        return self.start(name, self.stream_slots(), work)


@pytest.fixture
def bench():
    made = Bench()
    yield made
    made.host.close()


def fails():
    raise ValueError("the tile was lost")


def test_a_context_is_idle_once_its_work_is_done(bench):
    submitted = bench.step("a")
    assert submitted.submitted and not submitted.completed and not bench.idle and bench.device.pending
    submitted.complete()
    assert submitted.submitted and submitted.completed and bench.idle == [submitted.step] and not bench.device.pending
    assert not bench.in_flight.pending and submitted.step.on_submit is None and not SLOTS_LOCK.requests
    submitted.complete()
    assert len(bench.idle) == 1


def test_the_next_step_on_a_stream_slot_waits_for_the_one_before(bench):
    stream_slots = bench.stream_slots()
    first = bench.start("first", stream_slots, fails)
    second = bench.start("second", stream_slots)
    assert first.completed and not second.completed and list(bench.in_flight.pending) == [second]
    second.complete()
    with pytest.raises(InternalError, match="tile was lost") as caught:
        bench.in_flight.check()
    assert caught.value.step == first.label and "the step of first, which had returned" in str(caught.value)


def test_an_error_is_raised_once_and_in_order(bench):
    steps = [bench.step(name, work) for name, work in (("a", fails), ("b", None), ("c", fails))]
    bench.in_flight.check()  # nobody knows yet
    bench.in_flight.complete(0)
    assert len(bench.idle) == 3
    for submitted in (steps[0], steps[2]):
        with pytest.raises(GraphdockError) as caught:
            bench.in_flight.check()
        assert caught.value.step == submitted.label and not hasattr(caught.value, "__notes__")
    bench.in_flight.check()
    bench.in_flight.check_all()


def test_the_last_call_tells_all_errors_at_once(bench):
    first, second = bench.step("a", fails), bench.step("b", fails)
    bench.in_flight.complete(0)
    with pytest.raises(InternalError) as caught:
        bench.in_flight.check_all()
    assert caught.value.step == first.label
    assert any("besides" in note and second.label in note for note in caught.value.__notes__)
    bench.in_flight.check_all()


def test_room_is_made_by_the_oldest(bench):
    a, b, c = (bench.step(name) for name in "abc")
    bench.in_flight.complete(1)
    assert a.completed and b.completed and not c.completed and list(bench.in_flight.pending) == [c]


def test_what_has_passed_is_completed_without_a_wait(bench):
    a, b = bench.step("a"), bench.step("b")
    waits = bench.device.waits
    while not a.stream_slots.fences[0].passed():
        bench.device.driver.scheduler.drain(next(iter(a.stream_slots)).queue.line)
    bench.in_flight.complete_passed()
    assert a.completed and waits <= bench.device.waits <= waits + 2 and b.submitted


def test_a_lost_device_names_what_each_step_gave_it(bench):
    steps = [bench.step(name) for name in "ab"]
    bench.device.lose()
    assert all(submitted.passed() for submitted in steps)
    bench.in_flight.complete_passed()
    for name in "ab":
        with pytest.raises(DeviceLostError) as caught:
            bench.in_flight.check()
        assert f"the step of {name}" in caught.value.step and caught.value.__notes__[-1] == f"{name} on queued:0"
    assert len(bench.idle) == 2


@pytest.mark.parametrize("when", ["before the fence", "after the fence"])
def test_an_interrupt_while_it_is_completed_loses_neither_the_context_nor_the_error(bench, when, monkeypatch):
    submitted = bench.step("a", fails)
    (stream_slot,) = submitted.stream_slots
    synchronize = stream_slot.queue.synchronize

    def interrupted():
        try:
            if when == "after the fence":
                synchronize()
        finally:
            raise KeyboardInterrupt

    monkeypatch.setattr(stream_slot.queue, "synchronize", interrupted)
    with pytest.raises(KeyboardInterrupt):
        try:
            raise LookupError("of somebody else")
        except LookupError:
            submitted.complete()
    assert not bench.idle and not SLOTS_LOCK.requests and stream_slot.in_flight is submitted
    monkeypatch.setattr(stream_slot.queue, "synchronize", synchronize)
    submitted.complete()
    assert bench.idle == [submitted.step]
    with pytest.raises(InternalError, match="tile was lost"):
        bench.in_flight.check()
    bench.in_flight.check_all()


def test_a_step_that_fails_is_not_submitted(bench):
    step = StepContext(StepServices("test", lambda: None))
    submitted = QueuedStep(bench.in_flight, step, lambda: "the step of a", bench.take_back, str)
    step.on_submit = submitted.submit
    stream_slots = bench.stream_slots()

    def call():
        next(iter(stream_slots)).queue.launch("late", fails)
        raise RuntimeError("refused")

    with pytest.raises(InternalError, match="tile was lost") as caught:
        stream_slots.take(step, lambda: stream_slots.run({}, call, ()))
    assert any("refused" in note for note in caught.value.__notes__)
    assert not submitted.submitted and not bench.in_flight.pending and not bench.device.pending


def test_an_interrupt_as_it_is_submitted_leaves_its_work_fenced_and_its_context_to_the_caller(bench):
    class Interrupted(InFlightSteps):
        pass

    step = StepContext(StepServices("test", lambda: None))
    submitted = QueuedStep(Interrupted(2), step, lambda: "the step of a", bench.take_back, str)

    def submit(stream_slots):
        submitted.stream_slots, submitted._left = stream_slots, set(stream_slots)
        for stream_slot in stream_slots:
            stream_slot.in_flight = submitted
        raise KeyboardInterrupt

    step.on_submit = submit
    stream_slots = bench.stream_slots()
    with pytest.raises(KeyboardInterrupt):
        stream_slots.take(
            step, lambda: stream_slots.run({}, lambda: next(iter(stream_slots)).queue.launch("a", lambda: None), ())
        )
    assert not submitted.submitted and not bench.device.pending
    after = bench.start("b", stream_slots)
    assert not bench.idle, "the caller gives that context back"
    after.complete()
    assert bench.idle == [after.step]
