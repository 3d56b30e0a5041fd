"""The fake driver's order: lateness, events, races, what a lost context says."""

from __future__ import annotations

import pytest
from graphdock_cuda.driver.errors import CudaError
from graphdock_cuda.testing.state import Misuse
from graphdock_testing.driver.detector import RaceError


def _two_streams(rig, ordered: bool) -> list[int]:
    """One stream fills memory, the other copies it out; with an event between them or without."""
    d = rig.driver
    other, event = d.stream(), d.event()
    memory = d.malloc(4, rig.s)
    out, seen = rig.pinned(4, "u1")
    d.fill(memory, 1, 4, rig.s)
    d.stream_synchronize(rig.s)
    d.fill(memory, 2, 4, rig.s)
    if ordered:
        d.event_record(event, rig.s)
        d.stream_wait(other, event)
    d.copy(out, memory, 4, other)
    d.stream_synchronize(other)
    return seen.tolist()


def test_streams_run_in_any_order_where_no_event_orders_them(rigs):
    found = set()
    for seed in range(12):
        rig = rigs(seed=seed)
        found.add(tuple(_two_streams(rig, ordered=False)))
        with pytest.raises(
            RaceError, match=r"copy d2h of 4 bytes .*reads, fill of 4 bytes .*writes, and nothing orders them"
        ):
            rig.driver.verify()
    assert found == {(1,) * 4, (2,) * 4}


def test_an_event_orders_streams(rigs):
    for seed in range(12):
        rig = rigs(seed=seed)
        assert _two_streams(rig, ordered=True) == [2] * 4
        rig.driver.verify()


def test_memory_that_another_stream_still_uses_may_not_be_freed(rig):
    """A real driver says nothing: the memory is somebody else's by then."""
    code = "GD_KERNEL(touch)(float* x) { x[threadIdx.x] = 1; }"
    d = rig.driver
    function, other, event = rig.kernel(code, "touch"), d.stream(), d.event()
    memory = d.malloc(128, rig.s)
    d.event_record(event, rig.s)
    d.stream_wait(other, event)
    rig.launch(function, memory, stream=other)
    d.free(memory, rig.s)
    with pytest.raises(RaceError, match="free .*writes, touch .*reads"):
        d.verify()


def test_memory_may_be_freed_behind_an_event_of_who_used_it(rig):
    code = "GD_KERNEL(touch)(float* x) { x[threadIdx.x] = 1; }"
    d = rig.driver
    function, other, event = rig.kernel(code, "touch"), d.stream(), d.event()
    memory = d.malloc(128, rig.s)
    for first, second in ((rig.s, other), (other, rig.s)):
        d.event_record(event, first)
        d.stream_wait(second, event)
        if second == other:
            rig.launch(function, memory, stream=other)
    d.free(memory, rig.s)
    d.verify()
    assert not d.detector.report.races


def test_new_memory_belongs_to_its_stream_until_another_is_ordered_behind(rig):
    d = rig.driver
    memory = d.malloc(128, rig.s)
    d.fill(memory, 0, 128, d.stream())
    with pytest.raises(RaceError, match="fill of 128 bytes .*malloc"):
        d.verify()


def test_pinned_memory_is_given_back_after_its_work(rig):
    d = rig.driver
    host, memory = d.host_alloc(8), d.malloc(8, rig.s)
    d.copy(memory, host, 8, rig.s)
    d.host_free(host)
    with pytest.raises(RaceError, match="host_free"):
        d.verify()


def test_events(rig):
    d = rig.driver
    event = d.event()
    assert d.event_query(event)  # never recorded
    d.event_synchronize(event)
    d.stream_wait(rig.s, event)
    memory = d.malloc(8, rig.s)
    d.fill(memory, 1, 8, rig.s)
    d.event_record(event, rig.s)
    d.event_synchronize(event)
    assert d.event_query(event)


def test_a_query_is_answered_no_for_a_while(rigs):
    answers = []
    for seed in range(10):
        rig = rigs(seed=seed)
        d, event = rig.driver, rig.driver.event()
        d.fill(d.malloc(8, rig.s), 1, 8, rig.s)
        d.event_record(event, rig.s)
        count = 0
        while not d.event_query(event):
            count += 1
        answers.append(count)
    assert max(answers) > 1


def test_a_wait_is_for_the_record_that_there_was(rig):
    d = rig.driver
    other, event = d.stream(), d.event()
    memory = d.malloc(4, rig.s)
    out, seen = rig.pinned(4, "u1")
    d.fill(memory, 1, 4, rig.s)
    d.event_record(event, rig.s)
    d.stream_wait(other, event)
    d.event_record(event, other)  # changes nothing for the wait
    d.copy(out, memory, 4, other)
    d.stream_synchronize(other)
    assert seen.tolist() == [1] * 4
    d.verify()


def test_elapsed_time_is_of_the_work_between(rig):
    d = rig.driver
    begin, end, plain = d.event(True), d.event(True), d.event()
    memory = d.malloc(8, rig.s)
    d.event_record(begin, rig.s)
    for _ in range(5):
        d.fill(memory, 1, 8, rig.s)
    d.event_record(end, rig.s)
    with pytest.raises(CudaError, match="not ready"):
        d.event_elapsed(begin, end)
    d.event_synchronize(end)
    assert d.event_elapsed(begin, end) == pytest.approx(5e-6)
    d.event_record(plain, rig.s)
    with pytest.raises(Misuse, match="without timing"):
        d.event_elapsed(begin, plain)


def test_a_lost_context_says_so_at_every_call(rigs):
    rig = rigs(gpus=2)
    d = rig.driver
    event, host, memory = d.event(), d.host_alloc(8), d.malloc(8, rig.s)
    d.fill(memory, 1, 8, rig.s)
    d.lose(0, 719, "dust")
    calls = [
        lambda: d.stream_synchronize(rig.s),
        lambda: d.malloc(8, rig.s),
        lambda: d.event(),
        lambda: d.event_query(event),
        lambda: d.fill(memory, 1, 8, rig.s),
        lambda: d.load(b""),
        lambda: d.device_synchronize(),
        lambda: d.free(memory, rig.s),
        lambda: d.stream_destroy(rig.s),
        lambda: d.event_destroy(event),
        lambda: d.host_free(host),
    ]
    for call in calls:
        with pytest.raises(CudaError, match="a kernel failed: dust|719") as caught:
            call()
        assert caught.value.status == 719
    assert not d.live
    d.set_device(1)
    other = d.stream()
    assert rig.driver.malloc(8, other)
    d.verify()


def test_a_kernel_that_fails_is_told_by_whatever_comes_later(rig):
    function = rig.kernel("GD_KERNEL(k)() { assert(gridDim.x == 2); }", "k")
    d = rig.driver
    event = d.event()
    rig.launch(function)
    d.event_record(event, rig.s)  # nobody knows yet
    with pytest.raises(CudaError, match="gridDim.x == 2") as caught:
        d.event_synchronize(event)
    assert caught.value.status == 710
    with pytest.raises(CudaError):
        d.malloc(8, rig.s)


def test_one_handle_is_one_thing_and_dies_once(rig):
    d = rig.driver
    event = d.event()
    d.event_destroy(event)
    for call in (d.event_destroy, d.event_query, d.event_synchronize):
        with pytest.raises(Misuse, match="event .* was destroyed|400"):
            call(event)
    assert d.event() != event


def test_work_of_a_destroyed_stream_still_runs(rig):
    d = rig.driver
    other = d.stream()
    memory = d.malloc(4, other)
    out, seen = rig.pinned(4, "u1")
    d.fill(memory, 3, 4, other)
    d.copy(out, memory, 4, other)
    d.stream_destroy(other)
    d.device_synchronize()
    assert seen.tolist() == [3] * 4


def test_waiting_for_the_device_is_waiting_for_destroyed_streams(rigs):
    """Whether their work ran before or runs then."""
    for seed in range(6):
        rig = rigs(seed=seed)
        d = rig.driver
        other, event, memory = d.stream(), d.event(), d.malloc(4, rig.s)
        d.stream_synchronize(rig.s)
        d.fill(memory, 3, 4, other)
        d.stream_destroy(other)
        d.event_record(event, rig.s)
        while not d.event_query(event):
            pass
        d.device_synchronize()
        d.free(memory, rig.s)
        d.verify()
        assert not d.detector.report.races


def test_events_belong_to_a_device(rigs):
    rig = rigs(gpus=2)
    d = rig.driver
    event = d.event()
    d.set_device(1)
    with pytest.raises(Misuse, match="an event of cuda:0 on cuda:1/stream:0"):
        d.event_record(event, d.stream())


def test_what_is_not_given_back_is_counted(rig):
    d = rig.driver
    d.stream(), d.event(), d.host_alloc(8), d.malloc(8, rig.s)
    rig.kernel("GD_KERNEL(k)() {}", "k")
    assert d.live == {"stream": 2, "event": 1, "module": 1, "block": 1, "pinned block": 1}
