"""Numbers as text, tensors as text, and text as numbers.

Expected values are TensorFlow's.
"""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np
import pytest

from tests.std.text.results import run

FORMATS: list[tuple[Any, Any]] = [
    (lambda: tf.strings.format("a {} b {} c", (tf.constant([1, 2, 3]), tf.constant(2.5))), b"a [1 2 3] b 2.5 c"),
    (lambda: tf.strings.format("{}", tf.constant(["x", "y"])), b'["x" "y"]'),
    (lambda: tf.strings.format("{}", tf.constant([[1, 2], [3, 4]])), b"[[1 2]\n [3 4]]"),
    (lambda: tf.strings.format("{}", tf.constant(list(range(10)))), b"[0 1 2 ... 7 8 9]"),
    (lambda: tf.strings.format("{}", tf.constant(list(range(10))), summarize=2), b"[0 1 ... 8 9]"),
    (lambda: tf.strings.format("{}", tf.constant(list(range(10))), summarize=-1), b"[0 1 2 3 4 5 6 7 8 9]"),
    (lambda: tf.strings.format("{}", tf.constant([[[1.5, 2]]])), b"[[[1.5 2]]]"),
    (lambda: tf.strings.format("%t x", tf.constant(True), placeholder="%t"), b"1 x"),
    (lambda: tf.strings.format("{}", tf.constant(1.0 / 3)), b"0.333333343"),
    (lambda: tf.strings.format("{}", tf.constant([])), b"[]"),
    (lambda: tf.as_string([1, -2, 300]), [b"1", b"-2", b"300"]),
    (
        lambda: tf.as_string([1.5, 2.0, 1e10, 1e-10, float("nan"), float("inf"), -0.0]),
        [b"1.500000", b"2.000000", b"10000000000.000000", b"0.000000", b"nan", b"inf", b"-0.000000"],
    ),
    (lambda: tf.as_string([1.5, 2.0, 1e10], precision=2), [b"1.50", b"2.00", b"10000000000.00"]),
    (lambda: tf.as_string([1.5, 2.0, 1e10], scientific=True), [b"1.500000e+00", b"2.000000e+00", b"1.000000e+10"]),
    (lambda: tf.as_string([1.5, 2.0, 1e10, 1 / 3.0], shortest=True), [b"1.5", b"2", b"1e+10", b"0.333333"]),
    (lambda: tf.as_string([1.5, 2.0, 1e10, 1 / 3.0], shortest=True, precision=3), [b"1.5", b"2", b"1e+10", b"0.333"]),
    (lambda: tf.as_string([1.5, -2.0], width=10, fill="0"), [b"001.500000", b"-02.000000"]),
    (lambda: tf.as_string([1.5, -2.0], width=10, fill=" "), [b"  1.500000", b" -2.000000"]),
    (lambda: tf.as_string([1.5, -2.0], width=10, fill="-", precision=1), [b"1.5       ", b"-2.0      "]),
    (lambda: tf.as_string([1.5, -2.0], width=10, fill="+", precision=1), [b"      +1.5", b"      -2.0"]),
    (lambda: tf.as_string([1, -2], width=4), [b"   1", b"  -2"]),
    (lambda: tf.as_string([1, -2], width=4, fill="0"), [b"0001", b"-002"]),
    (lambda: tf.as_string([1, -2], width=4, fill="-"), [b"1   ", b"-2  "]),
    (lambda: tf.as_string([True, False]), [b"true", b"false"]),
    (lambda: tf.as_string([True, False], width=7), [b"true", b"false"]),
    (lambda: tf.as_string(tf.constant([1 + 2j, 0.5 - 1j])), [b"(1.000000,2.000000)", b"(0.500000,-1.000000)"]),
    (lambda: tf.as_string(tf.constant([1 + 2j, 0.5 - 1j], tf.complex128), precision=1), [b"(1.0,2.0)", b"(0.5,-1.0)"]),
    (lambda: tf.as_string(tf.constant([1.5, 0.1], tf.float16)), [b"1.500000", b"0.099976"]),
    (lambda: tf.as_string(tf.constant([1.5, 0.1], tf.float64)), [b"1.500000", b"0.100000"]),
    (lambda: tf.as_string(tf.constant(255, tf.uint8)), b"255"),
    (lambda: tf.as_string(["a"]), [b"a"]),
    (lambda: tf.string_to_number(["1", "-2.5", "1e3", " 3 ", "inf", "nan"]), [1.0, -2.5, 1000.0, 3.0, np.inf, np.nan]),
    (lambda: tf.string_to_number(["1", "-2", " 7 "], tf.int32), [1, -2, 7]),
    (lambda: tf.string_to_number(["3000000000"], tf.int64), [3000000000]),
    (lambda: tf.string_to_number(["0x10", "1e400"], tf.float64), [16.0, np.inf]),
    (lambda: tf.strings.format("{}", tf.constant("x")), b'"x"'),
    (
        lambda: tf.strings.format("{}", tf.constant([[[1, 2], [3, 4]], [[5, 6], [7, 8]]])),
        b"[[[1 2]\n  [3 4]]\n\n [[5 6]\n  [7 8]]]",
    ),
    (
        lambda: tf.strings.format("{}", tf.constant(np.arange(60).reshape(3, 4, 5)), summarize=1),
        b"[[[0 ... 4]\n  ...\n  [15 ... 19]]\n\n ...\n\n [[40 ... 44]\n  ...\n  [55 ... 59]]]",
    ),
    (
        lambda: tf.strings.format("{}", tf.constant([0.1, 1e20, 1e-7, 123456.789, float("nan"), float("inf")])),
        b"[0.1 1e+20 1e-07 123456.789 nan inf]",
    ),
    (
        lambda: tf.strings.format("{}", tf.constant([0.1, 1e20, 1e-7, 123456.789], tf.float64)),
        b"[0.1 1e+20 1e-07 123456.789]",
    ),
    (lambda: tf.strings.format("{}", tf.constant([0.1], tf.float16)), b"[0.0999755859]"),
    (lambda: tf.strings.format("no", []), b"no"),
    (lambda: tf.strings.format("{} {}", [tf.constant(1), tf.constant("a")]), b'1 "a"'),
    (lambda: tf.string_to_number(["+1"], tf.int32), [1]),
    (
        lambda: tf.string_to_number(["+1", "1.", "infinity", "-inf", "NaN", "1e", "1f"][:5]),
        [1.0, 1.0, np.inf, -np.inf, np.nan],
    ),
    (lambda: tf.as_string([1.5], width=4, precision=0), [b"   2"]),
    (lambda: tf.as_string([1.5], width=0), [b"1.500000"]),
    (lambda: tf.as_string(tf.constant([1 + 2j]), width=12), [b"(    1.000000,    2.000000)"]),
    (lambda: tf.as_string([True], fill="0"), [b"true"]),
    (lambda: tf.as_string(["abc"], width=9), [b"      abc"]),
    (lambda: tf.as_string(tf.constant([2**63 - 1], tf.int64)), [b"9223372036854775807"]),
]

REFUSED_FORMATS: list[Any] = [
    lambda: tf.strings.format("{} {}", tf.constant(1)),
    lambda: tf.as_string([1, -2], fill="x"),
    lambda: tf.as_string([1, -2], precision=3),
    lambda: tf.as_string([1], scientific=True),
    lambda: tf.as_string([1.0], scientific=True, shortest=True),
    lambda: tf.string_to_number(["1.5"], tf.int32),
    lambda: tf.string_to_number(["3000000000"], tf.int32),
    lambda: tf.string_to_number(["abc"]),
    lambda: tf.string_to_number([""]),
    lambda: tf.string_to_number(["1_0"]),
    lambda: tf.strings.format("{}", [1, 2]),
    lambda: tf.string_to_number(["1e"]),
]


@pytest.mark.parametrize("index", range(len(FORMATS)))
def test_formats(index: int) -> None:
    build, want = FORMATS[index]
    fetch = build()
    got = run(fetch)
    np.testing.assert_equal(got, want)


@pytest.mark.parametrize("index", range(len(REFUSED_FORMATS)))
def test_refused_formats(index: int) -> None:
    with pytest.raises((ValueError, TypeError)):
        run(REFUSED_FORMATS[index]())


@pytest.mark.parametrize("given", [{"precision": 2}, {"scientific": True}, {"shortest": True}])
def test_formats_of_floats_are_not_for_bools_and_pass_by_strings(given: dict[str, Any]) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match="floating"):
            tf.as_string([True], **given)
        assert session.run(tf.as_string(["a"], **given)).tolist() == [b"a"]
        assert session.run(tf.as_string(tf.constant([5], tf.uint8), width=3, fill="+")).tolist() == [b"  5"]
