"""Places of buffers in the arena, against the definition: what lives at one time never overlaps."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from graphdock import dtypes
from graphdock.errors import ResourceExhaustedError
from graphdock.planning.pool import HostMemory
from graphdock_executor.storage import Root, pack

ALIGN = 64


def root(first: int, last: int, floats: int = 16) -> Root:
    return Root("planned", "host", dtypes.float32, (floats,), first, last)


@pytest.mark.parametrize("seed", range(20))
def test_buffers_that_live_together_never_overlap_in_whatever_order_they_come(seed: int) -> None:
    rng = np.random.default_rng(seed)
    roots = []
    for _ in range(60):
        first = int(rng.integers(0, 40))
        roots.append(root(first, first + int(rng.integers(0, 12)), int(rng.integers(0, 300))))
    total = pack(roots, ALIGN)
    for r in roots:
        assert r.offset % ALIGN == 0 and r.offset >= 0 and r.offset + max(r.nbytes, 1) <= total
    for a, b in itertools.combinations(roots, 2):
        if a.first <= b.last and b.first <= a.last:
            assert a.offset + max(a.nbytes, 1) <= b.offset or b.offset + max(b.nbytes, 1) <= a.offset


def test_a_chain_needs_two_buffers_and_a_buffer_read_where_another_begins_is_not_reused() -> None:
    assert pack([root(i, i + 1) for i in range(50)], ALIGN) == 2 * 16 * 4


def test_a_small_buffer_takes_a_part_of_what_is_free_and_the_rest_grows_at_the_top() -> None:
    small, large = root(2, 9, 16), root(3, 9, 1024)
    assert pack([root(0, 1, 1024), small, large], ALIGN) == 1024 * 4 + ALIGN
    assert (small.offset, large.offset) == (0, ALIGN)


def test_neighbours_that_died_are_one_hole() -> None:
    small, large = [root(i, 4, 16) for i in range(4)], root(5, 9, 64)
    assert pack([*small, large], ALIGN) == 4 * ALIGN
    assert large.offset == 0


@pytest.mark.parametrize("seed", range(20))
def test_random_lives_do_not_overlap_and_take_little_more_than_is_alive_at_once(seed: int) -> None:
    r = random.Random(seed)
    roots = []
    for first in range(200):
        roots.append(root(first, first + r.choice([1, 2, 5, 40]), r.choice([16, 32, 64, 256])))
    top = pack(roots, ALIGN)
    alive = max(sum(x.nbytes for x in roots if x.first <= i <= x.last) for i in range(200))
    assert alive <= top <= 1.35 * alive
    for i, a in enumerate(roots):
        for b in roots[:i]:
            apart = a.offset + a.nbytes <= b.offset or b.offset + b.nbytes <= a.offset
            assert apart or a.first > b.last or b.first > a.last


def test_use_never_shortens_a_life() -> None:
    r = root(0, 5)
    r.use(3)
    assert r.last == 5
    r.use(8)
    assert r.last == 8


@pytest.mark.parametrize("align", [16, 64, 4096])
def test_host_memory_begins_where_it_was_asked_to(align: int) -> None:
    blocks = [HostMemory().allocate(size, align) for size in (1, 7, 64, 1000, 1 << 20)]
    assert [b.ctypes.data % align for b in blocks] == [0] * 5
    assert [b.nbytes for b in blocks] == [1, 7, 64, 1000, 1 << 20]


def test_a_block_is_reused_whole() -> None:
    assert pack([root(0, 1, 1024), root(2, 3, 300), root(4, 5, 1024)], ALIGN) == 1024 * 4


def test_memory_that_is_not_there_is_an_error_of_the_resource() -> None:
    with pytest.raises(ResourceExhaustedError, match="host memory has no"):
        HostMemory().allocate(1 << 60)
