"""Slices: how they are spelled, and which elements two of them share."""

from __future__ import annotations

import numpy as np
import pytest
from graphdock.errors import InvalidArgumentError
from graphdock_storage.checkpoint.slices import Slice, parse_shape_and_slice
from hypothesis import given
from hypothesis import strategies as st


@st.composite
def boxes(draw):
    shape = draw(st.lists(st.integers(0, 5), max_size=3))
    pairs = []
    for size in shape:
        start = draw(st.integers(0, size))
        pairs.append((start, draw(st.integers(0, size - start))))
    return tuple(shape), Slice(tuple(s for s, _ in pairs), tuple(n for _, n in pairs))


@given(boxes())
def test_what_is_spelled_is_what_is_parsed(found):
    shape, part = found
    assert Slice.parse(part.spelled(shape), shape) == part


@given(boxes(), st.randoms())
def test_common_elements_are_those_of_masks(found, random):
    """Against NumPy: two boolean masks, and where both are true."""
    shape, one = found
    starts = [random.randint(0, d) for d in shape]
    other = Slice(tuple(starts), tuple(random.randint(0, d - s) for d, s in zip(shape, starts, strict=True)))
    whole = Slice.whole(shape)
    masks = [np.zeros(shape, bool) for _ in range(2)]
    for mask, part in zip(masks, (one, other), strict=True):
        mask[part.within(whole)] = True
    both = masks[0] & masks[1]
    common = one.common(other)
    assert (0 if common is None else common.size) == both.sum()
    if common is not None:
        assert both[common.within(whole)].all()


def test_tensorflows_spelling():
    assert parse_shape_and_slice("5 2 0,3:0,2") == ((5, 2), Slice((0, 0), (3, 2)))
    assert parse_shape_and_slice("5 2 3,2:-") == ((5, 2), Slice((3, 0), (2, 2)))
    assert parse_shape_and_slice("") is None


@pytest.mark.parametrize(
    "text", ["0,3", "5 0,6", "5 2 0,3", "5 -1,2", "5 x", "5 0,1:0,1", "5 1", "5 9999999999999999999,1", " "]
)
def test_what_is_no_slice_is_refused(text):
    with pytest.raises(InvalidArgumentError, match="slice"):
        parse_shape_and_slice(text)
