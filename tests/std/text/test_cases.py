"""Space, case and length of strings.

Expected values are TensorFlow's.
"""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np
import pytest

from tests.std.text.results import run

CASES: list[tuple[Any, Any]] = [
    (lambda: tf.string_strip([" a b \n", "\t", "x\v\f\r "]), [b"a b", b"", b"x"]),
    (lambda: tf.strings.lower(["ABC É", "x"]), [b"abc \xc3\x89", b"x"]),
    (lambda: tf.strings.upper(["abc é", "x"]), [b"ABC \xc3\xa9", b"X"]),
    (lambda: tf.strings.lower(["ABC É"], encoding="utf-8"), [b"abc \xc3\xa9"]),
    (lambda: tf.strings.upper(["straße"], encoding="utf-8"), [b"STRASSE"]),
    (lambda: tf.strings.length(["abc", "é", ""]), [3, 2, 0]),
    (lambda: tf.strings.length(["abc", "é", ""], unit="UTF8_CHAR"), [3, 1, 0]),
    (lambda: tf.strings.length(b"\xff\xfe", unit="UTF8_CHAR"), 2),
]

REFUSED_CASES: list[Any] = [
    lambda: tf.strings.length([["a"]], unit="X"),
]


@pytest.mark.parametrize("index", range(len(CASES)))
def test_cases(index: int) -> None:
    build, want = CASES[index]
    fetch = build()
    got = run(fetch)
    np.testing.assert_equal(got, want)


@pytest.mark.parametrize("index", range(len(REFUSED_CASES)))
def test_refused_cases(index: int) -> None:
    with pytest.raises((ValueError, TypeError)):
        run(REFUSED_CASES[index]())
