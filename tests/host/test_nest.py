"""Nested structures: flattened and packed again, mapped, compared; deep ones without recursion where it can matter."""

from __future__ import annotations

from collections import OrderedDict, namedtuple

import graphdock as tf
import numpy as np
import pytest
from graphdock import nest
from graphdock.errors import InvalidArgumentError

Pair = namedtuple("Pair", "left right")

STRUCTURES = [
    1,
    [],
    [1, 2],
    (1, [2, (3,)]),
    {"b": 1, "a": (2, 3)},
    Pair([1], {"x": 2}),
    OrderedDict(z=1, y=2),
    [{"k": Pair(1, (2, 3))}, None],
]


@pytest.mark.parametrize("structure", STRUCTURES, ids=repr)
def test_what_is_flattened_is_packed_as_it_was(structure):
    packed = nest.pack_sequence_as(structure, nest.flatten(structure))
    assert packed == structure
    assert nest.map_structure(lambda leaf: leaf, structure) == structure
    nest.assert_same_structure(structure, packed)


def test_dicts_are_flattened_by_key_and_packed_in_their_own_order():
    given = {"b": 1, "a": (2, 3)}
    assert nest.flatten(given) == [2, 3, 1]
    packed = nest.map_structure(lambda v: v * 10, given)
    assert packed == {"b": 10, "a": (20, 30)} and list(packed) == ["b", "a"]


def test_kinds_of_containers_are_kept():
    packed = nest.map_structure(str, Pair([1], (2,)))
    assert packed == Pair(["1"], ("2",)) and type(packed) is Pair


def test_a_deep_structure_is_flattened():
    deep = leaf = object()
    for _ in range(50_000):
        deep = [deep]
    assert nest.flatten(deep) == [leaf]


@pytest.mark.parametrize(("structure", "flat"), [([1, 2], [1]), ((), [1]), (1, [])])
def test_leaves_must_fill_the_structure(structure, flat):
    with pytest.raises(InvalidArgumentError, match="cannot be packed"):
        nest.pack_sequence_as(structure, flat)


def test_keys_that_can_not_be_sorted_are_named():
    with pytest.raises(InvalidArgumentError, match="must be sortable"):
        nest.flatten({1: "a", "b": "c"})


@pytest.mark.parametrize(
    ("first", "second", "match"),
    [
        ([1, 2], (1, 2), "expected a list of 2, got a tuple of 2"),
        ([1, 2], [1], "expected a list of 2, got a list of 1"),
        ([1, [2]], [1, 2], r"at \[1\]\n  expected a list of 1, got one int"),
        ({"a": 1}, {"b": 1}, "missing: 'a'; not expected: 'b'"),
        (Pair(1, 2), (1, 2), "a Pair with the fields left, right"),
        ({"a": [1, {"b": 2}]}, {"a": [1, 2]}, r"at \['a'\]\[1\]"),
    ],
)
def test_the_first_difference_is_shown_with_its_place(first, second, match):
    with pytest.raises(InvalidArgumentError, match=match):
        nest.check_same_structure(first, second)


def test_kinds_may_differ_where_they_are_not_asked_for():
    nest.assert_same_structure([1, (2,)], (1, [2]), check_types=False)
    assert nest.same_structure([1, (2,)], (1, [2])) and not nest.same_structure([1, (2,)], (1, [2, 3]))
    assert not nest.same_structure([1, 2], {0: 1, 1: 2})


def test_flattened_up_to_another_structure():
    shallow = {"b": 1, "a": [2, 3]}
    assert nest.flatten_up_to(shallow, {"a": [[1, 2], None], "b": [3]}) == [[1, 2], None, [3]]
    with pytest.raises(InvalidArgumentError, match="shapes does not have the structure of the loop"):
        nest.flatten_up_to(shallow, {"a": [1], "b": 2}, "shapes", "the loop")


# -- tf.nest

State = namedtuple("State", "c h")
NESTED = {"b": [1, (2, 3)], "a": State(4, {"z": 5, "y": 6})}


def test_structures_are_flattened_packed_and_mapped():
    assert tf.nest.flatten(NESTED) == [4, 6, 5, 1, 2, 3] and tf.nest.flatten(7) == [7]
    assert tf.nest.pack_sequence_as(NESTED, tf.nest.flatten(NESTED)) == NESTED
    doubled = tf.nest.map_structure(lambda a, b: a + b, NESTED, NESTED)
    assert doubled == {"b": [2, (4, 6)], "a": State(8, {"z": 10, "y": 12})} and type(doubled["a"]) is State
    assert tf.nest.map_structure(lambda a, b: a * b, [2, 3], (4, 5), check_types=False) == [8, 15]
    assert [tf.nest.is_nested(v) for v in ([], (), {}, State(1, 2), "ab", np.zeros(2), 3)] == [True] * 4 + [False] * 3
    assert tf.contrib.framework.nest.flatten is tf.nest.flatten


@pytest.mark.parametrize(
    ("a", "b", "error"),
    [
        ([1, 2], [1, 2, 3], ValueError),
        ([1, 2], 3, ValueError),
        ({"a": 1}, {"b": 1}, ValueError),
        ([1, (2, 3)], [1, 2], ValueError),
        ([1, 2], (1, 2), TypeError),
        (State(1, 2), (1, 2), TypeError),
        ([1, 2], {0: 1, 1: 2}, TypeError),
    ],
)
def test_structures_that_differ(a, b, error):
    tf.nest.assert_same_structure(a, a)
    with pytest.raises(error):
        tf.nest.assert_same_structure(a, b)
    with pytest.raises(error):
        tf.nest.map_structure(lambda x, y: x, a, b)


def test_what_cannot_be_packed():
    with pytest.raises(ValueError, match="expected 2 values, got 1"):
        tf.nest.pack_sequence_as([1, 2], [3])
    with pytest.raises(TypeError, match="must be a list"):
        tf.nest.pack_sequence_as([1], 3)
    with pytest.raises(TypeError, match="no structure"):
        tf.nest.map_structure(len)
