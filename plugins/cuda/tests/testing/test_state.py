"""What the calls of the fake driver share."""

from __future__ import annotations

import contextlib

import pytest
from graphdock_cuda.driver.errors import CudaError
from graphdock_cuda.testing.state import Misuse


def test_misuse_that_was_swallowed_is_found(rig):
    with contextlib.suppress(CudaError):
        rig.driver.free(1, rig.s)
    with pytest.raises(Misuse, match="the begin of no block"):
        rig.driver.verify()


def test_handles_are_never_used_again(rig):
    d = rig.driver
    seen = set()
    for make, destroy in ((d.event, d.event_destroy), (d.stream, d.stream_destroy)):
        for _ in range(5):
            handle = make()
            assert handle not in seen
            seen.add(handle)
            destroy(handle)


def test_a_refused_call_has_no_effect(rig):
    d = rig.driver
    memory = d.malloc(4, rig.s)
    out, seen = rig.pinned(4, "u1")
    d.fill(memory, 1, 4, rig.s)
    d.faults.reset()
    d.faults.at(1, 1)
    with pytest.raises(CudaError, match="call 1 was told to fail"):
        d.fill(memory, 2, 4, rig.s)
    d.copy(out, memory, 4, rig.s)
    d.stream_synchronize(rig.s)
    assert seen.tolist() == [1] * 4


def test_a_call_that_gives_back_does_so_and_then_fails(rig):
    d = rig.driver
    event = d.event()
    d.faults.reset()
    d.faults.at(1, 1)
    with pytest.raises(CudaError, match="told to fail"):
        d.event_destroy(event)
    assert d.live == {"stream": 1}


def test_work_fails_late_and_takes_the_context_with_it(rig):
    d = rig.driver
    memory = d.malloc(4, rig.s)
    d.faults.reset()
    d.faults.at(1, 719, late=True)
    d.fill(memory, 2, 4, rig.s)
    d.fill(memory, 3, 4, rig.s)
    for _ in range(2):
        with pytest.raises(CudaError, match=r"fill of 4 bytes, call 1, was told to fail late") as caught:
            d.stream_synchronize(rig.s)
        assert caught.value.status == 719


def test_a_sticky_status_ends_the_context(rig):
    d = rig.driver
    d.faults.reset()
    d.faults.at(1, 700)
    for _ in range(2):
        with pytest.raises(CudaError) as caught:
            d.event()
        assert caught.value.status == 700
    d.verify()


def test_what_work_raises_by_itself_comes_out_of_the_wait(rig):
    """A bug of the fake, or of a fake library: not a failed kernel."""
    d = rig.driver

    def run() -> None:
        raise ZeroDivisionError("a bug")

    d.queue(d.stream_of(rig.s, "test"), "work", run)
    with pytest.raises(ZeroDivisionError):
        d.stream_synchronize(rig.s)
    d.stream_synchronize(rig.s)
