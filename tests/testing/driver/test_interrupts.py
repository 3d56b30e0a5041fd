"""Ctrl-C at any point of a step on the fake device: the driver's own state is whole afterwards, as a real driver's is."""

from __future__ import annotations

import signal
import sys
import threading

import pytest
from graphdock.contracts import dtypes
from graphdock_testing.driver.interrupts import HeldBack


def interrupted(function, at):
    """Call ``function``; at its ``at``-th point where Python looks for signals Ctrl-C is pressed. Whether it came so far."""
    seen = 0

    def hook(frame, event, arg):
        nonlocal seen
        if event in ("call", "c_return"):
            seen += 1
            if seen == at + 1:
                sys.setprofile(None)
                signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        sys.setprofile(hook)
        function()
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(None)
        signal.signal(signal.SIGINT, before)
    return seen > at


@pytest.fixture
def ctrl_c():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: signal.raise_signal(signal.SIGINT)
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_comes_at_the_end_of_the_block(ctrl_c):
    done = []
    with pytest.raises(KeyboardInterrupt), HeldBack():
        with HeldBack():
            ctrl_c()
            done.append("inner")
        done.append("outer")
    assert done == ["inner", "outer"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_is_lifted_is_interrupted_at_once(ctrl_c):
    done = []

    def body():
        ctrl_c()
        done.append("after")

    with pytest.raises(KeyboardInterrupt), HeldBack() as held:
        held.lifted(body)
    assert done == []


def test_other_threads_and_other_handlers_are_left_alone(ctrl_c):
    handlers = []

    def work():
        with HeldBack() as held:
            held.lifted(lambda: handlers.append(signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with HeldBack():
        handlers.append(signal.getsignal(signal.SIGINT))
    assert handlers == [signal.default_int_handler, signal.SIG_IGN]


@pytest.mark.slow
def test_a_driver_survives_an_interrupt_anywhere(make_bench):
    """Fence and go on: nothing is locked for another thread, nothing leaks, and the numbers are right."""
    bench = make_bench(1, None)
    q, r, device = bench.q, bench.r, bench.device
    x, y, slot = bench.buffer(1), bench.buffer(0), bench.slot()

    def step():
        device.activate(q)
        made = q.empty(dtypes.float32, (4,))
        bench.add(q, x, made)
        replay = q.capture(lambda: bench.add(q, made, y))
        replay()
        r.wait(q.record())
        device.activate(r)
        r.to_host(y, slot)
        r.synchronize()
        q.synchronize()

    def check():
        device.synchronize()
        step()
        assert slot.tolist() == [3.0] * 4

    step()
    held = device.in_use
    for at in range(5000):
        came_so_far = interrupted(step, at)
        q.synchronize()
        r.synchronize()
        failed = []

        def elsewhere(failed=failed):
            try:
                check()
            except BaseException as error:  # noqa: BLE001 - raised below, on the test's thread
                failed.append(error)

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        assert not failed, (at, failed)
        assert device.in_use == held
        if not came_so_far:
            assert at > 500
            return
    pytest.fail("the step does not end")
