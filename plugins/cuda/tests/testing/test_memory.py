"""Memory of the fake driver, without the driver."""

from __future__ import annotations

import ctypes
import gc

import pytest
from graphdock_cuda.testing.memory import Arena


@pytest.fixture
def arena():
    return Arena("space", 1 << 20)


def _bytes(block):
    return (ctypes.c_ubyte * block.nbytes).from_address(block.address)


def test_blocks_are_aligned_apart_and_poisoned(arena):
    blocks = [arena.take(n, None) for n in (1, 255, 256, 257, 4096, 5000, 100_000)]
    for block in blocks:
        assert block.address % 256 == 0
        assert set(_bytes(block)) == {0xFF}
    ends = sorted((b.address, b.end) for b in blocks)
    assert all(end + 4096 <= start for (_, end), (start, _) in zip(ends, ends[1:], strict=False))
    assert arena.in_use == sum(b.nbytes for b in blocks)


def test_the_limit_is_of_what_is_in_use(arena):
    block = arena.take(1 << 20, None)
    assert arena.take(1, None) is None
    arena.give(block, None, lambda: True)
    assert arena.take(1, None) is not None


def test_memory_goes_back_to_its_owner_at_once_and_to_others_when_its_work_is_done(arena):
    mine, other = object(), object()
    block = arena.take(1000, mine)
    done = []
    arena.give(block, mine, lambda: bool(done))
    assert arena.take(1000, other).address != block.address
    again = arena.take(1000, mine)
    assert again.address == block.address
    assert again.number != block.number
    arena.give(again, mine, lambda: bool(done))
    done.append(1)
    assert arena.take(1000, other).address == block.address


def test_a_smaller_block_leaves_what_queued_work_still_reads(arena):
    """Its canaries would lie in the block before it, until that one's work has run."""
    mine = object()
    block = arena.take(96, mine)
    _bytes(block)[95] = 7
    arena.give(block, mine, lambda: False)
    again = arena.take(48, mine)
    assert again.address == block.address and _bytes(block)[95] == 7
    arena.clear(block)
    assert _bytes(block)[95] not in (7, 0xFF) and again.intact() and set(_bytes(again)) == {0xFF}


def test_freed_memory_is_poisoned_and_closed_when_its_work_runs(arena):
    block = arena.take(1000, None)
    _bytes(block)[0] = 7
    arena.give(block, None, lambda: True)
    assert block.region.open
    assert _bytes(block)[0] == 7
    arena.clear(block)
    assert not block.region.open
    # whoever gets it next finds poison
    again = arena.take(1000, None)
    assert set(_bytes(again)) == {0xFF}


def test_the_work_that_frees_comes_after_a_new_owner(arena):
    """The same stream has the memory again before the free has run: it is poisoned then, and stays open."""
    owner = object()
    block = arena.take(3000, owner)
    arena.give(block, owner, lambda: False)
    again = arena.take(500, owner)
    assert again.region is block.region
    ctypes.memset(block.address, 1, block.nbytes)  # late work of the first owner
    arena.clear(block)
    assert again.region.open
    assert again.intact()
    assert set(_bytes(again)) == {0xFF}


def test_canaries_tell_of_writes_right_beside_a_block(arena):
    block = arena.take(100, None)
    assert block.intact()
    for at in (block.end, block.end + 100, block.address - 1):
        ctypes.memset(at, 0, 1)
        assert not block.intact()
        block.guard()
        assert block.intact()


def test_blocks_outlive_their_arena():
    """As pinned memory outlives the session that an array of it came from."""
    arena = Arena("space")
    kept, gone = arena.take(5000, None), arena.take(5000, None)
    arena.give(gone, None, lambda: True)
    view = _bytes(kept)
    view[7] = 1
    del arena
    gc.collect()
    assert view[7] == 1


def test_find(arena):
    block = arena.take(1000, None)
    assert arena.find(block.address) is arena.find(block.address + 500) is arena.find(block.end) is block
    assert arena.find(block.region.stop + 10) is None
    assert arena.find(arena.base) is None
    arena.give(block, None, lambda: True)
    assert not arena.find(block.address).live
