"""Device memory: addresses, reuse, poison, limits, and buffers that host code can't read by mistake."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from graphdock.contracts import dtypes
from graphdock.errors import FailedPreconditionError, InvalidArgumentError, ResourceExhaustedError
from graphdock_testing.driver.memory import Memory, bounds


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((3, 4))[1:, ::2],
        np.zeros((3, 4)).T,
        np.zeros(5)[::-1],
        np.zeros(()),
        np.broadcast_to(np.zeros(3), (2, 3)),
    ],
)
def test_bounds_hold_every_element_and_no_more(array):
    steps = [sum(i * stride for i, stride in zip(at, array.strides, strict=True)) for at in np.ndindex(array.shape)]
    assert bounds(array) == (array.ctypes.data + min(steps), array.ctypes.data + max(steps) + 8)


def test_an_empty_array_has_no_bytes():
    low, high = bounds(np.zeros((0, 3)))
    assert low == high


def test_addresses_are_never_used_twice_by_two_blocks():
    memory = Memory("m")
    blocks = [memory.take(n, 256, {}) for n in (1, 256, 257, 5000)]
    spans = sorted((b.address, b.address + b.bytes.nbytes) for b in blocks)
    assert all(a[1] <= b[0] for a, b in zip(spans, spans[1:], strict=False))
    assert all(b.address % 256 == 0 and b.bytes.ctypes.data % 256 == 0 for b in blocks)


@pytest.mark.parametrize("align", [64, 256, 4096])
def test_a_block_is_aligned_and_large_enough(bench, align):
    for nbytes in (0, 1, 255, 1000):
        storage = bench.device.allocate(nbytes, align)
        assert storage.block.bytes.ctypes.data % align == 0
        assert storage.block.bytes.nbytes >= max(nbytes, 1)


def test_what_a_queue_frees_its_next_allocation_gets_before_the_work_has_run(bench):
    q = bench.on(bench.q)
    first = q.allocate(100)
    q.free(first)
    second = q.allocate(90)
    assert second.block is first.block
    assert q.pending == 3
    bench.on(bench.r)
    assert bench.r.allocate(100).block is not first.block  # another queue has blocks of its own


def test_the_old_owner_s_work_is_done_before_the_new_owner_s(bench):
    """Reuse is safe in the order of the queue, and nowhere else."""
    q, got = bench.on(bench.q), bench.slot()
    x = q.empty(dtypes.float32, (4,))
    bench.add(q, bench.buffer(1), x)
    q.to_host(x, got)
    q.free(x.storage)
    y = q.empty(dtypes.float32, (4,))
    assert y.storage.block is x.storage.block
    bench.add(q, bench.buffer(5), y)
    q.synchronize()
    assert got.tolist() == [2.0] * 4
    assert y.array.tolist() == [6.0] * 4


def test_memory_is_poisoned_before_and_after_in_the_order_of_the_queue(bench):
    q, slots = bench.on(bench.q), [bench.slot() for _ in range(3)]
    x = q.empty(dtypes.float32, (4,))
    q.to_host(x, slots[0])
    bench.add(q, bench.buffer(1), x)
    q.to_host(x, slots[1])
    array = x.array
    q.free(x.storage)
    assert not np.isnan(array).all() or q.pending
    q.synchronize()
    assert np.isnan(slots[0]).all()
    assert slots[1].tolist() == [2.0] * 4
    assert np.isnan(array).all()


def test_a_dropped_storage_is_freed_in_the_order_of_its_queue(bench):
    q, got, one = bench.on(bench.q), bench.slot(), bench.buffer(1)
    before = bench.device.in_use
    x = q.empty(dtypes.float32, (4,))
    assert bench.device.in_use == before + 16
    bench.add(q, one, x)
    q.to_host(x, got)
    block = x.storage.block
    del x
    assert bench.device.in_use == before
    y = q.empty(dtypes.float32, (4,))
    assert y.storage.block is block
    q.synchronize()
    assert got.tolist() == [2.0] * 4


def test_queued_work_does_not_keep_memory_of_the_device(bench):
    """Dropped in flight, it is somebody else's at once, and the numbers are wrong."""
    x, y = bench.buffer(1, keep=False), bench.buffer(0)
    block = x.storage.block
    bench.add(bench.q, x, y)
    del x
    gc.collect()
    z = bench.buffer(7)
    assert z.storage.block is block
    bench.q.synchronize()
    assert y.array.tolist() == [8.0] * 4


def test_what_was_given_back_last_is_given_out_first(bench):
    q = bench.on(bench.q)
    first, second = q.allocate(8), q.allocate(8)
    q.free(first)
    q.free(second)
    assert q.allocate(8).block is second.block


def test_memory_of_the_device_is_poisoned_when_it_is_dropped(bench):
    x = bench.buffer(1, keep=False)
    array = x.array
    del x
    assert bench.device.in_use
    assert np.isnan(array).all()


def test_memory_that_was_freed_is_refused(bench):
    q = bench.on(bench.q)
    x = q.empty(dtypes.float32, (4,))
    q.free(x.storage)
    with pytest.raises(FailedPreconditionError, match="uses memory that was freed"):
        q.copy(bench.buffer(), x)
    with pytest.raises(FailedPreconditionError, match="was freed"):
        q.free(x.storage)
    with pytest.raises(FailedPreconditionError, match="was freed"):
        bench.device.view(x.storage, 0, dtypes.float32, (4,))


def test_a_queue_frees_only_what_it_allocated(bench):
    storage = bench.on(bench.q).allocate(8)
    with pytest.raises(InvalidArgumentError, match="not of its allocate"):
        bench.r.free(storage)
    with pytest.raises(InvalidArgumentError, match="not of its allocate"):
        bench.q.free(bench.device.allocate(8))


def test_memory_has_a_limit_that_freed_blocks_do_not_count_in():
    memory = Memory("m", 1000)
    block = memory.take(600, 256, memory.idle)
    with pytest.raises(ResourceExhaustedError, match="600 of 1000 bytes in use"):
        memory.take(500, 256, memory.idle)
    memory.give(block, 600, memory.idle)
    assert memory.take(1000, 256, memory.idle).bytes.nbytes >= 1000


def test_a_view_stays_within_its_storage(bench):
    storage = bench.device.allocate(64)
    assert bench.device.view(storage, 16, dtypes.int32, (3, 4)).shape == (3, 4)
    with pytest.raises(InvalidArgumentError, match="beyond the end"):
        bench.device.view(storage, 20, dtypes.int32, (3, 4))
    with pytest.raises(InvalidArgumentError, match="can't hold string"):
        bench.device.view(storage, 0, dtypes.string, (1,))


def test_host_code_that_reads_a_buffer_fails_at_once(bench):
    with pytest.raises(TypeError, match="as if it were a NumPy array"):
        np.asarray(bench.buffer(1))


def test_extents_tell_views_apart(bench):
    storage = bench.device.allocate(64)
    low = bench.device.view(storage, 0, dtypes.float32, (4,))
    high = bench.device.view(storage, 16, dtypes.float32, (4,))
    (a, n), (b, m) = bench.device.extent(low), bench.device.extent(high)
    assert (b - a, n, m) == (16, 16, 16)
