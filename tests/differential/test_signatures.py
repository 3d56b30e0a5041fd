"""One session, many forms of call that look alike: each keeps the structure and the feeds it was called with."""

from __future__ import annotations

import collections

import graphdock as tf
import pytest

Pair = collections.namedtuple("Pair", ["first", "second"])


@pytest.fixture
def tensors():
    with tf.Graph().as_default():
        yield tf.placeholder_with_default(1.0, []), tf.placeholder_with_default(2.0, [])


def test_a_fed_tensor_is_no_second_fetch(tensors):
    a, b = tensors
    for forms in ("ft", "tf"):
        with tf.Session() as sess:
            for form in forms * 2:
                if form == "f":
                    assert sess.run(a, {b: 5.0}) == 1.0
                else:
                    assert sess.run((a, b)) == (1.0, 2.0)


def test_structures_that_compare_equal_stay_apart(tensors):
    a, b = tensors
    forms = [
        (a, b),
        Pair(a, b),
        [a, b],
        [a, (a, b)],
        [a, Pair(a, b)],
        (a, Pair(a, b)),
        (a, (a, b)),
        (a, [a, b]),
        {1: a},
    ]
    expected = [
        (1, 2),
        Pair(1, 2),
        [1, 2],
        [1, (1, 2)],
        [1, Pair(1, 2)],
        (1, Pair(1, 2)),
        (1, (1, 2)),
        (1, [1, 2]),
        {1: 1},
    ]

    def types(value):
        if isinstance(value, dict):
            return dict, [types(v) for v in value.values()]
        return (type(value), [types(v) for v in value]) if isinstance(value, (list, tuple)) else None

    for order in (range(len(forms)), reversed(range(len(forms)))):
        with tf.Session() as sess:
            for i in [*order] * 2:
                got = sess.run(forms[i])
                assert got == expected[i] and types(got) == types(expected[i])
                fed = sess.run(forms[i], {b: 2.0})
                assert fed == expected[i] and types(fed) == types(expected[i])
