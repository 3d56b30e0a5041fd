"""A history over rows of an array, held against the list that it stands for."""

from __future__ import annotations

import numpy as np
import pytest
from graphdock.contracts import RaggedHistory, RowHistory, TensorHistory


@pytest.mark.parametrize("shape", [(), (3,), (2, 2)])
@pytest.mark.parametrize("step", [1, -1])
def test_a_history_is_the_list_of_its_rows(shape, step):
    array = np.arange(6 * int(np.prod(shape)), dtype=np.float32).reshape(6, *shape)[::step]
    history, listed = RowHistory(array, 4), [array[i, ...] for i in range(4)]
    assert len(history) == 4 and history
    for got, want in ((list(history), listed), (history[1:], listed[1:]), (list(reversed(history)), listed[::-1])):
        assert all(isinstance(g, np.ndarray) and g.shape == shape for g in got)
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(history[-4], listed[0])
    for place in (4, -5):
        with pytest.raises(IndexError):
            history[place]


def test_the_last_element_is_taken_off_and_the_array_stays():
    array = np.arange(3.0)
    history = RowHistory(array)
    assert [float(history.pop()) for _ in range(3)] == [2.0, 1.0, 0.0]
    assert not history and len(history.rows) == 0 and len(history.array) == 3
    with pytest.raises(IndexError):
        history.pop()


def ragged(lists, of=RowHistory, array=None):
    """A history of histories, whose memory has room for more."""
    flat = np.arange(20.0) if array is None else array
    ends = np.cumsum([0, *map(len, lists)])
    return RaggedHistory(np.append(ends, -1).astype(np.int64), of(flat, int(ends[-1])), len(lists))


@pytest.mark.parametrize("lengths", [(2, 0, 3), (0, 0), (1,), ()])
def test_a_history_of_histories_is_the_list_of_its_lists(lengths):
    numbers, lists, at = np.arange(20.0), [], 0
    for length in lengths:
        lists.append(list(numbers[at : at + length]))
        at += length
    history = ragged(lists, array=numbers)
    assert len(history) == len(lists)
    for got, want in ((history, lists), (history[::-1], lists[::-1]), (history[1:], lists[1:])):
        assert [list(map(float, element)) for element in got] == want
    while lists:
        assert list(map(float, history.pop())) == lists.pop()
    with pytest.raises(IndexError):
        history.pop()


def test_a_history_of_tensors_is_the_list_of_parts_of_an_array():
    rows, starts = np.arange(12.0).reshape(6, 2), np.array([0, 2, 2, 5])
    history = TensorHistory(starts, rows)
    assert [element.tolist() for element in history] == [rows[:2].tolist(), [], rows[2:5].tolist()]
    assert history[-2].shape == (0, 2) and history.pop().shape == (3, 2) and len(history) == 2
    assert all(np.shares_memory(array, rows) for array in (history[0], history.arrays[1]))


def test_elements_of_a_history_of_histories_of_histories_are_histories_of_histories():
    inner = ragged([[0.0, 1.0], [], [2.0], [3.0, 4.0, 5.0]])
    outer = RaggedHistory(np.array([0, 1, 4]), inner)
    assert [[list(map(float, c)) for c in b] for b in outer] == [[[0.0, 1.0]], [[], [2.0], [3.0, 4.0, 5.0]]]
    taken = outer.pop()
    assert [float(x) for x in taken.pop()] == [3.0, 4.0, 5.0] and len(taken) == 2 and len(outer) == 1
    assert all(np.shares_memory(array, other) for array, other in zip(taken.arrays, outer.arrays[1:], strict=True))
