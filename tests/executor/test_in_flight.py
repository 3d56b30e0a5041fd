"""A flight: when its context is idle again, and that its error is kept until it is told, once."""

from __future__ import annotations

import pytest
from graphdock.contracts.in_flight import InFlightSteps as Flights
from graphdock.contracts.step import StepContext, StepServices
from graphdock.errors import DeviceLostError, GraphdockError, InternalError
from graphdock.plugin.host import Host
from graphdock_executor.in_flight import QueuedStep as Flight
from graphdock_executor.stream_slots import SLOTS_LOCK, Lanes
from graphdock_testing import queued


class Pad:
    """Where flights take off: a device, and lanes of an instance for each flight."""

    def __init__(self):
        self.host = Host()
        self.device = queued.install(self.host, seed=0, laziness=1.0, lanes=4)
        self.flights = Flights(2)
        self.idle = []

    def lanes(self, own=False):
        return Lanes([self.device], own, lambda: "a step", {}, True, 4)

    def take_back(self, held):
        self.idle.append(held.pop())

    def start(self, name, lanes, work=None):
        step = StepContext(StepServices("test", lambda: None))
        flight = Flight(self.flights, step, lambda: f"the step of {name}", self.take_back, lambda d: f"{name} on {d}")
        step.departs = flight.depart

        def call():
            for lane in lanes:
                lane.queue.launch(name, work or (lambda: None))

        lanes.take(step, lambda: lanes.run({}, call, ()))
        return flight

    def fly(self, name, work=None):
        return self.start(name, self.lanes(), work)


@pytest.fixture
def pad():
    made = Pad()
    yield made
    made.host.close()


def fails():
    raise ValueError("the tile was lost")


def test_a_context_is_idle_once_its_work_is_done(pad):
    flight = pad.fly("a")
    assert flight.departed and not flight.landed and not pad.idle and pad.device.pending
    flight.land()
    assert flight.departed and flight.landed and pad.idle == [flight.step] and not pad.device.pending
    assert not pad.flights.flying and flight.step.departs is None and not SLOTS_LOCK.requests
    flight.land()
    assert len(pad.idle) == 1


def test_the_next_step_on_a_lane_fences_the_one_before(pad):
    lanes = pad.lanes()
    first = pad.start("first", lanes, fails)
    second = pad.start("second", lanes)
    assert first.landed and not second.landed and list(pad.flights.flying) == [second]
    second.land()
    with pytest.raises(InternalError, match="tile was lost") as caught:
        pad.flights.check()
    assert caught.value.step == first.label and "the step of first, which had returned" in str(caught.value)


def test_an_error_is_told_once_and_in_order(pad):
    flights = [pad.fly(name, work) for name, work in (("a", fails), ("b", None), ("c", fails))]
    pad.flights.check()  # nobody knows yet
    pad.flights.land(0)
    assert len(pad.idle) == 3
    for flight in (flights[0], flights[2]):
        with pytest.raises(GraphdockError) as caught:
            pad.flights.check()
        assert caught.value.step == flight.label and not hasattr(caught.value, "__notes__")
    pad.flights.check()
    pad.flights.check_all()


def test_the_last_call_tells_all_errors_at_once(pad):
    first, second = pad.fly("a", fails), pad.fly("b", fails)
    pad.flights.land(0)
    with pytest.raises(InternalError) as caught:
        pad.flights.check_all()
    assert caught.value.step == first.label
    assert any("besides" in note and second.label in note for note in caught.value.__notes__)
    pad.flights.check_all()


def test_room_is_made_by_the_oldest(pad):
    a, b, c = (pad.fly(name) for name in "abc")
    pad.flights.land(1)
    assert a.landed and b.landed and not c.landed and list(pad.flights.flying) == [c]


def test_what_has_passed_lands_without_a_wait(pad):
    a, b = pad.fly("a"), pad.fly("b")
    waits = pad.device.waits
    while not a.lanes.tickets[0].passed():
        pad.device.driver.scheduler.drain(next(iter(a.lanes)).queue.line)
    pad.flights.land_passed()
    assert a.landed and waits <= pad.device.waits <= waits + 2 and b.departed


def test_a_lost_device_names_what_each_step_gave_it(pad):
    flights = [pad.fly(name) for name in "ab"]
    pad.device.lose()
    assert all(flight.passed() for flight in flights)
    pad.flights.land_passed()
    for name in "ab":
        with pytest.raises(DeviceLostError) as caught:
            pad.flights.check()
        assert f"the step of {name}" in caught.value.step and caught.value.__notes__[-1] == f"{name} on queued:0"
    assert len(pad.idle) == 2


@pytest.mark.parametrize("when", ["before the fence", "after the fence"])
def test_an_interrupt_while_it_lands_loses_neither_the_context_nor_the_error(pad, when, monkeypatch):
    flight = pad.fly("a", fails)
    (lane,) = flight.lanes
    synchronize = lane.queue.synchronize

    def interrupted():
        try:
            if when == "after the fence":
                synchronize()
        finally:
            raise KeyboardInterrupt

    monkeypatch.setattr(lane.queue, "synchronize", interrupted)
    with pytest.raises(KeyboardInterrupt):
        try:
            raise LookupError("of somebody else")
        except LookupError:
            flight.land()
    assert not pad.idle and not SLOTS_LOCK.requests and lane.flight is flight
    monkeypatch.setattr(lane.queue, "synchronize", synchronize)
    flight.land()
    assert pad.idle == [flight.step]
    with pytest.raises(InternalError, match="tile was lost"):
        pad.flights.check()
    pad.flights.check_all()


def test_a_step_that_fails_does_not_depart(pad):
    step = StepContext(StepServices("test", lambda: None))
    flight = Flight(pad.flights, step, lambda: "the step of a", pad.take_back, str)
    step.departs = flight.depart
    lanes = pad.lanes()

    def call():
        next(iter(lanes)).queue.launch("late", fails)
        raise RuntimeError("refused")

    with pytest.raises(InternalError, match="tile was lost") as caught:
        lanes.take(step, lambda: lanes.run({}, call, ()))
    assert any("refused" in note for note in caught.value.__notes__)
    assert not flight.departed and not pad.flights.flying and not pad.device.pending


def test_an_interrupt_as_it_departs_leaves_its_work_fenced_and_its_context_to_the_caller(pad):
    class Interrupted(Flights):
        pass

    step = StepContext(StepServices("test", lambda: None))
    flight = Flight(Interrupted(2), step, lambda: "the step of a", pad.take_back, str)

    def depart(lanes):
        flight.lanes, flight._left = lanes, set(lanes)
        for lane in lanes:
            lane.flight = flight
        raise KeyboardInterrupt

    step.departs = depart
    lanes = pad.lanes()
    with pytest.raises(KeyboardInterrupt):
        lanes.take(step, lambda: lanes.run({}, lambda: next(iter(lanes)).queue.launch("a", lambda: None), ()))
    assert not flight.departed and not pad.device.pending
    after = pad.start("b", lanes)
    assert not pad.idle, "the caller gives that context back"
    after.land()
    assert pad.idle == [after.step]
