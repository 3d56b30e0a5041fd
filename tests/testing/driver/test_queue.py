"""Queues: late, ordered by events alone, one thread and one current queue at a time."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from graphdock.contracts import DeviceInfo
from graphdock.errors import FailedPreconditionError, InvalidArgumentError
from graphdock_testing.driver.device import Driver, DriverDevice


def test_nothing_runs_until_something_waits(bench):
    x, y, slot = bench.buffer(1), bench.buffer(0), bench.slot()
    bench.add(bench.q, x, y)
    bench.q.to_host(y, slot)
    event = bench.q.record()
    bench.r.wait(event)
    assert (bench.device.launches, bench.device.waits, bench.device.pending) == (1, 0, 3)
    assert y.array.tolist() == [0.0] * 4
    bench.q.synchronize()
    assert (bench.device.waits, bench.q.pending) == (1, 0)
    assert slot.tolist() == [2.0] * 4


def test_or_until_the_scheduler_is_stepped(bench):
    x = bench.buffer(1)
    bench.add(bench.q, x, x)
    assert bench.driver.scheduler.step()
    assert x.array.tolist() == [2.0] * 4


def test_without_an_event_another_queue_reads_too_early(bench):
    x, y, z = bench.buffer(1), bench.buffer(0), bench.buffer(0)
    bench.add(bench.q, x, y)
    bench.add(bench.r, y, z)
    bench.r.synchronize()
    assert z.array.tolist() == [1.0] * 4


def test_with_one_it_does_not(bench):
    x, y, z = bench.buffer(1), bench.buffer(0), bench.buffer(0)
    bench.add(bench.q, x, y)
    bench.r.wait(bench.q.record())
    bench.add(bench.r, y, z)
    bench.r.synchronize()
    assert z.array.tolist() == [3.0] * 4
    assert bench.q.pending == 0


def test_some_seed_shows_a_missing_event_and_some_hides_it(make_bench):
    seen = set()
    for seed in range(30):
        bench = make_bench(seed, None)
        x, y, z = bench.buffer(1), bench.buffer(0), bench.buffer(0)
        bench.add(bench.q, x, y)
        bench.add(bench.r, y, z)
        bench.r.synchronize()
        seen.add(float(z.array[0]))
    assert seen == {1.0, 3.0}


def test_a_wait_means_the_latest_record_and_keeps_it(bench):
    x, y = bench.buffer(0), bench.buffer(0)
    event = bench.q.event()
    bench.q.record(event)
    bench.add(bench.q, x, x, 1)
    assert bench.q.record(event) is event
    bench.r.wait(event)
    bench.add(bench.q, x, x, 10)
    bench.q.record(event)  # the wait that is queued keeps the earlier point
    bench.add(bench.r, x, y, 0)
    bench.r.synchronize()
    assert y.array.tolist() == [1.0] * 4
    assert bench.q.pending == 1


def test_an_event_that_was_never_recorded_is_reported(bench):
    event = bench.q.event()
    with pytest.raises(FailedPreconditionError, match="never recorded"):
        bench.r.wait(event)
    with pytest.raises(FailedPreconditionError, match="never recorded"):
        bench.device.passed(event)
    with pytest.raises(FailedPreconditionError, match="never recorded"):
        bench.device.wait_host(event)


def test_events_belong_to_their_queue_and_driver(bench):
    with pytest.raises(InvalidArgumentError, match="not its own"):
        bench.q.record(bench.r.event())
    stranger = DriverDevice(DeviceInfo("other"), Driver()).new_queue()
    with pytest.raises(InvalidArgumentError, match="of another driver"):
        bench.q.wait(stranger.record())
    with pytest.raises(InvalidArgumentError, match="of another driver"):
        bench.q.wait("an event")
    with pytest.raises(InvalidArgumentError, match="is not of chip:0"):
        bench.device.passed(stranger.record())


CALLS = {
    "launch": lambda q, b: q.launch("k", lambda: None),
    "copy": lambda q, b: q.copy(b.x, b.y),
    "from_host": lambda q, b: q.from_host(b.s, b.x),
    "to_host": lambda q, b: q.to_host(b.x, b.s),
    "allocate": lambda q, b: q.allocate(8),
    "set_arguments": lambda q, b: q.set_arguments(b"1"),
    "capture": lambda q, b: q.capture(lambda: None),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("current", ["another", "none"])
def test_what_queues_work_needs_its_queue_to_be_current_on_the_thread(bench, call, current):
    bench.x, bench.y, bench.s = bench.buffer(1), bench.buffer(1), bench.slot()
    if current == "another":
        bench.on(bench.r)
        CALLS[call](bench.r, bench)
    with pytest.raises(FailedPreconditionError, match="while (no queue|chip:0/queue:1) is current on this thread"):
        CALLS[call](bench.q, bench)
    assert bench.q.pending == 0


def test_events_fences_and_frees_do_not(bench):
    storage = bench.on(bench.q).allocate(8)
    bench.device.restore(None)
    bench.r.wait(bench.q.record())
    bench.q.free(storage)
    bench.q.synchronize()
    assert bench.driver.current is None and bench.q.pending == 0


def test_what_is_current_is_so_per_thread(bench):
    bench.on(bench.q)
    seen = []

    def work():
        seen.append(bench.driver.current)
        bench.on(bench.r)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [None]
    assert bench.driver.current is bench.q


def test_two_threads_on_one_queue_are_told_so(bench):
    x, inside, leave, errors = bench.buffer(1), threading.Event(), threading.Event(), []

    def slow():
        inside.set()
        leave.wait()

    bench.on(bench.q).launch("slow", slow)
    first = threading.Thread(target=bench.q.synchronize)
    first.start()
    inside.wait()
    try:
        bench.q.copy(x, x)
    except FailedPreconditionError as error:
        errors.append(str(error))
    finally:
        leave.set()
        first.join()
    assert len(errors) == 1 and "which another thread is using" in errors[0]
    bench.q.copy(x, x)  # one after the other is fine
    bench.q.synchronize()


def test_a_copy_is_of_like_buffers_of_this_memory(bench):
    bench.on(bench.q)
    with pytest.raises(InvalidArgumentError, match="unlike buffers"):
        bench.q.copy(bench.buffer(size=4), bench.buffer(size=5))
    with pytest.raises(InvalidArgumentError, match="unlike buffers"):
        bench.q.from_host(bench.slot().view(np.int32), bench.buffer())
    other = DriverDevice(DeviceInfo("other"), bench.driver)
    foreign = other.view(other.allocate(16), 0, *_floats())
    with pytest.raises(InvalidArgumentError, match="not a buffer of its memory"):
        bench.q.copy(foreign, bench.buffer())
    with pytest.raises(InvalidArgumentError, match="not a buffer of its memory"):
        bench.q.launch("k", lambda: None, [foreign])


def _floats():
    from graphdock.contracts import dtypes

    return dtypes.float32, (4,)


def test_a_strided_source_is_copied(bench):
    from graphdock_testing.driver.memory import Buffer

    x, y = bench.buffer(size=8), bench.buffer()
    x.array[...] = np.arange(8)
    bench.on(bench.q).copy(Buffer(x.storage, x.array[::2]), y)
    bench.q.synchronize()
    assert y.array.tolist() == [0, 2, 4, 6]


def test_step_arguments_lie_at_one_address_and_are_limited(bench):
    extent = bench.device.extent(bench.q.arguments)
    assert extent[1] == bench.device.argument_bytes
    bench.on(bench.q).set_arguments(b"abc")
    bench.q.set_arguments(memoryview(b"AB"))
    assert bytes(bench.q.arguments.array[:3]) == b"\xff\xff\xff"
    bench.q.synchronize()
    assert bytes(bench.q.arguments.array[:4]) == b"ABc\xff"
    assert bench.device.extent(bench.q.arguments) == extent
    assert bench.device.extent(bench.r.arguments) != extent
    with pytest.raises(InvalidArgumentError, match="too long"):
        bench.q.set_arguments(bytes(bench.device.argument_bytes + 1))


def test_settling_waits_but_is_no_fence(bench):
    x = bench.buffer(1)

    def fail():
        raise ValueError("mine")

    bench.on(bench.q).launch("bad", fail)
    bench.add(bench.q, x, x)
    bench.q.settle()
    assert x.array.tolist() == [2.0] * 4
    with pytest.raises(ValueError, match="mine"):
        bench.q.synchronize()


def test_a_measurement_runs_the_work_alone(bench):
    x = bench.buffer(1)
    bench.on(bench.q)
    assert bench.q.measure(lambda: bench.add(bench.q, x, x)) >= 0
    assert x.array.tolist() == [2.0] * 4
