"""A lane: its tickets, what its queue waits for and no more, and which lane an instance gets."""

from __future__ import annotations

import pytest
from graphdock.errors import DeviceLostError, GraphdockError
from graphdock.plugin.host import Host
from graphdock_executor.stream_slot import Lane, shared_lane, unshare
from graphdock_testing import queued


@pytest.fixture
def device():
    host = Host()
    yield queued.install(host, seed=0, laziness=1.0)
    host.close()


@pytest.fixture
def lanes(device, monkeypatch):
    monkeypatch.setattr(device, "passed", lambda event: False)  # nothing passes by itself
    return [Lane(device) for _ in range(3)]


def ticket(lane):
    return lane.ticket(lane.queue.event())


def waits(device):
    return device.faults.by_kind["wait"]


def test_a_lane_waits_for_others_and_not_for_itself(device, lanes):
    a, b, _ = lanes
    first, own = ticket(a), ticket(b)
    b.follow({first, own})
    assert waits(device) == 1
    b.follow({first})
    assert waits(device) == 1, "it waits already"
    b.follow({ticket(a)})
    assert waits(device) == 2


def test_one_wait_stands_for_what_the_other_lane_waited_for(device, lanes):
    a, b, c = lanes
    first = ticket(a)
    b.follow({first})
    second = ticket(b)
    c.follow({first, second})
    assert waits(device) == 2 and c.seen == {a: 1, b: 1}
    late = ticket(a)  # after b had looked
    c.follow({late, ticket(b)})
    assert waits(device) == 4


def test_a_fence_tells_the_host_of_all_that_the_queue_waited_for(device, lanes):
    a, b, c = lanes
    first = ticket(a)
    b.follow({first})
    second = ticket(b)
    b.fence()
    assert first.over and second.over
    c.follow({first, second})
    assert waits(device) == 1


def test_a_failing_fence_ends_the_work_too(device, lanes):
    def fails():
        raise ValueError("no")

    a, *_ = lanes
    previous = device.activate(a.queue)
    a.queue.launch("bad", fails)
    device.restore(previous)
    point = ticket(a)
    with pytest.raises(GraphdockError, match="no"):
        a.fence()
    assert point.over
    a.fence()


def test_a_refused_wait_is_not_taken_for_one(device, lanes):
    a, b, _ = lanes
    point = ticket(a)
    device.faults.at(1, "refuse", "wait")
    with pytest.raises(GraphdockError, match=r"wait for lane \d+ of queued:0"):
        b.follow({point})
    assert b.seen == {}
    b.follow({point})
    assert waits(device) == 2


def test_a_refused_record_makes_no_ticket(device, lanes):
    a, *_ = lanes
    device.faults.at(1, "refuse", "record")
    with pytest.raises(GraphdockError):
        ticket(a)
    assert a.count == 0 and ticket(a).number == 1


def test_a_lost_device_is_told_by_a_fence(device, lanes):
    device.lose()
    with pytest.raises(DeviceLostError):
        lanes[0].fence()


class Flight:
    pass


def test_instances_share_lanes_and_keep_off_those_with_a_step_in_flight(device):
    first, second = shared_lane(device, 1), shared_lane(device, 1)
    assert first is not second and len(device._turns) == 2
    assert shared_lane(device, 1) is first, "no more than the device wants"
    first.flight = Flight()
    unshare([second])
    assert shared_lane(device, 1) is second
    first.flight = None
    assert shared_lane(device, 1) is second and len(device._turns) == 2
    third = shared_lane(device, 3)
    assert third not in (first, second), "a session wants more"
    unshare([third])
    assert shared_lane(device, 1) is third
