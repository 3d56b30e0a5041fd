"""Values of features out of bytes: those that the library's own messages have, or none where the form is another one."""

from __future__ import annotations

import random

import graphdock as tf
import numpy as np
import pytest
from google.protobuf.message import DecodeError
from graphdock import messages
from graphdock_data.kernels.feature_bytes import all_are, values_of

FIELDS = {"string": "bytes_list", "float32": "float_list", "int64": "int64_list"}


def parse(data):
    return messages.make("Feature").FromString(data)


def lists(dtype, given):
    """Values that protobuf reads of each by itself."""
    return [list(getattr(parse(data), FIELDS[dtype]).value) for data in given]


def found(dtype, given):
    read = values_of(dtype, parse, given)
    if read is None:
        return None
    flat, counts = read
    assert flat.dtype == (object if dtype == "string" else dtype) and flat.flags.writeable
    counts = [counts] * len(given) if isinstance(counts, int) else list(counts)
    assert all_are(read[1], counts[0]) == (set(counts) == {counts[0]})
    at = np.cumsum([0, *counts])
    assert at[-1] == len(flat)
    return [flat[a:b].tolist() for a, b in zip(at, at[1:], strict=False)]


def draw(rng, dtype, count):
    if dtype == "string":
        return [rng.randbytes(rng.choice([0, 1, 5, 126, 127, 128, 300])) for _ in range(count)]
    if dtype == "int64":
        return [rng.choice([0, 1, 127, 128, 2**31, 2**63 - 1, -1, -(2**63)]) for _ in range(count)]
    return [float(np.float32(rng.uniform(-1e6, 1e6))) for _ in range(count)]


@pytest.mark.parametrize("dtype", FIELDS)
def test_random_features_are_read_as_the_library_reads_them(made, dtype):
    rng = random.Random(7)
    quick = 0
    for trial in range(300):
        count = rng.choice([None, 0, 1, 1, 3, 31, 32, 40])
        many = rng.choice([1, 2, 9])
        values = [draw(rng, dtype, rng.randrange(4) if count is None else count) for _ in range(many)]
        given = [made.feature(v).SerializeToString() if v or rng.random() < 0.5 else b"" for v in values]
        read = found(dtype, given)
        quick += read is not None
        assert read is None or read == lists(dtype, given), (trial, values)
    assert quick > 250  # of what the library itself has written, hardly any are left to it


def written(tag, *parts):
    """A field of bytes, whose number of them is written in one or two bytes."""
    data = b"".join(parts)
    size = len(data)
    return bytes([tag, size] if size < 128 else [tag, size & 127 | 128, size >> 7]) + data


ONE = {"float32": written(0x12, written(0x0A, b"\0\0\x80?")), "int64": written(0x1A, written(0x0A, b"\x05"))}
ONE["string"] = written(0x0A, written(0x0A, b"five"))

#: Forms that are allowed, and others that are of another dtype.
FORMS = {
    "unpacked floats": ("float32", b"\x12\x05\x0d\0\0\x80?"),
    "unpacked integers": ("int64", b"\x1a\x02\x08\x05"),
    "packed in two pieces": ("int64", b"\x1a\x06\x0a\x01\x05\x0a\x01\x06"),
    "a list twice": ("int64", b"\x1a\x03\x0a\x01\x05\x1a\x03\x0a\x01\x06"),
    "strings twice": ("string", 2 * ONE["string"]),
    "one kind over another": ("int64", ONE["float32"] + ONE["int64"]),
    "an unknown field in a list": ("string", written(0x0A, b"\x10\x01", written(0x0A, b"x"))),
    "an unknown field in a feature": ("string", ONE["string"] + b"\x28\x01"),
    "a length in more bytes than it needs": ("string", b"\x0a\x83\0\x0a\x01x"),
    "an inner length in more bytes": ("string", b"\x0a\x04\x0a\x81\0x"),
    "an empty list in more bytes": ("int64", b"\x1a\x80\0"),
    "a packed list without numbers": ("int64", b"\x1a\x02\x0a\0"),
    "another dtype": ("int64", ONE["float32"]),
    "no values of another dtype": ("int64", b"\x12\0"),
}


@pytest.mark.parametrize("form", FORMS)
def test_other_forms_are_read_as_the_library_reads_them_or_not_at_all(form):
    dtype, data = FORMS[form]
    plain = ONE[dtype]
    for given in ([data], [plain, data], [data, plain, data], [plain, b"", data, plain]):
        read = found(dtype, given)
        assert read is None or read == lists(dtype, given)


@pytest.mark.parametrize("dtype", FIELDS)
def test_what_is_damaged_is_not_read(dtype):
    """Each feature cut short: before another one, whose first bytes must not become its last."""
    whole = ONE[dtype]
    for end in range(1, len(whole)):
        try:
            assert values_of(dtype, parse, [whole[:end], whole]) is None
        except DecodeError:
            pass
    with pytest.raises(tf.errors.InvalidArgumentError, match="Example 1"):
        example = messages.make("ExampleInBytes", features={"feature": {"a": whole}}).SerializeToString()
        wrong = messages.make("ExampleInBytes", features={"feature": {"a": whole[:-1]}}).SerializeToString()
        with tf.Graph().as_default(), tf.Session() as sess:
            sess.run(tf.parse_example([example, wrong], {"a": tf.FixedLenFeature([], dtype)}))


def test_a_damaged_feature_that_nobody_asks_for_is_let_be():
    """As TensorFlow 2.21 does, which gives 5."""
    data = messages.make(
        "ExampleInBytes", features={"feature": {"a": ONE["int64"], "b": b"\xff\xff"}}
    ).SerializeToString()
    with tf.Graph().as_default(), tf.Session() as sess:
        assert sess.run(tf.parse_example([data], {"a": tf.FixedLenFeature([], tf.int64)}))["a"].tolist() == [5]


def test_long_lists_and_values(made):
    for dtype, values in {
        "int64": [*range(30000)],
        "float32": [float(i) for i in range(9000)],
        "string": [b"x" * 70000, b""],
    }.items():
        given = [made.feature(values[: len(values) // k]).SerializeToString() for k in (1, 2, 1)]
        read = found(dtype, given)
        assert read is None or read == lists(dtype, given)
        with tf.Graph().as_default(), tf.Session() as sess:
            example = made.example(a=values)
            assert sess.run(tf.parse_example([example], {"a": tf.VarLenFeature(dtype)}))["a"].values.tolist() == values
