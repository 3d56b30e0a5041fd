"""The fake driver's memory: order, limits, misuse."""

from __future__ import annotations

import numpy as np
import pytest
from graphdock_cuda.driver.errors import CudaError
from graphdock_cuda.testing.state import Misuse


def test_pinned_memory_is_read_when_the_copy_runs(rig):
    d = rig.driver
    source, given = rig.pinned(4, "f4")
    memory = d.malloc(16, rig.s)
    given[:] = 1
    d.copy(memory, source, 16, rig.s)
    given[:] = 2  # too early
    assert rig.get(memory, 4, "f4").tolist() == [2] * 4


def test_a_copy_to_pinned_memory_is_not_there_before_the_fence(rig):
    d = rig.driver
    target, got = rig.pinned(4, "u1")
    got[:] = 255
    memory = d.malloc(4, rig.s)
    d.fill(memory, 0x107, 4, rig.s)
    d.copy(target, memory, 4, rig.s)
    assert got.tolist() == [255] * 4
    d.stream_synchronize(rig.s)
    assert got.tolist() == [7] * 4


def test_new_memory_is_poisoned_and_aligned(rig):
    memory = rig.driver.malloc(12, rig.s)
    assert memory % 256 == 0
    assert np.isnan(rig.get(memory, 3, "f4")).all()


def test_freed_memory_is_the_streams_next_while_its_work_still_waits(rig):
    d = rig.driver
    out, seen = rig.pinned(4, "u1")
    first = d.malloc(4, rig.s)
    d.fill(first, 1, 4, rig.s)
    d.copy(out, first, 4, rig.s)
    d.free(first, rig.s)
    second = d.malloc(4, rig.s)
    assert second == first
    d.fill(second, 2, 4, rig.s)
    d.stream_synchronize(rig.s)
    assert seen.tolist() == [1] * 4
    assert rig.get(second, 4, "u1").tolist() == [2] * 4
    d.verify()


def test_another_stream_gets_freed_memory_when_the_free_has_run(rig):
    d = rig.driver
    other = d.stream()
    first = d.malloc(4, rig.s)
    d.free(first, rig.s)
    assert d.malloc(4, other) != first
    d.stream_synchronize(rig.s)
    assert d.malloc(4, other) == first


def test_memory_whose_last_work_ran_unnoticed_is_no_race_of_the_stream_that_gets_it(rig):
    """The driver knows that the work is done; the host has never asked."""
    d = rig.driver
    other = d.stream()
    first = d.malloc(4, rig.s)
    d.fill(first, 1, 4, rig.s)
    d.free(first, rig.s)
    while d.scheduler.step():
        pass
    again = d.malloc(4, other)
    assert again == first
    d.fill(again, 2, 4, other)
    d.verify()


def test_the_limit(rigs):
    rig = rigs(memory=10_000)
    d = rig.driver
    memory = d.malloc(9_000, rig.s)
    assert d.memory_info(0) == (1_000, 10_000)
    with pytest.raises(CudaError, match="out of memory") as caught:
        d.malloc(2_000, rig.s)
    assert caught.value.status == 2
    d.free(memory, rig.s)
    d.malloc(10_000, rig.s)
    d.verify()


def test_memory_that_a_kernel_writes_beyond_is_told_with_its_name(rig):
    function = rig.kernel("GD_KERNEL(over)(float* x, i64 n) { x[n + threadIdx.x] = 1; }", "over")
    memory = rig.driver.malloc(400, rig.s)
    rig.launch(function, memory, 100, block=20)
    with pytest.raises(CudaError, match="over wrote beyond block 1 of cuda:0") as caught:
        rig.driver.stream_synchronize(rig.s)
    assert caught.value.status == 700
    with pytest.raises(Misuse, match="over: wrote beyond"):
        rig.driver.verify()


def test_memory_beyond_the_page_is_a_bad_address_at_once(rig):
    function = rig.kernel("GD_KERNEL(over)(float* x, i64 n) { x[n + threadIdx.x] = 1; }", "over")
    memory = rig.driver.malloc(400, rig.s)
    rig.launch(function, memory, 1000)
    with pytest.raises(CudaError, match="over: an address that is not this kernel's to use"):
        rig.driver.stream_synchronize(rig.s)


def test_a_stale_address_that_the_parameters_do_not_show(rig):
    """A table of pointers in device memory, one of which was freed."""
    function = rig.kernel("GD_KERNEL(through)(float** table) { table[0][threadIdx.x] = 1; }", "through")
    d = rig.driver
    memory = d.malloc(128, rig.s)
    table = rig.put(np.array([memory], "u8"))
    rig.launch(function, table)
    d.stream_synchronize(rig.s)
    d.free(memory, rig.s)
    rig.launch(function, table)
    with pytest.raises(CudaError, match="through: an address"):
        d.stream_synchronize(rig.s)


BAD_CALLS = {
    "free of nothing": (lambda d, m, h, s: d.free(12345, s), "the begin of no block"),
    "free of a middle": (lambda d, m, h, s: d.free(m + 16, s), "the begin of no block"),
    "free of pinned memory": (lambda d, m, h, s: d.free(h, s), "of host_alloc"),
    "host_free of device memory": (lambda d, m, h, s: d.host_free(m), "of malloc"),
    "malloc of nothing": (lambda d, m, h, s: d.malloc(0, s), "0 bytes"),
    "host_alloc of nothing": (lambda d, m, h, s: d.host_alloc(0), "0 bytes"),
    "copy beyond the end": (lambda d, m, h, s: d.copy(m, h, 65, s), "65 bytes at .* are not within block"),
    "copy from memory that is not pinned": (lambda d, m, h, s: d.copy(m, 4096, 8, s), "neither of a device nor pinned"),
    "fill beyond the end": (lambda d, m, h, s: d.fill(m + 60, 0, 8, s), "not within"),
    "an address in no block": (lambda d, m, h, s: d.fill(m + 100_000, 0, 8, s), "in no block"),
    "a stream that never was": (lambda d, m, h, s: d.malloc(8, 77), "handle of a stream, got none"),
    "an event for a stream": (lambda d, m, h, s: d.malloc(8, d.event()), "handle of a stream, got event"),
}


@pytest.mark.parametrize("what", BAD_CALLS)
def test_misuse(rig, what):
    call, text = BAD_CALLS[what]
    d = rig.driver
    memory, host = d.malloc(64, rig.s), d.host_alloc(64)
    with pytest.raises(Misuse, match=text):
        call(d, memory, host, rig.s)
    with pytest.raises(Misuse, match=text):
        d.verify()


@pytest.mark.parametrize("use", ["free", "copy", "fill"])
def test_use_after_free(rig, use):
    d = rig.driver
    memory, host = d.malloc(64, rig.s), d.host_alloc(64)
    d.free(memory, rig.s)
    calls = {
        "free": lambda: d.free(memory, rig.s),
        "copy": lambda: d.copy(host, memory, 8, rig.s),
        "fill": lambda: d.fill(memory, 0, 8, rig.s),
    }
    with pytest.raises(Misuse, match="which was freed"):
        calls[use]()


def test_peers(rigs):
    rig = rigs(gpus=2)
    d = rig.driver
    mine = rig.put(np.arange(4, dtype="f4"))
    d.set_device(1)
    s1 = d.stream()
    theirs = d.malloc(16, s1)
    d.copy_peer(theirs, 1, mine, 0, 16, s1)
    out, seen = rig.pinned(4, "f4")
    d.copy(out, theirs, 16, s1)
    d.stream_synchronize(s1)
    assert seen.tolist() == [0, 1, 2, 3]
    assert d.log.copies == {"h2d": 1, "p2p": 1, "d2h": 1}
    with pytest.raises(Misuse, match="not from device 1 to device 0"):
        d.copy_peer(theirs, 0, mine, 1, 16, s1)
    assert d.can_access_peer(0, 1)
    assert not d.can_access_peer(0, 0)


def test_a_kernel_reads_a_peers_memory_only_where_that_was_enabled(rigs):
    code = "GD_KERNEL(take)(float* mine, const float* theirs) { mine[threadIdx.x] = theirs[threadIdx.x]; }"
    rig = rigs(gpus=2)
    d = rig.driver
    theirs = rig.put(np.arange(32, dtype="f4"))
    d.set_device(1)
    rig.s = d.stream()
    mine = d.malloc(128, rig.s)
    function = rig.kernel(code, "take")
    with pytest.raises(Misuse, match="cuda:1 has no access to block 1 of cuda:0"):
        rig.launch(function, mine, theirs)
    d.enable_peer(0)
    d.enable_peer(0)
    rig.launch(function, mine, theirs)
    assert rig.get(mine, 32, "f4").tolist() == list(range(32))


def test_without_peers(rigs):
    rig = rigs(gpus=2, peers=False)
    assert not rig.driver.can_access_peer(0, 1)
    with pytest.raises(CudaError):
        rig.driver.enable_peer(1)


def test_streams_of_another_device_are_refused_for_memory(rigs):
    rig = rigs(gpus=2)
    rig.driver.set_device(1)
    with pytest.raises(Misuse, match="cuda:0/stream:0 is not of cuda:1"):
        rig.driver.malloc(8, rig.s)
