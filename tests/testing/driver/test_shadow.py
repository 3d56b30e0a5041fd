"""The shadow of a memory space against a list with one history per byte."""

from __future__ import annotations

import random

import pytest
from graphdock_testing.driver.shadow import Shadow

SIZE = 64


class Bytes:
    """One history per byte: the last write, and the last read per agent since."""

    def __init__(self):
        self.write = [None] * SIZE
        self.reads = [{} for _ in range(SIZE)]


@pytest.mark.parametrize("seed", range(30))
def test_it_shows_what_a_history_per_byte_would(seed):
    chance = random.Random(seed)
    shadow, plain = Shadow(), Bytes()
    for number in range(300):
        start = chance.randrange(SIZE)
        stop = chance.randrange(start, SIZE + 1)
        agent, writing = chance.randrange(3), chance.random() < 0.5
        seen = {}

        def against(cell, seen=seen):
            for at in range(cell.start, cell.stop):
                assert at not in seen
                seen[at] = (cell.write, dict(cell.reads))

        if writing:
            shadow.write(start, stop, number, against)
        else:
            shadow.read(start, stop, agent, number, against)
        for at in range(SIZE):
            history = (plain.write[at], plain.reads[at])
            if start <= at < stop:
                assert seen.get(at, (None, {})) == history
                if writing:
                    plain.write[at], plain.reads[at] = number, {}
                else:
                    plain.reads[at] = {**plain.reads[at], agent: number}
            else:
                assert at not in seen


def test_a_write_makes_many_pieces_one():
    shadow = Shadow()
    for at in range(0, 100, 10):
        shadow.write(at, at + 10, at, lambda cell: None)
    assert len(shadow) == 10
    shadow.read(0, 100, 1, "all", lambda cell: None)
    assert len(shadow) == 10
    shadow.write(0, 100, "all", lambda cell: None)
    assert len(shadow) == 1


def test_an_empty_range_touches_nothing():
    shadow = Shadow()
    shadow.write(5, 5, 1, lambda cell: pytest.fail("shown"))
    shadow.read(5, 5, 0, 1, lambda cell: pytest.fail("shown"))
    assert len(shadow) == 0
