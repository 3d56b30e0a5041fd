"""Blocks of memory: given out again when nobody knows the array over them, and only then."""

from __future__ import annotations

import threading
import weakref

import numpy as np
from graphdock_dataflow.blocks import Blocks

FLOAT = np.dtype(np.float32)


def address(array):
    return array.__array_interface__["data"][0]


def test_a_block_is_given_again_only_where_nobody_knows_its_array():
    make = Blocks().maker(FLOAT, (10, 100))
    first = make()
    assert first.shape == (10, 100) and first.dtype == FLOAT and first.flags.c_contiguous and first.flags.writeable
    assert address(first) % 64 == 0
    where = address(first)
    second = make()
    assert not np.shares_memory(first, second)
    first.flags.writeable = False
    del first
    third = make()
    assert address(third) == where and third.flags.writeable
    view = third[1:, ::2].T
    del third
    assert not np.shares_memory(make(), view)
    del view  # its block is forgotten: what comes is another one
    for hold in (memoryview, np.ndarray.ravel, lambda a: np.asarray(memoryview(a))[3:]):
        held = hold(make())
        assert not any(np.shares_memory(np.asarray(held), make()) for _ in range(3))


def test_arrays_of_as_many_bytes_share_blocks_and_others_do_not():
    blocks = Blocks()
    where = address(blocks.maker(FLOAT, (6,))())
    assert address(blocks.maker(np.dtype(np.int64), (3,))()) == where
    assert address(blocks.maker(np.dtype(np.int8), (4, 6))()) == where
    held = blocks.maker(FLOAT, (7,))()
    assert address(held) != where


def test_blocks_end_with_what_gave_them_and_with_the_last_array():
    blocks = Blocks()
    array = blocks.maker(FLOAT, (5,))()
    array[:] = 3.0
    watched, base = weakref.ref(array), weakref.ref(array.base)
    del blocks
    assert array.tolist() == [3.0] * 5
    del array
    assert watched() is None and base() is None


def test_threads_never_hold_one_block_at_once():
    blocks = Blocks()
    make = blocks.maker(FLOAT, (4,))
    failed = []

    def work(number):
        held = []
        for i in range(3000):
            array = make()
            array[:] = number
            held.append(array[1:] if i % 5 == 0 else array)
            if i % 3:
                found = held.pop(i % len(held))
                if not (found == number).all():
                    failed.append(i)

    threads = [threading.Thread(target=work, args=(float(i),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
