"""Slices: how they are spelled, and which elements two of them share."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from graphdock.errors import InvalidArgumentError
from graphdock_storage.checkpoint import slices
from graphdock_storage.checkpoint.slices import Slice, parse_shape_and_slice, tile
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


def halved(axes: int, parts: int = 16) -> list[Slice]:
    """Parts of a tensor of 2 along each axis, each of which is half of it along four axes: together as large as the tensor."""
    made = []
    for i in range(parts):
        starts, lengths = [0] * axes, [2] * axes
        for bit, axis in enumerate((4 * i + j) % axes for j in range(4)):
            starts[axis], lengths[axis] = i >> bit & 1, 1
        made.append(Slice(tuple(starts), tuple(lengths)))
    return made


def test_parts_that_are_cut_along_many_axes_take_no_memory_for_what_lies_between() -> None:
    """The grid of their edges had 2**31 cells, which a file of 4 KB could tell."""
    tracemalloc.start()
    assert not tile(halved(31), Slice.whole((2,) * 31))
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("cells", [0, 1 << 20])
def test_parts_tile_a_whole_as_counting_its_elements_says(monkeypatch, cells) -> None:
    """Random parts, some of which are a tiling, by the grid and each compared with each."""
    monkeypatch.setattr(slices, "_CELLS", cells)
    monkeypatch.setattr(slices, "_CELLS_PER_PART", cells)
    rng, seen = np.random.default_rng(0), set()
    for _ in range(400):
        shape = tuple(rng.integers(1, 5, rng.integers(1, 4)).tolist())
        boxes = [[(0, n) for n in shape]]
        for _ in range(rng.integers(0, 4)):  # cut one of the parts in two
            box, axis = boxes.pop(rng.integers(len(boxes))), rng.integers(len(shape))
            start, length = box[axis]
            at = int(rng.integers(0, length + 1))
            boxes += [
                [*box[:axis], cut, *box[axis + 1 :]] for cut in ((start, at), (start + at, length - at)) if cut[1]
            ]
        if rng.random() < 0.5:  # move one
            box, axis = boxes[rng.integers(len(boxes))], rng.integers(len(shape))
            start, length = box[axis]
            box[axis] = (int(rng.integers(0, shape[axis] - length + 1)), length)
        counted = np.zeros(shape, int)
        for box in boxes:
            counted[tuple(slice(a, a + n) for a, n in box)] += 1
        parts = [Slice(tuple(a for a, _ in box), tuple(n for _, n in box)) for box in boxes]
        assert tile(parts, Slice.whole(shape)) == bool((counted == 1).all())
        seen.add(bool((counted == 1).all()))
    assert seen == {True, False}
