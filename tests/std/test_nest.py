"""``tf.nest``: what flattens, packs, maps and differs."""

from __future__ import annotations

from collections import namedtuple

import graphdock as tf
import numpy as np
import pytest

State = namedtuple("State", "c h")
NESTED = {"b": [1, (2, 3)], "a": State(4, {"z": 5, "y": 6})}


def test_structures_are_flattened_packed_and_mapped() -> None:
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
def test_structures_that_differ(a, b, error) -> None:
    tf.nest.assert_same_structure(a, a)
    with pytest.raises(error):
        tf.nest.assert_same_structure(a, b)
    with pytest.raises(error):
        tf.nest.map_structure(lambda x, y: x, a, b)


def test_what_cannot_be_packed() -> None:
    with pytest.raises(ValueError, match="expected 2 values, got 1"):
        tf.nest.pack_sequence_as([1, 2], [3])
    with pytest.raises(TypeError, match="must be a list"):
        tf.nest.pack_sequence_as([1], 3)
    with pytest.raises(TypeError, match="no structure"):
        tf.nest.map_structure(len)
