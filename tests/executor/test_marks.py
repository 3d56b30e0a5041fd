"""Marks: a kernel that writes nothing, or not all of an output, is told from one whose results look unusual."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from graphdock_executor.first_call import Marks

FLOATS = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.complex64, np.complex128)
KINDS = (*FLOATS, np.int32, np.uint64, np.int16, np.int8, np.uint8, np.bool_)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("poison", [False, True])
@pytest.mark.parametrize("count", [4, 5, 9, 1000])
def test_what_is_not_written_is_known(kind, poison, count):
    array = np.zeros(count, kind)
    marks = Marks(array, poison)
    assert marks.left()
    array[...] = np.ones(count, kind)
    assert not marks.left()


@pytest.mark.parametrize("kind", FLOATS)
def test_results_that_are_nan_are_written(kind):
    for value in (np.nan, -np.nan, np.inf):
        array = np.zeros(8, kind)
        marks = Marks(array, poison=True)
        array[...] = np.full(8, value).astype(kind)
        assert not marks.left()


@pytest.mark.parametrize("kind", FLOATS)
def test_what_is_computed_of_a_marked_element_is_nan_and_written(kind):
    array = np.zeros(8, kind)
    marks = Marks(array, poison=True)
    with np.errstate(invalid="ignore"):
        array += np.ones(8, kind)
    assert np.isnan(array).all() and not marks.left()


@pytest.mark.parametrize("kind", FLOATS)
def test_one_element_that_is_left_is_enough(kind):
    array = np.zeros(8, kind)
    marks = Marks(array, poison=True)
    array[:-1] = 1
    assert marks.left()


def test_what_can_not_be_marked_says_nothing():
    assert not Marks(np.zeros(0, np.float32)).left()
    assert not Marks(np.array([None], object)).left()
    assert not Marks(np.zeros((3, 4), np.float32).T).left()
