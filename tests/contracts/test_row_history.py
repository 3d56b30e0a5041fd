"""A history over rows of an array, held against the list that it stands for."""

from __future__ import annotations

import numpy as np
import pytest
from graphdock.contracts import RowHistory


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
