"""Staging memory: read when a copy runs, poisoned before and after, found by its address, and noted when the host uses it."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from graphdock.errors import InvalidArgumentError
from graphdock_testing.driver import races
from graphdock_testing.driver.memory import Drops
from graphdock_testing.driver.staging import Pinned, Staging


@pytest.fixture
def noted():
    return []


@pytest.fixture
def slot(noted):
    pinned = Pinned()
    memory = pinned.pin(256, 256, lambda array, write: noted.append((array.shape, write)), Drops())
    memory.fill(0)
    made = memory[:64].view(np.float32).reshape(4, 4)
    noted.clear()
    return made


R, W = False, True


@pytest.mark.parametrize(
    ("use", "notes"),
    [
        (lambda s: s[1:], []),
        (lambda s: s.reshape(2, 8).T, []),
        (lambda s: s[1], []),
        (lambda s: s[1, 2], [((), R)]),
        (lambda s: s[s > 0], [((4, 4), R), ((4, 4), R)]),
        (lambda s: s[[0, 1]], [((4, 4), R)]),
        (lambda s: s + 1, [((4, 4), R)]),
        (lambda s: np.add(1, 2, out=s), [((4, 4), W)]),
        (lambda s: s.sum(), [((4, 4), R)]),
        (lambda s: s.__iadd__(1), [((4, 4), W), ((4, 4), R)]),
        (lambda s: s[0].fill(0), [((4,), W)]),
        (lambda s: s.__setitem__((slice(0, 2), 1), 5), [((2,), W)]),
        (lambda s: s.__setitem__(0, s[1]), [((4,), W), ((4,), R)]),
        (lambda s: s.__setitem__([0, 1], 5), [((4, 4), W)]),
        (lambda s: s.__setitem__(..., 5), [((4, 4), W)]),
        (lambda s: np.copyto(s[2], 1), [((4,), W)]),
        (lambda s: np.copyto(np.zeros(4), s[2]), [((4,), R)]),
        (lambda s: np.concatenate([s[0], s[1]]), [((4,), R), ((4,), R)]),
        (lambda s: np.take(s, [1], out=s[0, :1]), [((1,), W), ((4, 4), R)]),
        (lambda s: np.add.at(s[0], [0], 1), [((4,), W), ((4,), R)]),
        (lambda s: s.copy(), [((4, 4), R)]),
        (lambda s: s.astype(np.int32), [((4, 4), R)]),
        (lambda s: s.tolist(), [((4, 4), R)]),
        (lambda s: s.tobytes(), [((4, 4), R)]),
        (lambda s: s[:1, :1].item(), [((1, 1), R)]),
    ],
)
def test_uses_are_noted(slot, noted, use, notes):
    use(slot)
    assert sorted(noted) == sorted(notes)


def test_views_stay_staging_memory_and_results_do_not(slot):
    assert all(isinstance(v, Staging) for v in (slot[1:], slot.T, slot.reshape(-1), slot.view(np.int32)))
    for value in (slot + 1, slot.copy(), slot.sum(axis=0), slot[[0]], np.concatenate([slot, slot]), slot.astype(int)):
        assert type(value) is np.ndarray
    assert np.add(slot, 1, out=slot) is slot


def test_a_piece_is_found_by_its_address_even_as_a_plain_array(bench):
    piece = bench.memory[64:128].view(np.float32)
    plain = np.ndarray((4,), np.float32, bench.memory.view(np.ndarray), 64)
    assert bench.driver.pinned.slot(piece)[0] is bench.driver.pinned.slot(plain)[0]
    buffer = bench.buffer()
    plain[...] = 3
    bench.on(bench.q).from_host(plain, buffer)
    bench.q.synchronize()
    assert buffer.array.tolist() == [3.0] * 4


@pytest.mark.parametrize(
    "array", [np.zeros(4, np.float32), np.zeros((4, 4), np.float32)[:, 0]], ids=["pageable", "strided"]
)
def test_other_host_memory_is_refused(bench, array):
    bench.on(bench.q)
    with pytest.raises(InvalidArgumentError, match="no contiguous staging memory"):
        bench.q.from_host(array, bench.buffer())
    with pytest.raises(InvalidArgumentError, match="no contiguous staging memory"):
        bench.q.to_host(bench.buffer(), array)
    assert bench.q.pending == 0


def test_staging_memory_is_aligned_and_poisoned(bench):
    for nbytes in (0, 1, 300):
        memory = bench.device.staging(nbytes)
        assert memory.nbytes == nbytes
        assert memory.ctypes.data % bench.device.alignment == 0
        assert (memory == 0xFF).all()


def test_it_is_read_when_the_copy_runs(bench):
    buffer, slot = bench.buffer(), bench.slot()
    slot[...] = 1
    bench.on(bench.q).from_host(slot, buffer)
    slot[...] = 2  # before the fence
    bench.q.synchronize()
    assert buffer.array.tolist() == [2.0] * 4


def test_what_was_sent_is_poisoned_by_the_fence(bench):
    buffer, slot = bench.buffer(), bench.slot()
    slot[...] = 1
    bench.on(bench.q).from_host(slot, buffer)
    bench.q.synchronize()
    assert np.isnan(slot).all()


def test_a_slot_that_another_queue_still_reads_is_left_until_its_fence(bench):
    x, y, slot = bench.buffer(), bench.buffer(), bench.slot()
    slot[...] = 1
    bench.on(bench.q).from_host(slot, x)
    bench.on(bench.r).from_host(slot, y)
    bench.q.synchronize()
    bench.r.synchronize()
    assert x.array.tolist() == y.array.tolist() == [1.0] * 4
    assert np.isnan(slot).all()


def test_a_result_is_poison_until_the_copy_has_run(bench):
    slot = bench.slot()
    slot[...] = 5
    bench.on(bench.q).to_host(bench.buffer(7), slot)
    assert np.isnan(slot).all()
    bench.q.synchronize()
    assert slot.tolist() == [7.0] * 4


def test_a_mid_step_wait_is_enough_to_read_a_result_and_to_send_again(bench):
    buffer, slot, got = bench.buffer(), bench.slot(), bench.slot()
    q = bench.on(bench.q)
    with races.check(bench.device):
        for value in (1, 2, 3):
            slot[...] = value
            q.from_host(slot, buffer)
            q.to_host(buffer, got)
            bench.device.wait_host(q.record())
            assert got.tolist() == [value] * 4
        q.synchronize()


def test_a_slot_may_carry_one_way_and_then_the_other(bench):
    buffer, slot = bench.buffer(), bench.slot()
    slot[...] = 1
    bench.on(bench.q).from_host(slot, buffer)
    bench.add(bench.q, buffer, buffer)
    bench.q.to_host(buffer, slot)
    bench.q.synchronize()
    assert slot.tolist() == [2.0] * 4


def test_staging_memory_dropped_in_flight_is_found(bench):
    memory = bench.device.staging(16)
    slot = memory.view(np.float32)
    slot[...] = 1
    held = len(bench.driver.pinned)
    with races.watch(bench.device) as report:
        buffer = bench.buffer()
        bench.on(bench.q).from_host(slot, buffer)
        del memory, slot
        gc.collect()
        bench.q.synchronize()
    assert [(r.first.what, r.second.what) for r in report.races] == [("from_host", "drop of staging memory")]
    assert len(bench.driver.pinned) == held - 1
    assert np.isnan(buffer.array).all()


def test_empty_arrays_need_no_staging_memory(bench):
    empty = np.zeros((0, 3), np.float32)
    from graphdock.contracts import dtypes

    held = len(bench.driver.pinned)
    buffer = bench.on(bench.q).empty(dtypes.float32, (0, 3))
    bench.q.from_host(empty, buffer)
    bench.q.to_host(buffer, empty)
    bench.q.synchronize()
    assert len(bench.driver.pinned) == held
