"""Tensors and Examples as bytes; TensorFlow's own bytes of a TensorProto."""

from __future__ import annotations

import gzip
import zlib

import graphdock as tf
import numpy as np
import pytest

#: ``tf.make_tensor_proto([[1, 2]], tf.int32).SerializeToString()`` in TensorFlow 2.21.
PROTO = bytes.fromhex("0803120812020801120208022208" + "0100000002000000")


def run(fetches):
    with tf.Session() as session:
        return session.run(fetches)


@pytest.mark.parametrize("value", [[[1, 2]], 1.5, [b"a", b""], [True, False], [1 + 2j], np.zeros((0, 3), np.int64)])
def test_there_and_back(value):
    tensor = tf.constant(value)
    got = run(tf.parse_tensor(tf.serialize_tensor(tensor), tensor.dtype))
    np.testing.assert_array_equal(got, np.array(value))


def test_tensorflows_bytes():
    assert run(tf.parse_tensor(tf.constant(PROTO), tf.int32)).tolist() == [[1, 2]]
    assert run(tf.serialize_tensor(tf.constant([[1, 2]]))) == PROTO
    assert tf.make_ndarray(tf.make_tensor_proto([[1, 2]])).tolist() == [[1, 2]]


def test_what_is_no_tensor():
    with pytest.raises(tf.errors.InvalidArgumentError, match="another dtype"):
        run(tf.parse_tensor(tf.constant(PROTO), tf.float32))
    with pytest.raises(tf.errors.InvalidArgumentError, match="no TensorProto"):
        run(tf.parse_tensor(tf.constant(b"\xff\xff"), tf.float32))


def test_rows_of_a_sparse_tensor():
    sparse = tf.SparseTensor([[0, 1], [2, 0], [2, 3]], [1.0, 2.0, 3.0], [3, 4])
    rows = tf.serialize_many_sparse(sparse)
    got = run(tf.deserialize_many_sparse(rows, tf.float32, rank=1))
    assert got.indices.tolist() == [[0, 1], [2, 0], [2, 3]] and got.values.tolist() == [1, 2, 3]
    assert got.dense_shape.tolist() == [3, 4]
    assert run(tf.serialize_sparse(sparse)).shape == (3,)


def test_compressed_bytes():
    got = run(tf.decode_compressed([zlib.compress(b"one"), zlib.compress(b"")], "ZLIB"))
    assert got.tolist() == [b"one", b""]
    assert run(tf.decode_compressed(gzip.compress(b"two"), "GZIP")) == b"two"
    with pytest.raises(tf.errors.DataLossError, match="decompressed"):
        run(tf.decode_compressed("three", "ZLIB"))


def test_json(made):
    text = '{"features": {"feature": {"n": {"int64List": {"value": ["1", "2"]}}}}}'
    assert run(tf.decode_json_example([text])).tolist() == [made.example(n=[1, 2])]
    with pytest.raises(tf.errors.InvalidArgumentError, match="JSON"):
        run(tf.decode_json_example("{"))


@pytest.mark.parametrize(
    ("places", "told"),
    [
        ([[0, 0], [5, 2]], "out of bounds"),
        ([[0, 0], [-1, 2]], "out of bounds"),
        ([[0, 0], [1, 4]], "out of bounds"),
        ([[1, 0], [0, 1]], "out of order"),
        ([[0, 3], [0, 1]], "out of order"),
        ([[0, 1], [0, 1]], "repeated"),
    ],
)
def test_places_of_rows_are_checked(places: list[list[int]], told: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        rows = tf.serialize_many_sparse(tf.SparseTensor(places, [1, 2], [2, 4]))
        with pytest.raises(tf.errors.InvalidArgumentError, match=told):
            session.run(rows)
