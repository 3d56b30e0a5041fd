"""Access history: who comes after whom, and what the host knows already."""

from __future__ import annotations

import pytest
from graphdock.contracts.runtime.resources import AccessHistory
from graphdock.errors import DeviceLostError
from graphdock_executor.stream_slot import Accesses, StreamFence


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


class StreamSlot:
    def __init__(self, device, name):
        self.device, self.name = device, name
        self.done = self.count = 0
        self.followed = []

    def record(self, **known):
        self.count += 1
        return StreamFence(self, f"{self.name}{self.count}", self.count, known)

    def learn(self, number, known):
        self.done = max(self.done, number)

    def follow(self, fences):
        self.followed.append({t.event for t in fences})


@pytest.fixture
def device():
    return Device()


@pytest.fixture
def a(device):
    return StreamSlot(device, "a")


@pytest.fixture
def b(device):
    return StreamSlot(device, "b")


def events(found):
    return [fence.event for fence in found]


def test_a_read_comes_after_the_write_and_a_write_after_all(a, b):
    history = AccessHistory()
    assert not history.before(True)
    history.add((a.record(),), {})
    assert events(history.before(False)) == ["a1"]
    history.add((), {b: b.record()})
    history.add((), {a: a.record()})
    assert events(history.before(False)) == ["a1"]
    assert events(history.before(True)) == ["a1", "b1", "a2"]
    history.add((), {b: b.record()})  # of one stream slot the last read stands for those before it
    assert events(history.before(True)) == ["a1", "b2", "a2"]


def test_a_write_stands_for_all_before_it(a, b):
    history = AccessHistory()
    history.add((a.record(),), {})
    history.add((), {b: b.record()})
    history.add((b.record(),), {a: a.record()})
    assert events(history.before(True)) == ["b2", "a2"] and events(history.before(False)) == ["b2"]


def test_what_the_host_knows_to_be_done_is_dropped_without_a_question(a, b, device):
    history = AccessHistory()
    history.add((a.record(),), {b: b.record()})
    a.done = 1
    assert events(history.before(True)) == ["b1"] and history.writes == ()
    b.done = 1
    assert not history.before(True) and device.asked == []


def test_a_fence_that_has_passed_is_asked_for_once(a, device):
    fence = a.record()
    assert not fence.passed() and not fence.over
    device.done.add("a1")
    assert fence.passed() and fence.passed() and fence.over
    assert device.asked == ["a1", "a1"]


def test_the_host_waits_for_what_it_does_not_know(a, b, device):
    history = AccessHistory()
    history.add((a.record(),), {b: b.record()})
    history.wait_host(False)
    assert device.asked == ["a1"]
    history.wait_host(True)
    history.wait_host(True)
    assert device.asked == ["a1", "b1"]


def test_a_lost_device_says_so(a, device):
    fence = a.record()
    device.lost = True
    with pytest.raises(DeviceLostError):
        fence.passed()


class Resource:
    def __init__(self):
        self.access_history = AccessHistory()


def test_accesses_follow_by_stream_slot_and_leave_fences_behind(a, b, device):
    u, v, w, x, y = (Resource() for _ in range(5))
    first = Accesses({u: {1: True}, y: {1: True}, v: {1: True, 2: False}, w: {2: False}, x: {None: True}}, {1: a, 2: b})
    first.follow()
    assert not a.followed and not b.followed  # nothing is in flight
    first.record({a: a.record(), b: b.record()})
    assert events(u.access_history.before(True)) == events(y.access_history.before(True)) == ["a1"]
    assert events(v.access_history.before(True)) == ["a1", "b1"]
    assert events(w.access_history.before(True)) == ["b1"] and not w.access_history.before(False)
    assert not x.access_history.before(True)  # the host has done what it does
    c = StreamSlot(device, "c")
    Accesses({u: {3: False}, v: {3: True}, w: {3: False}}, {3: c}).follow()
    assert c.followed == [{"a1", "b1"}]
    Accesses({v: {None: False}, w: {None: True}}, {}).follow()
    assert device.asked == ["a1", "b1"]
