"""Parsing of Examples. What is expected was seen in TensorFlow 2.21's compat.v1, of the same bytes."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest

FEATURES = {
    "x": tf.FixedLenFeature([2], tf.float32),
    "n": tf.FixedLenFeature([], tf.int64),
    "m": tf.FixedLenFeature([], tf.string, "zz"),
    "t": tf.VarLenFeature(tf.string),
    "v": tf.FixedLenSequenceFeature([], tf.int64, allow_missing=True),
}


def run(fetches, feeds=None):
    with tf.Session() as session:
        return session.run(fetches, feeds)


def examples(made):
    return [
        made.example(x=[1.0, 2.0], n=[3], t=[b"a", b"b"], v=[1, 2, 3]),
        made.example(x=[4.0, 5.0], n=[6], v=[7]),
    ]


def test_a_batch(made):
    serialized = tf.placeholder(tf.string, [None])
    out = tf.parse_example(serialized, FEATURES)
    assert {key: out[key].shape.as_list() for key in "xnmv"} == {
        "x": [None, 2],
        "n": [None],
        "m": [None],
        "v": [None, None],
    }
    got = run(out, {serialized: examples(made)})
    np.testing.assert_array_equal(got["x"], [[1, 2], [4, 5]])
    assert got["x"].dtype == np.float32 and got["n"].tolist() == [3, 6] and got["m"].tolist() == [b"zz", b"zz"]
    assert got["v"].tolist() == [[1, 2, 3], [7, 0, 0]]
    assert got["t"].indices.tolist() == [[0, 0], [0, 1]] and got["t"].values.tolist() == [b"a", b"b"]
    assert got["t"].dense_shape.tolist() == [2, 2]


def test_a_batch_of_none(made):
    got = run(tf.parse_example(tf.constant([], tf.string), FEATURES))
    assert got["x"].shape == (0, 2) and got["v"].shape == (0, 0) and got["t"].dense_shape.tolist() == [0, 0]


def test_one(made):
    out = tf.parse_single_example(tf.constant(examples(made)[0]), FEATURES)
    assert out["x"].shape == [2] and out["n"].shape == [] and out["v"].shape.as_list() == [None]
    got = run(out)
    assert got["n"] == 3 and got["m"] == b"zz" and got["v"].tolist() == [1, 2, 3] and got["x"].tolist() == [1, 2]
    assert got["t"].indices.tolist() == [[0], [1]] and got["t"].dense_shape.tolist() == [2]


def test_one_with_a_name_is_the_same(made):
    data = tf.constant(examples(made)[0])
    plain = run(tf.parse_single_example(data, FEATURES))
    named = run(tf.parse_single_example(data, FEATURES, example_names="first"))
    assert plain.keys() == named.keys()
    for key in "xnmv":
        np.testing.assert_array_equal(plain[key], named[key])
    np.testing.assert_array_equal(plain["t"].indices, named["t"].indices)


def test_a_sparse_feature(made):
    data = [made.example(i=[3, 1], v=[0.5, -1.0]), made.example()]
    wanted = {"s": tf.SparseFeature("i", "v", tf.float32, 5)}
    got = run(tf.parse_example(tf.constant(data), wanted)["s"])
    assert got.indices.tolist() == [[0, 1], [0, 3]] and got.values.tolist() == [-1.0, 0.5]
    assert got.dense_shape.tolist() == [2, 5]


def test_a_sequence_example(made):
    data = made.sequence_example({"id": [7], "w": [b"p"]}, {"a": [[1.0, 2.0], [3.0, 4.0]], "b": [[1], [], [2, 3]]})
    context, lists = tf.parse_single_sequence_example(
        tf.constant(data),
        {"id": tf.FixedLenFeature([], tf.int64), "w": tf.VarLenFeature(tf.string)},
        {
            "a": tf.FixedLenSequenceFeature([2], tf.float32),
            "b": tf.VarLenFeature(tf.int64),
            "none": tf.FixedLenSequenceFeature([3], tf.int64, allow_missing=True),
        },
    )
    assert lists["a"].shape.as_list() == [None, 2]
    got, rows = run([context, lists])
    assert got["id"] == 7 and got["w"].values.tolist() == [b"p"] and got["w"].indices.tolist() == [[0]]
    assert rows["a"].tolist() == [[1, 2], [3, 4]] and rows["none"].shape == (0, 3)
    assert rows["b"].indices.tolist() == [[0, 0], [2, 0], [2, 1]] and rows["b"].values.tolist() == [1, 2, 3]
    assert rows["b"].dense_shape.tolist() == [3, 2]


def test_what_is_wrong_with_an_example_names_key_index_and_the_keys_there(made):
    serialized = tf.placeholder(tf.string, [None])
    out = tf.parse_example(serialized, {"n": tf.FixedLenFeature([2], tf.int64)}, example_names=["one", "two"])["n"]
    good = made.example(n=[1, 2])
    for bad, words in (
        (made.example(x=[1.0], y=[2]), ["Example 1", "two", "'n'", "required", "'x', 'y'"]),
        (made.example(n=[1.0, 2.0]), ["Example 1", "'n'", "int64", "float32"]),
        (made.example(n=[1]), ["Example 1", "'n'", "number of values"]),
        (b"\xff\xff", ["Example 1", "could not parse"]),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            run(out, {serialized: [good, bad]})
        assert all(word in str(caught.value) for word in words), str(caught.value)


def test_a_missing_list_names_the_lists_there(made):
    data = made.sequence_example({}, {"a": [[1]]})
    _, lists = tf.parse_single_sequence_example(
        tf.constant(data), sequence_features={"b": tf.FixedLenSequenceFeature([], tf.int64)}, example_name="me"
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match="'me'.*'b'.*required") as caught:
        run(lists)
    assert "'a'" in str(caught.value)


@pytest.mark.parametrize(
    ("features", "words"),
    [
        ({}, "Missing"),
        ({"a": 3}, "'a'"),
        ({"a": tf.FixedLenFeature([], None)}, "Missing type"),
        ({"a": tf.FixedLenFeature(None, tf.int64)}, "Missing shape"),
        ({"a": tf.FixedLenFeature([None], tf.int64)}, "FixedLenSequenceFeature"),
        ({"a": tf.FixedLenFeature([], tf.int32)}, "int32"),
        ({"a": tf.FixedLenSequenceFeature([], tf.int64)}, "allow_missing"),
        ({"a": tf.SparseFeature(None, "v", tf.int64, 3)}, "index_key"),
        ({"a": tf.SparseFeature("i", None, tf.int64, 3)}, "value_key"),
        ({"i": tf.FixedLenFeature([], tf.int64), "a": tf.SparseFeature("i", "v", tf.int64, 3)}, "intersect"),
        ({"i": tf.VarLenFeature(tf.string), "a": tf.SparseFeature("i", "v", tf.int64, 3)}, "Conflicting"),
    ],
)
def test_features_that_cannot_be(features, words):
    with pytest.raises(ValueError, match=words):
        tf.parse_example(tf.constant([""]), features)


def test_a_batch_of_sequence_examples(made):
    lists = {"a": [[1.0, 2.0], [3.0, 4.0]], "b": [[1], [], [2, 3]], "s": [[b"x"]]}
    rows = [
        made.sequence_example({"id": [7], "w": [b"p", b"q"]}, lists),
        made.sequence_example({"id": [8]}, {"a": [[5.0, 6.0]], "b": [[4]]}),
    ]
    context, found, lengths = tf.io.parse_sequence_example(
        tf.constant(rows),
        {
            "id": tf.FixedLenFeature([], tf.int64),
            "w": tf.VarLenFeature(tf.string),
            "d": tf.FixedLenFeature([1], tf.float32, [0.5]),
        },
        {
            "a": tf.FixedLenSequenceFeature([2], tf.float32),
            "b": tf.VarLenFeature(tf.int64),
            "s": tf.FixedLenSequenceFeature([], tf.string, allow_missing=True),
        },
    )
    assert found["a"].shape.as_list() == [2, None, 2] and lengths["a"].shape.as_list() == [2]
    context, found, lengths = run([context, found, lengths])
    assert context["id"].tolist() == [7, 8] and context["d"].tolist() == [[0.5], [0.5]]
    assert [part.tolist() for part in context["w"]] == [[[0, 0], [0, 1]], [b"p", b"q"], [2, 2]]
    assert found["a"].tolist() == [[[1, 2], [3, 4]], [[5, 6], [0, 0]]] and found["s"].tolist() == [[b"x"], [b""]]
    places = [[0, 0, 0], [0, 2, 0], [0, 2, 1], [1, 0, 0]]
    assert [part.tolist() for part in found["b"]] == [places, [1, 2, 3, 4], [2, 3, 2]]
    assert lengths["a"].tolist() == [2, 1] and lengths["s"].tolist() == [1, 0]


def test_a_sequence_example_of_a_batch_is_named_in_errors(made):
    rows = [made.sequence_example({}, {"b": [[1]]}), made.sequence_example({}, {"a": [[1]]})]
    out = tf.io.parse_sequence_example(
        tf.constant(rows),
        sequence_features={"b": tf.FixedLenSequenceFeature([], tf.int64)},
        example_names=tf.constant(["one", "two"]),
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Example 1 \(two\).*'b'"):
        run(out[1]["b"])
    with pytest.raises(ValueError, match="Missing features"):
        tf.io.parse_sequence_example(tf.constant(rows))
