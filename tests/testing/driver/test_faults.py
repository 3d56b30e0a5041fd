"""Injected faults: which call they hit, and what refused, failing and lost mean on a device."""

from __future__ import annotations

import numpy as np
import pytest
from graphdock.contracts import dtypes
from graphdock.errors import DeviceLostError, InvalidArgumentError, ResourceExhaustedError
from graphdock_testing.driver.faults import DriverError, Faults

# -- counting


def test_calls_are_counted_from_one_and_by_kind():
    faults = Faults()
    for kind in ("launch", "copy", "launch"):
        assert faults.call(kind, "x") is None
    assert (faults.calls, faults.by_kind) == (3, {"launch": 2, "copy": 1})
    faults.reset()
    assert (faults.calls, faults.by_kind) == (0, {})


def test_a_fault_hits_one_call_by_number_or_by_number_of_its_kind():
    faults = Faults()
    faults.at(2)
    faults.at(2, "lose", kind="launch")
    faults.call("launch", "a")
    with pytest.raises(DriverError, match=r"refused b \(call 2, copy\)"):
        faults.call("copy", "b")
    assert faults.call("launch", "c") == "lose"
    assert faults.call("launch", "d") is None
    assert [(f.number, f.kind, f.how, f.what) for f in faults.happened] == [
        (2, "copy", "refuse", "b"),
        (3, "launch", "lose", "c"),
    ]


def test_a_call_that_was_made_can_not_be_armed():
    faults = Faults()
    faults.call("launch", "a")
    with pytest.raises(InvalidArgumentError, match="made already"):
        faults.at(1)
    with pytest.raises(InvalidArgumentError, match="made already"):
        faults.at(1, kind="launch")
    faults.at(1, kind="copy")
    with pytest.raises(InvalidArgumentError, match="no such fault"):
        faults.at(9, "explode")
    with pytest.raises(InvalidArgumentError, match="no such fault"):
        faults.at(9, kind="fence")


def test_memory_runs_out_where_memory_is_asked_for():
    faults = Faults()
    for number, kind in enumerate(("allocate", "staging"), 1):
        faults.at(number)
        with pytest.raises(ResourceExhaustedError, match="there is no memory for 8 bytes"):
            faults.call(kind, "8 bytes")


@pytest.mark.parametrize("kind", ["allocate", "staging", "record", "wait", "capture"])
def test_what_queues_no_work_is_refused_where_it_was_to_fail(kind):
    faults = Faults()
    faults.at(1, "fail")
    with pytest.raises((DriverError, ResourceExhaustedError)):
        faults.call(kind, "x")


def test_random_faults_follow_their_seed_until_the_reset():
    def hit(seed):
        faults = Faults()
        faults.randomly(0.3, seed, ("fail",))
        return [faults.call("launch", "x") for _ in range(40)]

    assert hit(1) == hit(1)
    assert hit(1) != hit(2)
    assert 2 < hit(1).count("fail") < 25
    faults = Faults()
    faults.randomly(1.0, 0)
    faults.reset()
    assert faults.call("launch", "x") is None


# -- on a device


def step(bench):
    """One of every call; returns what the host gets."""
    q, r, device = bench.q, bench.r, bench.device
    slot, got = bench.slot(), bench.slot()
    slot[...] = 1
    try:
        bench.on(q).set_arguments(b"12345678")
        x = q.empty(dtypes.float32, (4,))
        y = q.empty(dtypes.float32, (4,))
        q.from_host(slot, x)
        bench.add(q, x, y)
        event = q.record()
        r.wait(event)
        bench.add(r, y, y, 10)
        q.wait(r.record())
        bench.on(q).to_host(y, got)
    finally:
        for queue in (q, r):
            device.activate(queue)
            queue.synchronize()
    return got.copy().tolist()


CALLS = "arguments allocate allocate copy launch record wait launch record wait copy".split()


def test_the_step_of_these_tests_makes_every_call(bench):
    bench.device.faults.reset()
    assert step(bench) == [12.0] * 4
    assert bench.device.faults.calls == len(CALLS)
    assert bench.device.faults.by_kind == {k: CALLS.count(k) for k in set(CALLS)}


@pytest.mark.parametrize("how", ["refuse", "fail"])
@pytest.mark.parametrize("number", range(1, len(CALLS) + 1))
def test_a_refused_or_failing_call_fails_its_step_and_no_other(bench, number, how):
    step(bench)
    held = bench.device.in_use
    bench.device.faults.reset()
    bench.device.faults.at(number, how)
    late = how == "fail" and CALLS[number - 1] in ("arguments", "copy", "launch")
    error = ResourceExhaustedError if CALLS[number - 1] == "allocate" else DriverError
    with pytest.raises(error, match="failed when it ran" if late else None):
        step(bench)
    assert [f.number for f in bench.device.faults.happened] == [number]
    assert bench.device.pending == 0
    for _ in range(2):
        assert step(bench) == [12.0] * 4
    assert bench.device.in_use == held


@pytest.mark.parametrize("number", range(1, len(CALLS) + 1))
def test_a_lost_device_stays_lost(bench, number):
    bench.device.faults.at(number, "lose")
    with pytest.raises(DeviceLostError, match="chip:0 is lost: .* broke it"):
        step(bench)
    with pytest.raises(DeviceLostError):
        step(bench)
    assert bench.device.pending == 0


def test_work_after_failing_work_runs_on_what_that_left(bench):
    x, y, z = bench.buffer(1), bench.buffer(0), bench.buffer(0)
    bench.device.faults.at(1, "fail", kind="launch")
    bench.add(bench.q, x, y, what="first")
    bench.add(bench.q, y, z, what="second")
    bench.add(bench.q, x, x, what="third")
    with pytest.raises(DriverError, match="first failed when it ran"):
        bench.q.synchronize()
    assert np.isnan(z.array).all()
    assert x.array.tolist() == [2.0] * 4
    bench.q.synchronize()  # the error was taken


def test_the_first_of_several_errors_is_raised_and_only_at_its_queue_s_fence(bench):
    x = bench.buffer(1)
    bench.device.faults.at(1, "fail", kind="launch")
    bench.device.faults.at(2, "fail", kind="launch")
    bench.add(bench.q, x, x, what="first")
    bench.add(bench.q, x, x, what="second")
    event = bench.q.record()
    bench.r.wait(event)
    bench.r.synchronize()
    bench.device.wait_host(event)
    bench.device.synchronize()
    assert bench.device.passed(event)
    with pytest.raises(DriverError, match="first failed"):
        bench.q.synchronize()
    bench.q.synchronize()


def test_the_error_of_a_kernel_is_what_blame_makes_of_it(bench):
    x = bench.buffer(1)

    def run():
        raise ZeroDivisionError("by zero")

    bench.on(bench.q).launch("k", run, [x], [x], blame=lambda error: ValueError(f"node n: {error}"))
    with pytest.raises(ValueError, match="node n: by zero") as caught:
        bench.q.synchronize()
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    bench.device.faults.reset()
    bench.device.faults.at(1, "fail")
    bench.q.launch("k", lambda: None, [x], [x], blame=lambda error: ValueError(f"node n: {error}"))
    with pytest.raises(ValueError, match="node n: k failed when it ran"):
        bench.q.synchronize()
