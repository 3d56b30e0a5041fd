"""Lists that never change, beside Python's own, which are copied."""

import random
import threading

import numpy as np
import pytest
from graphdock import dtypes, errors
from graphdock_data.arrays.tensor_list import Rules, TensorList, summed

RULES = Rules(dtypes.int64, grows=True, lenient=True)


def made(*numbers):
    return TensorList(RULES, (), len(numbers), {i: np.array(n) for i, n in enumerate(numbers) if n is not None})


def numbers_of(array, count):
    return [int(x) for x in array.read(range(count), ())]


@pytest.mark.parametrize("seed", range(20))
def test_versions_beside_copies(seed):
    """Any version, however old, is written and read as if each write had copied the whole."""
    drawn = random.Random(seed)
    versions = [(made(), [])]
    for _ in range(120):
        array, model = drawn.choice(versions[-6:] if drawn.random() < 0.7 else versions)
        kind = drawn.randrange(3)
        if kind == 0:
            index, value = drawn.randrange(12), drawn.randrange(100)
            grown = model + [0] * (index + 1 - len(model))
            grown[index] = value
            versions.append((array.written(index, np.array(value)), grown))
        elif kind == 1:
            places = drawn.sample(range(10), 3)
            rows = [drawn.randrange(100) for _ in places]
            grown = model + [0] * (max(places) + 1 - len(model))
            for place, row in zip(places, rows, strict=True):
                grown[place] = row
            versions.append((array.scattered(places, [np.array(r) for r in rows]), grown))
        else:
            other, theirs = drawn.choice(versions)
            size = max(len(model), len(theirs))
            both = [(model[i] if i < len(model) else 0) + (theirs[i] if i < len(theirs) else 0) for i in range(size)]
            if other is not array:
                versions.append((array.plus(other), both))
        array, model = drawn.choice(versions)
        assert numbers_of(array, len(model)) == model and len(array) <= len(model)


def test_the_newest_is_written_in_place():
    array = made(1, 2)
    items = array._items
    after = array.written(0, np.array(5))
    assert after._items is items and numbers_of(after, 2) == [5, 2]
    assert numbers_of(array, 2) == [1, 2] and array._items is None  # without a copy
    latest = after
    for i in range(9):
        latest = latest.written(0, np.array(i))
    assert latest._items is items and numbers_of(array, 2) == [1, 2]
    assert array._items is not None and array._items is not items


def test_a_gradient_of_one_late_element_is_one_element():
    """So a loop that reads a list takes time in proportion to its iterations, and not to their square, on the way back."""
    assert len(made().written(1_000_000, np.array(3))._items) == 1


def test_a_write_keeps_a_copy_of_its_own():
    value = np.array(7)
    array = made(0).written(0, value)
    value[...] = 8
    assert numbers_of(array, 1) == [7]


def test_ten_thousand_versions_are_let_go_without_recursion():
    first = array = made(0)
    for i in range(10_000):
        array = array.written(0, np.array(i))
    assert numbers_of(array, 1) == [9_999]
    del array
    assert numbers_of(first, 1) == [0]


def test_sums():
    assert summed([None, None]) is None
    only = made(4)
    assert summed([None, only]) is not only and numbers_of(summed([only, None]), 1) == numbers_of(only, 1) == [4]
    assert numbers_of(summed([None, made(1, None, 3), made(10, 20)]), 3) == [11, 20, 3]
    with pytest.raises(errors.UnimplementedError, match="no gradient"):
        summed([made(1), [np.array(1)]])


def test_threads_read_old_versions_while_others_write():
    first = made(*range(50))
    found = []

    def read():
        for _ in range(200):
            found.append(numbers_of(first, 50))

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    array = first
    for i in range(200):
        array = array.written(i % 50, np.array(-1))
    for thread in threads:
        thread.join()
    assert all(f == list(range(50)) for f in found) and len(found) == 600
