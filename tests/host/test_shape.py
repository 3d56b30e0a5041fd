"""Static shapes: what is read as one, what two of them say together, broadcasting as NumPy has it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from graphdock.errors import InvalidArgumentError, ShapeError
from graphdock.shape import as_dims, broadcast, compatible, merge, show, size
from graphdock.tensor_shape import TensorShape

SHAPES = [None, (), (1,), (3,), (None,), (2, 3), (None, 3), (2, None), (1, 3), (2, 1, 3)]


@pytest.mark.parametrize(
    ("value", "dims"),
    [
        (None, None),
        (3, (3,)),
        ([], ()),
        ([2, None, None], (2, None, None)),
        (np.array([2, 3]), (2, 3)),
        (np.int64(4), (4,)),
        (range(2), (0, 1)),
        (TensorShape([None, 2]), (None, 2)),
    ],
)
def test_what_is_read_as_a_shape(value, dims):
    assert as_dims(value) == dims


@pytest.mark.parametrize(
    ("value", "match"),
    [
        ([-2], "dim -2 is negative"),
        ([1.5], "1.5 is not an integer"),
        (1.5, "is not a shape"),
        (["a"], "'a' is not an integer"),
        ([1] * 255, "rank 255 is above the limit"),
    ],
)
def test_what_is_no_shape(value, match):
    with pytest.raises(ShapeError, match=match):
        as_dims(value)


def test_two_partial_shapes_make_one():
    assert merge((None, 2, None), (3, None, None)) == (3, 2, None)
    assert merge(None, (1,)) == merge((1,), None) == (1,)


@pytest.mark.parametrize(("a", "b"), list(itertools.product(SHAPES, repeat=2)), ids=str)
def test_shapes_merge_where_they_are_compatible_and_the_result_satisfies_both(a, b):
    assert compatible(a, b) is compatible(b, a)
    if not compatible(a, b):
        with pytest.raises(ShapeError, match="do not agree"):
            merge(a, b)
        return
    both = merge(a, b)
    assert both == merge(b, a)
    for one in (a, b):
        assert one is None or (both is not None and all(x in (None, y) for x, y in zip(one, both, strict=True)))


def test_known_shapes_broadcast_as_numpys_do():
    for shapes in itertools.product([s for s in SHAPES if s is not None and None not in s], repeat=3):
        try:
            want = np.broadcast_shapes(*shapes)
        except ValueError:
            with pytest.raises(ShapeError, match="cannot be broadcast together"):
                broadcast(*shapes)
        else:
            assert broadcast(*shapes) == want


def test_a_broadcast_of_partial_shapes_holds_whatever_the_dims_turn_out_to_be():
    whole = [s for s in itertools.product((1, 2, 3), repeat=2)]
    for a, b in itertools.product([(None, 3), (2, None), (None, None), (1, 3)], repeat=2):
        found = broadcast(a, b)
        for x, y in itertools.product(whole, repeat=2):
            if compatible(a, x) and compatible(b, y):
                try:
                    real = np.broadcast_shapes(x, y)
                except ValueError:
                    continue
                assert compatible(found, real), (a, b, x, y)


def test_sizes_and_texts():
    for dims in SHAPES:
        known = dims is not None and None not in dims
        assert size(dims) == (math.prod(dims) if known else None)
    assert [show(s) for s in (None, (), (2, None))] == ["<unknown>", "[]", "[2,?]"]


def test_a_shape_for_people():
    shape = TensorShape([None, 3])
    assert shape == [None, 3] == TensorShape((None, 3)) and shape != [2, 3] and shape != "no shape"
    assert (shape.rank, shape.ndims, len(shape), list(shape), shape[1], shape[:1]) == (2, 2, 2, [None, 3], 3, [None])
    assert not shape.is_fully_defined() and TensorShape([2]).is_fully_defined() and shape.num_elements() is None
    assert shape.is_compatible_with([5, 3]) and not shape.is_compatible_with([3])
    assert shape.merge_with([2, None]) == [2, 3] and shape.concatenate([4]) == [None, 3, 4]
    assert shape.concatenate(None).rank is None
    assert (repr(shape), str(shape), bool(shape)) == ("TensorShape([Dimension(None), Dimension(3)])", "(?, 3)", True)


def test_a_shape_of_unknown_rank():
    shape = TensorShape(None)
    assert (shape.rank, shape[0], shape[1:].rank, bool(shape), shape == None) == (None, None, None, False, True)  # noqa: E711
    for ask in (shape.as_list, lambda: len(shape), lambda: list(shape)):
        with pytest.raises(InvalidArgumentError):
            ask()
