"""What reads bytes: base64, raw numbers, CSV.

Expected values are TensorFlow's.
"""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np
import pytest

from tests.std.text.results import run

DECODING: list[tuple[Any, Any]] = [
    (lambda: tf.encode_base64(["hello", "a?>\xff", ""]), [b"aGVsbG8", b"YT8-w78", b""]),
    (lambda: tf.encode_base64(["hello", "a", ""], pad=True), [b"aGVsbG8=", b"YQ==", b""]),
    (lambda: tf.decode_base64(["aGVsbG8", "aGVsbG8=", "", "YT8-w78"]), [b"hello", b"hello", b"", b"a?>\xc3\xbf"]),
    (lambda: tf.decode_raw(["abcd", "efgh"], tf.uint8), [[97, 98, 99, 100], [101, 102, 103, 104]]),
    (lambda: tf.decode_raw(["abcd", "efgh"], tf.int16), [[25185, 25699], [26213, 26727]]),
    (lambda: tf.decode_raw(["abcd", "efgh"], tf.int16, little_endian=False), [[24930, 25444], [25958, 26472]]),
    (lambda: tf.decode_raw("abcd", tf.float32), [1.6777999408082104e22]),
    (lambda: tf.decode_raw(["", ""], tf.float32), [[], []]),
    (lambda: tf.decode_raw(tf.constant([], tf.string), tf.float32), []),
    (lambda: tf.decode_csv(["1,2.5,a", "3,4,b"], [[0], [1.0], ["x"]]), [[1, 3], [2.5, 4.0], [b"a", b"b"]]),
    (lambda: tf.decode_csv(["1,,a", ",4,"], [[7], [1.0], ["x"]]), [[1, 7], [1.0, 4.0], [b"a", b"x"]]),
    (lambda: tf.decode_csv(['1,"a,b""c",3'], [[0], [""], [0]]), [[1], [b'a,b"c'], [3]]),
    (lambda: tf.decode_csv(["1;2"], [[0], [0]], field_delim=";"), [[1], [2]]),
    (lambda: tf.decode_csv(["1,NA"], [[0], [5]], na_value="NA"), [[1], [5]]),
    (lambda: tf.decode_csv(["1,2,3"], [[0], [0]], select_cols=[0, 2]), [[1], [3]]),
    (lambda: tf.decode_csv("1,2", [[0], [0]]), [1, 2]),
    (lambda: tf.decode_csv(['1,"a"b'], [[0], [""]], use_quote_delim=False), [[1], [b'"a"b']]),
    (lambda: tf.decode_csv([" 1 , 2.5"], [[0], [0.0]]), [[1], [2.5]]),
    (lambda: tf.decode_csv(["1,2"], [0, 1.5]), [[1], [2.0]]),
    (lambda: tf.decode_base64(["YR"]), [b"a"]),
    (lambda: tf.decode_raw(["abcdefgh"], tf.complex64), [[(1.6777999408082104e22 + 4.371022013021617e24j)]]),
    (lambda: tf.decode_csv([["1,2"], ["3,4"]], [[0], [0]]), [[[1], [3]], [[2], [4]]]),
    (lambda: tf.decode_csv(["1|2"], [[0], [0]], "|"), [[1], [2]]),
    (lambda: tf.decode_csv(['"1",2'], [[0], [0]]), [[1], [2]]),
    (lambda: tf.decode_csv(['"",2'], [[9], [0]]), [[9], [2]]),
    (lambda: tf.decode_csv(['a,"b\nc"'], [[""], [""]]), [[b"a"], [b"b\nc"]]),
    (lambda: tf.decode_csv([","], [[""], ["z"]]), [[b""], [b"z"]]),
]

REFUSED_DECODING: list[Any] = [
    lambda: tf.decode_base64(["a+/b"]),
    lambda: tf.decode_base64(["a"]),
    lambda: tf.decode_raw(["abc"], tf.int16),
    lambda: tf.decode_raw(["abcd", "ef"], tf.uint8),
    lambda: tf.decode_csv(["1,2,3"], [[0], [0]]),
    lambda: tf.decode_csv([",2"], [tf.constant([], tf.int32), [0]]),
    lambda: tf.decode_csv(['1,a"b"c'], [[0], [""]]),
    lambda: tf.decode_csv(['1,"a'], [[0], [""]]),
    lambda: tf.decode_csv(['1,"a"b'], [[0], [""]]),
    lambda: tf.decode_csv(["x,1"], [[0], [0]]),
    lambda: tf.decode_csv(["1,2\n"], [[0], [0]]),
    lambda: tf.decode_csv(["1,2\r\n"], [[0], [0]]),
    lambda: tf.decode_csv([""], [[1]]),
    lambda: tf.decode_csv(["1,2"], [tf.int32, tf.float32]),
    lambda: tf.decode_csv(["a\nb,2"], [[""], [0]]),
    lambda: tf.decode_base64(["YQ=", "YQ==="]),
    lambda: tf.decode_base64(["YQ="]),
    lambda: tf.decode_raw(["ab"], tf.bool),
    lambda: tf.decode_csv(["1"], [[1, 2]]),
    lambda: tf.decode_csv(["1,2"], [[0], [0]], select_cols=[0, 5]),
    lambda: tf.decode_csv(["1,2"], [[0], [0]], select_cols=[1, 0]),
    lambda: tf.decode_csv(["1,2"], [[0], [0]], field_delim="ab"),
]


@pytest.mark.parametrize("index", range(len(DECODING)))
def test_decoding(index: int) -> None:
    build, want = DECODING[index]
    fetch = build()
    got = run(fetch)
    np.testing.assert_equal(got, want)


@pytest.mark.parametrize("index", range(len(REFUSED_DECODING)))
def test_refused_decoding(index: int) -> None:
    with pytest.raises((ValueError, TypeError)):
        run(REFUSED_DECODING[index]())
