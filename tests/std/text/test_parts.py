"""Joining strings, splitting them, and parts of them.

Expected values are TensorFlow's.
"""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np
import pytest

from tests.std.text.results import run

PARTS: list[tuple[Any, Any]] = [
    (lambda: tf.string_join([["a", "b"], "x", ["c", "d"]], "-"), [b"a-x-c", b"b-x-d"]),
    (lambda: tf.strings.join(["a", "b"]), b"ab"),
    (lambda: tf.substr(["hello", "world"], 1, 3), [b"ell", b"orl"]),
    (lambda: tf.substr("hello", -3, 2), b"ll"),
    (lambda: tf.substr(["hello", "world!"], [1, -3], [2, 9]), [b"el", b"ld!"]),
    (lambda: tf.substr("hello", [0, 1, 2], [1, 1, 1]), [b"h", b"e", b"l"]),
    (lambda: tf.substr([["hello"], ["world"]], [1, 2], [3, 1]), [[b"ell", b"l"], [b"orl", b"r"]]),
    (lambda: tf.substr("hello", 5, 1), b""),
    (lambda: tf.substr("hello", 1, -1), b"ello"),
    (lambda: tf.strings.substr("héllo", 1, 2), b"\xc3\xa9"),
    (lambda: tf.strings.substr("héllo", 1, 2, unit="UTF8_CHAR"), b"\xc3\xa9l"),
    (lambda: tf.strings.substr("héllo", -4, 2, unit="UTF8_CHAR"), b"\xc3\xa9l"),
    (lambda: tf.reduce_join([["a", "b"], ["c", "d"]], 0), [b"ac", b"bd"]),
    (lambda: tf.reduce_join([["a", "b"], ["c", "d"]], 1, separator="-"), [b"a-b", b"c-d"]),
    (lambda: tf.reduce_join([["a", "b"], ["c", "d"]], [0, 1]), b"acbd"),
    (lambda: tf.reduce_join([["a", "b"], ["c", "d"]], [1, 0]), b"abcd"),
    (lambda: tf.reduce_join([["a", "b"], ["c", "d"]]), b"abcd"),
    (lambda: tf.reduce_join([["a", "b"], ["c", "d"]], -1, keep_dims=True), [[b"ab"], [b"cd"]]),
    (lambda: tf.reduce_join([["a", "b"], ["c", "d"]], []), [[b"a", b"b"], [b"c", b"d"]]),
    (lambda: tf.reduce_join("a", []), b"a"),
]

#: Indices, values and shape of sparse tensors.
SPLITS: list[tuple[Any, Any]] = [
    (
        lambda: tf.string_split(["hello world", "", " a  b c "]),
        [[[0, 0], [0, 1], [2, 0], [2, 1], [2, 2]], [b"hello", b"world", b"a", b"b", b"c"], [3, 3]],
    ),
    (
        lambda: tf.string_split(["a,b,,c", ",d"], ","),
        [[[0, 0], [0, 1], [0, 2], [1, 0]], [b"a", b"b", b"c", b"d"], [2, 3]],
    ),
    (
        lambda: tf.string_split(["a,b,,c", ",d"], ",", skip_empty=False),
        [[[0, 0], [0, 1], [0, 2], [0, 3], [1, 0], [1, 1]], [b"a", b"b", b"", b"c", b"", b"d"], [2, 4]],
    ),
    (lambda: tf.string_split(["a,b;c"], ",;"), [[[0, 0], [0, 1], [0, 2]], [b"a", b"b", b"c"], [1, 3]]),
    (
        lambda: tf.string_split(["abc", "de"], ""),
        [[[0, 0], [0, 1], [0, 2], [1, 0], [1, 1]], [b"a", b"b", b"c", b"d", b"e"], [2, 3]],
    ),
    (
        lambda: tf.string_split(["abc", ""], "", skip_empty=False),
        [[[0, 0], [0, 1], [0, 2]], [b"a", b"b", b"c"], [2, 3]],
    ),
    (
        lambda: tf.strings.split(["hello  world", "a b c"]),
        [[[0, 0], [0, 1], [1, 0], [1, 1], [1, 2]], [b"hello", b"world", b"a", b"b", b"c"], [2, 3]],
    ),
    (
        lambda: tf.strings.split(["a--b--c", "--d"], "--"),
        [[[0, 0], [0, 1], [0, 2], [1, 0], [1, 1]], [b"a", b"b", b"c", b"", b"d"], [2, 3]],
    ),
    (
        lambda: tf.strings.split(["a,b,c,d", "e"], ",", maxsplit=2),
        [[[0, 0], [0, 1], [0, 2], [1, 0]], [b"a", b"b", b"c,d", b"e"], [2, 3]],
    ),
    (
        lambda: tf.strings.split(["  a b  c d ", "e"], maxsplit=1),
        [[[0, 0], [0, 1], [1, 0]], [b"a", b"b  c d ", b"e"], [2, 2]],
    ),
    (lambda: tf.strings.split("a b"), [[[0, 0], [0, 1]], [b"a", b"b"], [1, 2]]),
    (lambda: tf.string_split(["a b"], delimiter=tf.constant(" ")), [[[0, 0], [0, 1]], [b"a", b"b"], [1, 2]]),
    (
        lambda: tf.string_split(tf.constant(["a b"]), skip_empty=True, delimiter=" "),
        [[[0, 0], [0, 1]], [b"a", b"b"], [1, 2]],
    ),
    (lambda: tf.string_split(tf.constant([], tf.string)), [[], [], [0, 0]]),
    (lambda: tf.strings.split(tf.constant(["a b"]), sep=" ", maxsplit=0), [[[0, 0]], [b"a b"], [1, 1]]),
    (lambda: tf.strings.split(tf.constant(["abc"]), sep="", maxsplit=1), [[[0, 0]], [b"abc"], [1, 1]]),
]

REFUSED_PARTS: list[Any] = [
    lambda: tf.string_join([["a", "b"], ["c"]]),
    lambda: tf.string_split("abc"),
    lambda: tf.string_split([["abc"]]),
    lambda: tf.substr("hello", 6, 1),
    lambda: tf.substr("hello", -6, 1),
    lambda: tf.strings.substr("hello", [1, 2], [1]),
    lambda: tf.reduce_join([["a", "b"], ["c", "d"]], 2),
    lambda: tf.reduce_join([["a", "b"], ["c", "d"]], [0, 0]),
]


@pytest.mark.parametrize("index", range(len(PARTS)))
def test_parts(index: int) -> None:
    build, want = PARTS[index]
    fetch = build()
    got = run(fetch)
    np.testing.assert_equal(got, want)


@pytest.mark.parametrize("index", range(len(SPLITS)))
def test_splits(index: int) -> None:
    build, want = SPLITS[index]
    assert run(build()) == want


@pytest.mark.parametrize("index", range(len(REFUSED_PARTS)))
def test_refused_parts(index: int) -> None:
    with pytest.raises((ValueError, TypeError)):
        run(REFUSED_PARTS[index]())


def test_an_empty_element_has_no_parts_though_empty_ones_are_kept() -> None:
    indices, values, _ = run(tf.string_split(["", " ", "a  b"], skip_empty=False))
    assert indices == [[1, 0], [1, 1], [2, 0], [2, 1], [2, 2]]
    assert values == [b"", b"", b"a", b"", b"b"]


def test_bytes_that_are_no_utf_8_are_replaced_where_case_is_changed_by_character() -> None:
    lower, upper = (run(f([b"A\xff\xfe\xc3\x89"], encoding="utf-8")) for f in (tf.strings.lower, tf.strings.upper))
    assert lower == ["a\ufffd\ufffd\u00e9".encode()]
    assert upper == ["A\ufffd\ufffd\u00c9".encode()]
    assert run(tf.strings.lower([b"A\xff"])) == [b"a\xff"]


def test_what_is_no_number_is_filled_with_spaces() -> None:
    made = run(tf.as_string(np.array([1.5, np.nan, np.inf, -np.inf]), width=8, precision=1, fill="0"))
    assert made == [b"000001.5", b"     nan", b"     inf", b"    -inf"]
