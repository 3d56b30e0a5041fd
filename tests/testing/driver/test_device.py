"""The fake device: its own copies, what is current, queries, shared memory, and a loss that sticks."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from graphdock.contracts import DeviceInfo, dtypes
from graphdock.errors import DeviceLostError, InvalidArgumentError
from graphdock_testing.driver import races
from graphdock_testing.driver.device import Driver, DriverDevice


def test_its_own_copies_are_fenced_and_leave_what_is_current(bench):
    bench.on(bench.r)
    x, y, got = bench.buffer(), bench.buffer(), np.empty(4, np.float32)
    with races.check(bench.device):
        bench.device.from_host(np.arange(4, dtype=np.float32), x)
        bench.device.copy(x, y)
        bench.device.to_host(y, got)
    assert got.tolist() == [0, 1, 2, 3]
    assert bench.driver.current is bench.r
    assert bench.device.pending == 0


def test_they_do_not_wait_for_other_queues(bench):
    x, y, got = bench.buffer(1), bench.buffer(0), np.empty(4, np.float32)
    bench.add(bench.q, x, y)
    with races.watch(bench.device):
        bench.device.to_host(y, got)
    assert got.tolist() == [0.0] * 4
    assert bench.q.pending == 1


def test_activate_and_restore_nest(bench):
    outer = bench.device.activate(bench.q)
    inner = bench.device.activate(bench.r)
    assert bench.driver.current is bench.r
    bench.device.restore(inner)
    assert bench.driver.current is bench.q
    bench.device.restore(outer)
    assert bench.driver.current is None
    bench.device.restore("a stream of another library")
    assert bench.device.activate(bench.q) == "a stream of another library"
    bench.device.activate()
    assert bench.driver.current is bench.device.queue
    other = DriverDevice(DeviceInfo("chip", 1), bench.driver)
    with pytest.raises(InvalidArgumentError, match="not its own"):
        other.activate(bench.q)


def test_a_query_never_waits_and_time_passes(make_bench):
    """It never runs all that is left in one go, and in the end the work is done."""
    answers = []
    for seed in range(10):
        bench = make_bench(seed)
        x = bench.buffer(1)
        for _ in range(20):
            bench.add(bench.q, x, x)
        event = bench.q.record()
        waits = bench.device.waits
        asked = 1
        while not bench.device.passed(event):
            asked += 1
        answers.append(asked)
        assert x.array.tolist() == [21.0] * 4
        assert bench.device.waits == waits
    assert min(answers) >= 10


def test_waiting_for_an_event_stops_there(bench):
    x = bench.buffer(1)
    bench.add(bench.q, x, x)
    event = bench.q.record()
    bench.add(bench.q, x, x)
    bench.device.wait_host(event)
    assert (bench.q.pending, x.array[0]) == (1, 2.0)


def test_synchronize_waits_for_every_queue(bench):
    x, y = bench.buffer(1), bench.buffer(1)
    bench.add(bench.q, x, x)
    bench.add(bench.r, y, y)
    bench.device.synchronize()
    assert bench.device.pending == 0


def test_it_is_a_fence_for_the_checker_also_of_queues_whose_work_is_done(make_bench):
    bench = make_bench(laziness=0.0)
    x = bench.buffer(1)
    with races.check(bench.device):
        bench.add(bench.q, x, x)
        while bench.driver.scheduler.step():
            pass
        bench.device.synchronize()
        bench.add(bench.r, x, x)


def test_a_queue_goes_with_its_last_reference_and_its_memory_with_it(bench):
    held = bench.device.in_use
    queue = bench.device.new_queue()
    assert bench.device.in_use == held + bench.device.argument_bytes
    storage = bench.on(queue).allocate(100)
    queue.free(storage)
    queue.synchronize()
    bench.on(bench.q)
    del queue, storage
    assert bench.device.in_use == held
    assert bench.device.new_queue().name == "chip:0/queue:3"


def test_the_device_may_be_asked_from_any_thread(bench):
    event, errors = bench.q.record(), []

    def work():
        try:
            for _ in range(50):
                storage = bench.device.allocate(64)
                bench.device.view(storage, 0, dtypes.int8, (64,))
                assert bench.device.staging(64).nbytes == 64
                bench.device.passed(event)
                bench.device.wait_host(event)
                bench.device.synchronize()
                bench.device.from_host(np.ones(4, np.float32), bench.kept[0])
        except BaseException as error:  # noqa: BLE001 - looked at on the test's thread
            errors.append(error)

    bench.buffer(1)
    held = bench.device.in_use
    bench.device.queue  # noqa: B018 - the private queue, which has memory
    held += bench.device.argument_bytes
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert bench.device.in_use == held


def test_devices_of_one_driver_may_share_a_memory_space():
    driver = Driver(3)
    a, b = (DriverDevice(DeviceInfo("chip", i), driver, memory_space="shared") for i in range(2))
    x = a.empty(dtypes.float32, (2,))
    p, q = a.new_queue(), b.new_queue()
    with races.check(a, b):
        a.activate(p)
        array = x.array
        p.launch("fill", lambda: array.fill(3), [], [x])
        q.wait(p.record())
        b.activate(q)
        q.launch("add", lambda: np.add(array, 1, out=array), [x], [x])
        q.synchronize()
    assert x.array.tolist() == [4.0, 4.0]
    assert a.in_use == b.in_use
    with races.watch(a, b) as report:
        a.activate(p)
        p.launch("fill", lambda: array.fill(3), [], [x])
        b.activate(q)
        q.launch("add", lambda: np.add(array, 1, out=array), [x], [x])
    assert report.races


LATER = {
    "launch": lambda b: b.q.launch("k", lambda: None),
    "copy": lambda b: b.q.copy(b.x, b.x),
    "from_host": lambda b: b.q.from_host(b.s, b.x),
    "to_host": lambda b: b.q.to_host(b.x, b.s),
    "allocate": lambda b: b.q.allocate(8),
    "set_arguments": lambda b: b.q.set_arguments(b"1"),
    "capture": lambda b: b.q.capture(lambda: None),
    "replay": lambda b: b.replay(),
    "record": lambda b: b.q.record(),
    "wait": lambda b: b.r.wait(b.event),
    "fence": lambda b: b.q.synchronize(),
    "fence of another queue": lambda b: b.r.synchronize(),
    "fence of the device": lambda b: b.device.synchronize(),
    "query": lambda b: b.device.passed(b.event),
    "wait of the host": lambda b: b.device.wait_host(b.event),
    "device memory": lambda b: b.device.allocate(8),
    "staging": lambda b: b.device.staging(8),
    "activate": lambda b: b.device.activate(b.q),
    "its own copies": lambda b: b.device.copy(b.x, b.x),
}


@pytest.mark.parametrize("call", LATER)
@pytest.mark.parametrize("when", ["at once", "by work"])
def test_a_loss_surfaces_at_any_later_call_and_again(bench, call, when):
    bench.x, bench.s = bench.buffer(1), bench.slot()
    bench.on(bench.q)
    bench.replay = bench.q.capture(lambda: bench.q.copy(bench.x, bench.x))
    bench.event = bench.q.record()
    if when == "at once":
        bench.device.lose("pulled out")
    else:
        bench.device.faults.reset()
        bench.device.faults.at(1, "lose")
        bench.q.copy(bench.x, bench.x)
        assert bench.driver.scheduler.step()
    for _ in range(2):
        with pytest.raises(DeviceLostError, match="chip:0 is lost"):
            LATER[call](bench)


def test_cleaning_up_after_a_loss_raises_nothing(bench):
    storage = bench.on(bench.q).allocate(8)
    kept = bench.q.allocate(8)
    before = bench.device.in_use
    bench.device.lose()
    bench.q.free(storage)
    bench.device.restore(None)
    del kept
    assert bench.device.in_use == before - 16
    assert bench.device.pending == 0


def test_a_loss_is_of_one_device():
    driver = Driver()
    a, b = (DriverDevice(DeviceInfo("chip", i), driver) for i in range(2))
    p, q = a.new_queue(), b.new_queue()
    event = p.record()
    a.lose()
    q.wait(event)
    b.activate(q)
    q.launch("k", lambda: None)
    q.synchronize()  # what it waited for was done before
    assert not b.health.reason
