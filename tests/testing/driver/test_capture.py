"""Capture: nothing runs, what is frozen and what is not, all that is refused, and branches."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from graphdock.contracts import dtypes
from graphdock.errors import DeviceLostError, FailedPreconditionError
from graphdock_testing.driver import races
from graphdock_testing.driver.faults import DriverError


@pytest.fixture
def q(bench):
    return bench.on(bench.q)


def test_nothing_runs_while_it_is_recorded_and_each_replay_runs_all(bench, q):
    x = bench.buffer(1)
    calls = []

    def body():
        calls.append(1)
        bench.add(q, x, x)
        bench.add(q, x, x, 10)

    replay = q.capture(body)
    q.synchronize()
    assert (calls, q.pending, x.array.tolist()) == ([1], 0, [1.0] * 4)
    for count in (1, 2, 3):
        replay()
        assert q.pending == 1
        q.synchronize()
        assert x.array.tolist() == [1.0 + 11 * count] * 4
    assert calls == [1]
    assert (bench.device.launches, bench.device.replays) == (2, 3)


def test_a_replay_has_its_place_in_the_order_of_the_queue(bench, q):
    x, y, z = bench.buffer(1), bench.buffer(0), bench.buffer(0)
    replay = q.capture(lambda: bench.add(q, x, y))
    bench.add(q, x, x, 4)
    replay()
    bench.add(q, y, z)
    bench.add(q, x, x, 100)
    q.synchronize()
    assert (y.array[0], z.array[0]) == (6, 7)


def test_memory_is_read_at_the_replay_and_arguments_of_launches_were_frozen(bench, q):
    x, slot, got = bench.buffer(), bench.slot(), bench.slot()
    amount = np.ones(4, np.float32)

    def body():
        q.from_host(slot, x)
        frozen, array = amount.copy(), x.array
        q.launch("add", lambda: np.add(array, frozen, out=array), [x], [x])
        q.to_host(x, got)

    replay = q.capture(body)
    amount[...] = 99
    for value in (1, 2):
        slot[...] = value
        replay()
        assert np.isnan(got).all()
        q.synchronize()
        assert got.tolist() == [value + 1.0] * 4
        assert np.isnan(slot).all()


def test_step_arguments_are_read_at_the_replay(bench, q):
    x = bench.buffer()
    block, array = q.arguments, x.array
    replay = q.capture(
        lambda: q.launch("load", lambda: np.copyto(array, block.array[:16].view(np.float32)), [block], [x])
    )
    for value in (3.0, 4.0):
        data = bytearray(np.full(4, value, np.float32).tobytes())
        q.set_arguments(data)
        data[:] = b"\xff" * 16  # free at return
        replay()
        q.synchronize()
        assert x.array.tolist() == [value] * 4


REFUSED = {
    "allocate": lambda b: b.q.allocate(8),
    "empty": lambda b: b.q.empty(dtypes.float32, (2,)),
    "free": lambda b: b.q.free(b.storage),
    "set_arguments": lambda b: b.q.set_arguments(b"1"),
    "fence": lambda b: b.q.synchronize(),
    "fence of another queue": lambda b: b.r.synchronize(),
    "settle": lambda b: b.q.settle(),
    "fence of the device": lambda b: b.device.synchronize(),
    "query": lambda b: b.device.passed(b.event),
    "wait of the host": lambda b: b.device.wait_host(b.event),
    "device memory": lambda b: b.device.allocate(8),
    "staging memory": lambda b: b.device.staging(8),
    "the device's own copies": lambda b: b.device.copy(b.x, b.y),
    "the device's own empty": lambda b: b.device.empty(dtypes.float32, (2,)),
    "an event from outside": lambda b: b.q.wait(b.event),
    "an event of another queue": lambda b: b.q.wait(b.r.record()),
    "an event never recorded": lambda b: b.q.wait(b.r.event()),
    "work of another queue": lambda b: b.on(b.r).copy(b.x, b.y),
    "capture": lambda b: b.q.capture(lambda: None),
    "capture on another queue": lambda b: b.on(b.r).capture(lambda: None),
    "a replay": lambda b: b.replay(),
}


@pytest.mark.parametrize("what", REFUSED)
@pytest.mark.parametrize("swallowed", [False, True])
def test_refused_within_a_recording(bench, q, what, swallowed):
    bench.x, bench.y = bench.buffer(1), bench.buffer(2)
    bench.storage = q.allocate(8)
    bench.event = q.record()
    bench.replay = q.capture(lambda: bench.add(q, bench.x, bench.x))
    bench.device.queue  # noqa: B018 - the private queue exists before
    q.synchronize()

    def body():
        bench.add(q, bench.x, bench.y)
        try:
            REFUSED[what](bench)
        except FailedPreconditionError:
            if not swallowed:
                raise

    with pytest.raises(FailedPreconditionError, match="never recorded" if "never" in what else "while .* records"):
        q.capture(body)
    bench.device.activate(q)
    # all works again, and nothing of it was kept
    bench.add(q, bench.x, bench.y, 5)
    q.synchronize()
    assert bench.y.array.tolist() == [6.0] * 4
    assert q.capture(lambda: bench.add(q, bench.x, bench.y)) is not None


def test_an_error_of_the_body_passes_and_nothing_is_kept(bench, q):
    x = bench.buffer(1)

    def body():
        bench.add(q, x, x)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        q.capture(body)
    bench.add(q, x, x)
    q.synchronize()
    assert x.array.tolist() == [2.0] * 4


def test_an_event_recorded_within_means_nothing_outside(bench, q):
    kept = []
    q.capture(lambda: kept.append(q.record()))
    with pytest.raises(FailedPreconditionError, match="within a captured segment"):
        bench.r.wait(kept[0])
    with pytest.raises(FailedPreconditionError, match="within a captured segment"):
        bench.device.passed(kept[0])
    q.record(kept[0])
    bench.r.wait(kept[0])
    bench.r.synchronize()


def forked(bench, *, joined=True, work=True):
    """A body with a branch on the second queue."""
    q, r = bench.q, bench.r
    x, y, z = bench.buffer(1), bench.buffer(0), bench.buffer(0)

    def body():
        bench.add(q, x, x)
        r.wait(q.record())
        if work:
            bench.add(r, x, y, 10)
        if joined:
            q.wait(r.record())
        bench.add(q, y, z, 100)

    return body, x, z


@pytest.mark.parametrize("seed", range(6))
def test_a_branch_is_recorded_and_replayed_with_its_order(make_bench, seed):
    bench = make_bench(seed, None)
    q = bench.on(bench.q)
    body, x, z = forked(bench)
    replay = q.capture(body)
    bench.on(q)
    assert bench.r.pending == 0
    with races.check(bench.device):
        for value in (2.0, 3.0):
            replay()
            bench.r.synchronize()
            q.synchronize()
            assert (x.array[0], z.array[0]) == (value, value + 110)


def test_a_branch_that_is_not_joined_is_refused(bench, q):
    body, _, _ = forked(bench, joined=False)
    with pytest.raises(FailedPreconditionError, match=r"before chip:0/queue:1 was joined"):
        q.capture(body)
    bench.on(bench.r)
    bench.add(bench.r, bench.buffer(), bench.buffer())  # both queues are free again
    bench.r.synchronize()


def test_a_branch_joined_before_its_last_work_is_not_joined(bench, q):
    x, y = bench.buffer(1), bench.buffer(0)

    def body():
        bench.r.wait(q.record())
        early = bench.r.record()
        bench.add(bench.r, x, y)
        q.wait(early)

    with pytest.raises(FailedPreconditionError, match="was joined"):
        q.capture(body)


def test_a_branch_joined_through_a_third_queue_is_joined(bench, q):
    third, x, y = bench.device.new_queue(), bench.buffer(1), bench.buffer(0)

    def body():
        bench.r.wait(q.record())
        bench.add(bench.r, x, y)
        third.wait(bench.r.record())
        q.wait(third.record())

    assert q.capture(body) is not None


def test_a_branch_without_work_needs_no_join(bench, q):
    body, _, _ = forked(bench, joined=False, work=False)
    assert q.capture(body) is not None


def test_other_threads_work_meanwhile_on_queues_of_their_own(bench, q):
    x, y, other = bench.buffer(1), bench.buffer(1), []

    def beside():
        bench.add(bench.r, y, y)
        bench.r.synchronize()
        bench.device.restore(None)
        try:
            bench.add(q, x, x)
        except FailedPreconditionError as error:
            other.append(str(error))

    def body():
        bench.add(q, x, x)
        thread = threading.Thread(target=beside)
        thread.start()
        thread.join()

    replay = q.capture(body)
    assert y.array.tolist() == [2.0] * 4
    assert len(other) == 1 and "another thread is using" in other[0]
    replay()
    q.synchronize()
    assert x.array.tolist() == [2.0] * 4


def test_memory_dropped_within_is_freed_afterwards(bench, q):
    held = bench.device.in_use
    kept = [q.empty(dtypes.float32, (4,))]

    def body():
        pending = q.pending
        kept.clear()
        bench.add(q, x, x)
        assert q.pending == pending

    x = bench.buffer(1)
    q.capture(body)
    assert bench.device.in_use == held + 16


def test_a_replay_that_points_at_memory_given_back_is_refused(bench, q):
    x = q.empty(dtypes.float32, (4,))
    replay = q.capture(lambda: bench.add(q, x, x))
    replay()
    q.synchronize()
    q.free(x.storage)
    with pytest.raises(FailedPreconditionError, match="points at memory that was given back"):
        replay()
    assert q.pending == 1  # the poison


def test_a_replay_needs_its_queue_to_be_current(bench, q):
    x = bench.buffer(1)
    replay = q.capture(lambda: bench.add(q, x, x))
    bench.on(bench.r)
    with pytest.raises(FailedPreconditionError, match="while chip:0/queue:1 is current"):
        replay()


def test_faults_of_replays_and_of_what_is_recorded(bench, q):
    x, faults = bench.buffer(1), bench.device.faults
    replay = q.capture(lambda: bench.add(q, x, x, what="k"))
    faults.reset()
    faults.at(1)
    with pytest.raises(DriverError, match="refused a segment of 1"):
        replay()
    faults.reset()
    faults.at(1, "fail")
    replay()
    with pytest.raises(DriverError, match="a segment of 1 on chip:0/queue:0 failed when it ran"):
        q.synchronize()
    replay()
    q.synchronize()
    assert x.array.tolist() == [2.0] * 4
    faults.reset()
    faults.at(1, "fail", kind="launch")
    failing = q.capture(lambda: bench.add(q, x, x, what="k"))
    failing()
    with pytest.raises(DriverError, match="k failed when it ran"):
        q.synchronize()
    failing()
    q.synchronize()  # a fault is one of one call
    faults.reset()
    faults.at(1, "refuse", kind="capture")
    with pytest.raises(DriverError, match="refused a segment"):
        q.capture(lambda: pytest.fail("called"))
    faults.reset()
    faults.at(1, "lose")
    replay()
    with pytest.raises(DeviceLostError):
        q.synchronize()


def test_the_first_error_of_a_segment_is_raised_and_the_rest_of_it_runs(bench, q):
    x = bench.buffer(1)

    def body():
        q.launch("bad", lambda: 1 / 0, [x], [x])
        bench.add(q, x, x)

    q.capture(body)()
    with pytest.raises(ZeroDivisionError):
        q.synchronize()
    assert x.array.tolist() == [2.0] * 4


def test_races_of_a_segment_with_another_queue_are_found_at_each_replay(bench, q):
    x, y = bench.buffer(1), bench.buffer(0)
    replay = q.capture(lambda: bench.add(q, x, y, what="recorded"))
    with races.watch(bench.device) as report:
        replay()
        q.synchronize()
        assert not report.races
        replay()
        bench.add(bench.r, y, y, what="beside")
    assert {(r.first.what, r.second.what) for r in report.races} == {("recorded", "beside")}
