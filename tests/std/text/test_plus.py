"""Strings with ``+``, in lists, and of placeholders."""

from __future__ import annotations

from typing import Any

import graphdock as tf
import pytest


def run(fetch: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(fetch, feed)


def test_plus_joins() -> None:
    x = tf.placeholder(tf.string, [None])
    assert run(x + "!", {x: ["a", "é"]}).tolist() == [b"a!", "é!".encode()]
    assert run("<" + x + x, {x: ["a"]}).tolist() == [b"<aa"]
    assert (x + "!").shape.as_list() == [None]
    with pytest.raises(ValueError):
        tf.constant(["a", "b"]) + tf.constant(["a", "b", "c"])
    assert run(tf.constant(1) + 2) == 3


def test_scalars_are_stacked() -> None:
    x = tf.placeholder(tf.string, [])
    assert run(tf.stack([x, "b"]), {x: "a"}).tolist() == [b"a", b"b"]
    assert run(tf.stack([["a"], [x]]), {x: "c"}).tolist() == [[b"a"], [b"c"]]


def test_no_strings_are_strings_too() -> None:
    empty = tf.constant([], tf.string)
    assert empty.dtype == tf.string and empty.shape.as_list() == [0]
    assert run(tf.strings.length(empty)).shape == (0,)


def test_static_shapes() -> None:
    x = tf.placeholder(tf.string)
    matrix = tf.placeholder(tf.string, [None, 3])
    assert tf.string_join([x, "a"]).shape.ndims is None
    assert tf.string_join([matrix, "a"]).shape.as_list() == [None, 3]
    assert tf.reduce_join(matrix, 1).shape.as_list() == [None]
    assert tf.reduce_join(matrix, 0, keep_dims=True).shape.as_list() == [1, 3]
    assert tf.decode_raw(matrix, tf.uint8).shape.as_list() == [None, 3, None]
    first, second = tf.decode_csv(matrix, [[1], [""]])
    assert first.shape.as_list() == second.shape.as_list() == [None, 3]
    assert run(tf.reduce_join(x), {x: [["a", "b"], ["c", "d"]]}) == b"abcd"


def test_a_pattern_may_change_from_step_to_step() -> None:
    pattern = tf.placeholder(tf.string, [])
    replaced, whole = tf.regex_replace(["aab"], pattern, "-"), tf.strings.regex_full_match(["aab"], pattern)
    with tf.Session() as session:
        assert [v.tolist() for v in session.run([replaced, whole], {pattern: "a"})] == [[b"--b"], [False]]
        assert [v.tolist() for v in session.run([replaced, whole], {pattern: "a+b"})] == [[b"-"], [True]]
