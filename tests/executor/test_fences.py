"""Tickets: who comes after whom, and what the host knows already."""

from __future__ import annotations

import pytest
from graphdock.contracts.runtime.access_history import Tickets
from graphdock.errors import DeviceLostError
from graphdock_executor.fences import Accesses, Ticket


class Device:
    def __init__(self):
        self.done, self.asked, self.lost = set(), [], False

        class info:  # noqa: N801 - as a DeviceInfo
            device_type, index = "toy", 0

        self.info = info

    def passed(self, event):
        if self.lost:
            raise DeviceLostError("toy:0", "gone")
        self.asked.append(event)
        return event in self.done

    def wait_host(self, event):
        self.asked.append(event)
        self.done.add(event)


class Lane:
    def __init__(self, device, name):
        self.device, self.name = device, name
        self.done = self.count = 0
        self.followed = []

    def ticket(self, **known):
        self.count += 1
        return Ticket(self, f"{self.name}{self.count}", self.count, known)

    def learn(self, number, known):
        self.done = max(self.done, number)

    def follow(self, tickets):
        self.followed.append({t.event for t in tickets})


@pytest.fixture
def device():
    return Device()


@pytest.fixture
def a(device):
    return Lane(device, "a")


@pytest.fixture
def b(device):
    return Lane(device, "b")


def events(found):
    return [ticket.event for ticket in found]


def test_a_read_comes_after_the_write_and_a_write_after_all(a, b):
    tickets = Tickets()
    assert not tickets.before(True)
    tickets.add((a.ticket(),), {})
    assert events(tickets.before(False)) == ["a1"]
    tickets.add((), {b: b.ticket()})
    tickets.add((), {a: a.ticket()})
    assert events(tickets.before(False)) == ["a1"]
    assert events(tickets.before(True)) == ["a1", "b1", "a2"]
    tickets.add((), {b: b.ticket()})  # of one lane the last read stands for those before it
    assert events(tickets.before(True)) == ["a1", "b2", "a2"]


def test_a_write_stands_for_all_before_it(a, b):
    tickets = Tickets()
    tickets.add((a.ticket(),), {})
    tickets.add((), {b: b.ticket()})
    tickets.add((b.ticket(),), {a: a.ticket()})
    assert events(tickets.before(True)) == ["b2", "a2"] and events(tickets.before(False)) == ["b2"]


def test_what_the_host_knows_to_be_done_is_dropped_without_a_question(a, b, device):
    tickets = Tickets()
    tickets.add((a.ticket(),), {b: b.ticket()})
    a.done = 1
    assert events(tickets.before(True)) == ["b1"] and tickets.writes == ()
    b.done = 1
    assert not tickets.before(True) and device.asked == []


def test_a_ticket_that_has_passed_is_asked_for_once(a, device):
    ticket = a.ticket()
    assert not ticket.passed() and not ticket.over
    device.done.add("a1")
    assert ticket.passed() and ticket.passed() and ticket.over
    assert device.asked == ["a1", "a1"]


def test_the_host_waits_for_what_it_does_not_know(a, b, device):
    tickets = Tickets()
    tickets.add((a.ticket(),), {b: b.ticket()})
    tickets.wait_host(False)
    assert device.asked == ["a1"]
    tickets.wait_host(True)
    tickets.wait_host(True)
    assert device.asked == ["a1", "b1"]


def test_a_lost_device_says_so(a, device):
    ticket = a.ticket()
    device.lost = True
    with pytest.raises(DeviceLostError):
        ticket.passed()


class Resource:
    def __init__(self):
        self.tickets = Tickets()


def test_accesses_follow_by_lane_and_leave_tickets_behind(a, b, device):
    u, v, w, x, y = (Resource() for _ in range(5))
    first = Accesses({u: {1: True}, y: {1: True}, v: {1: True, 2: False}, w: {2: False}, x: {None: True}}, {1: a, 2: b})
    first.follow()
    assert not a.followed and not b.followed  # nothing is in flight
    first.leave({a: a.ticket(), b: b.ticket()})
    assert events(u.tickets.before(True)) == events(y.tickets.before(True)) == ["a1"]
    assert events(v.tickets.before(True)) == ["a1", "b1"]
    assert events(w.tickets.before(True)) == ["b1"] and not w.tickets.before(False)
    assert not x.tickets.before(True)  # the host has done what it does
    c = Lane(device, "c")
    Accesses({u: {3: False}, v: {3: True}, w: {3: False}}, {3: c}).follow()
    assert c.followed == [{"a1", "b1"}]
    Accesses({v: {None: False}, w: {None: True}}, {}).follow()
    assert device.asked == ["a1", "b1"]
