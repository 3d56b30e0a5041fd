"""A stream slot: its fences, what its queue waits for and no more, and which stream slot an instance gets."""

from __future__ import annotations

import pytest
from graphdock.errors import DeviceLostError, GraphdockError
from graphdock.plugin.host import Host
from graphdock_executor.stream_slot import StreamSlot, shared_stream_slot, unshare
from graphdock_testing import queued


@pytest.fixture
def device():
    host = Host()
    yield queued.install(host, seed=0, laziness=1.0)
    host.close()


@pytest.fixture
def stream_slots(device, monkeypatch):
    monkeypatch.setattr(device, "passed", lambda event: False)  # nothing passes by itself
    return [StreamSlot(device) for _ in range(3)]


def record(stream_slot):
    return stream_slot.record(stream_slot.queue.event())


def waits(device):
    return device.faults.by_kind["wait"]


def test_a_stream_slot_waits_for_others_and_not_for_itself(device, stream_slots):
    a, b, _ = stream_slots
    first, own = record(a), record(b)
    b.follow({first, own})
    assert waits(device) == 1
    b.follow({first})
    assert waits(device) == 1, "it waits already"
    b.follow({record(a)})
    assert waits(device) == 2


def test_one_wait_stands_for_what_the_other_stream_slot_waited_for(device, stream_slots):
    a, b, c = stream_slots
    first = record(a)
    b.follow({first})
    second = record(b)
    c.follow({first, second})
    assert waits(device) == 2 and c.seen == {a: 1, b: 1}
    late = record(a)  # after b had looked
    c.follow({late, record(b)})
    assert waits(device) == 4


def test_a_fence_tells_the_host_of_all_that_the_queue_waited_for(device, stream_slots):
    a, b, c = stream_slots
    first = record(a)
    b.follow({first})
    second = record(b)
    b.synchronize()
    assert first.over and second.over
    c.follow({first, second})
    assert waits(device) == 1


def test_a_failing_fence_ends_the_work_too(device, stream_slots):
    def fails():
        raise ValueError("no")

    a, *_ = stream_slots
    previous = device.activate(a.queue)
    a.queue.launch("bad", fails)
    device.restore(previous)
    point = record(a)
    with pytest.raises(GraphdockError, match="no"):
        a.synchronize()
    assert point.over
    a.synchronize()


def test_a_refused_wait_is_not_taken_for_one(device, stream_slots):
    a, b, _ = stream_slots
    point = record(a)
    device.faults.at(1, "refuse", "wait")
    with pytest.raises(GraphdockError, match=r"wait for stream slot \d+ of queued:0"):
        b.follow({point})
    assert b.seen == {}
    b.follow({point})
    assert waits(device) == 2


def test_a_refused_record_makes_no_fence(device, stream_slots):
    a, *_ = stream_slots
    device.faults.at(1, "refuse", "record")
    with pytest.raises(GraphdockError):
        record(a)
    assert a.count == 0 and record(a).number == 1


def test_a_lost_device_is_an_error_of_the_fence(device, stream_slots):
    device.lose()
    with pytest.raises(DeviceLostError):
        stream_slots[0].synchronize()


class InFlight:
    pass


def test_instances_share_lanes_and_keep_off_those_with_a_step_in_flight(device):
    first, second = shared_stream_slot(device, 1), shared_stream_slot(device, 1)
    assert first is not second and len(device._slots) == 2
    assert shared_stream_slot(device, 1) is first, "no more than the device wants"
    first.in_flight = InFlight()
    unshare([second])
    assert shared_stream_slot(device, 1) is second
    first.in_flight = None
    assert shared_stream_slot(device, 1) is second and len(device._slots) == 2
    third = shared_stream_slot(device, 3)
    assert third not in (first, second), "a session wants more"
    unshare([third])
    assert shared_stream_slot(device, 1) is third
