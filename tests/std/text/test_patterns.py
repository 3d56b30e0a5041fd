"""Regular expressions: RE2's, on UTF-8 text.

Expected values are TensorFlow's.
"""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np
import pytest

from tests.std.text.results import run

PATTERNS: list[tuple[Any, Any]] = [
    (lambda: tf.regex_replace(["a1b22", "c"], "[0-9]+", "<\\0>"), [b"a<1>b<22>", b"c"]),
    (lambda: tf.regex_replace(["a1b22", "c"], "([a-z])([0-9])", "\\2\\1", replace_global=False), [b"1ab22", b"c"]),
    (lambda: tf.regex_replace("aaa", "", "-"), b"-a-a-a-"),
    (lambda: tf.regex_replace("aaa", "a*", "-"), b"-"),
    (lambda: tf.regex_replace("abc", "b*", "-"), b"-a-c-"),
    (lambda: tf.regex_replace("a.b", "\\.", "\\\\"), b"a\\b"),
    (lambda: tf.regex_replace("hello", tf.constant("l+"), tf.constant("L")), b"heLo"),
    (lambda: tf.regex_replace("héllo", "h.l", "X"), b"Xlo"),
    (lambda: tf.regex_replace("x\ny", ".", "-"), b"-\n-"),
    (lambda: tf.strings.regex_full_match(["abc", "abcd"], "a.c"), [True, False]),
    (lambda: tf.strings.regex_full_match(["abc", "ABC"], "(?i)abc"), [True, True]),
    (lambda: tf.strings.regex_full_match("ab\n", "ab"), False),
    (lambda: tf.regex_replace("abcabc", "b", "\\\\0"), b"a\\0ca\\0c"),
    (lambda: tf.regex_replace("abcabc", "$", "!"), b"abcabc!"),
    (lambda: tf.regex_replace("x1", "[[:alpha:]]", "!"), b"!1"),
    (lambda: tf.regex_replace("é", "\\w", "!"), b"\xc3\xa9"),
]

REFUSED_PATTERNS: list[Any] = [
    lambda: tf.regex_replace("abc", "(", "x"),
    lambda: tf.regex_replace("hello", ["l+"], "L"),
]


@pytest.mark.parametrize("index", range(len(PATTERNS)))
def test_patterns(index: int) -> None:
    build, want = PATTERNS[index]
    fetch = build()
    got = run(fetch)
    np.testing.assert_equal(got, want)


@pytest.mark.parametrize("index", range(len(REFUSED_PATTERNS)))
def test_refused_patterns(index: int) -> None:
    with pytest.raises((ValueError, TypeError)):
        run(REFUSED_PATTERNS[index]())
