"""TFRecord files: TensorFlow's bytes, compressed ones, and damage."""

from __future__ import annotations

import gzip
import zlib

import graphdock as tf
import pytest

#: A record with the five bytes ``hello``, as TensorFlow's TFRecordWriter writes it.
HELLO = bytes.fromhex("0500000000000000eab2043e68656c6c6fbb1f1c19")


def write(path, records, options=None):
    with tf.python_io.TFRecordWriter(str(path), options) as writer:
        for record in records:
            writer.write(record)


def test_the_bytes_are_tensorflows(tmp_path):
    write(tmp_path / "r", [b"hello"])
    assert (tmp_path / "r").read_bytes() == HELLO
    write(tmp_path / "z", [b"hello"], tf.python_io.TFRecordOptions(tf.python_io.TFRecordCompressionType.ZLIB))
    assert zlib.decompress((tmp_path / "z").read_bytes()) == HELLO
    write(tmp_path / "g", [b"hello"], "GZIP")
    assert gzip.decompress((tmp_path / "g").read_bytes()) == HELLO


@pytest.mark.parametrize("kind", ["", "ZLIB", "GZIP"])
def test_what_is_written_is_read(tmp_path, kind):
    records = [b"", b"x" * 100_000, *(bytes([i]) * i for i in range(200))]
    write(tmp_path / "r", records, kind)
    assert list(tf.python_io.tf_record_iterator(str(tmp_path / "r"), kind)) == records


def test_members_one_behind_the_other(tmp_path):
    (tmp_path / "g").write_bytes(gzip.compress(HELLO) + gzip.compress(HELLO))
    assert list(tf.python_io.tf_record_iterator(str(tmp_path / "g"), "GZIP")) == [b"hello"] * 2


@pytest.mark.parametrize("kind", ["", "ZLIB", "GZIP"])
def test_damage_names_file_and_byte(tmp_path, kind):
    path = tmp_path / "records"
    write(path, [b"one", b"two" * 1000], kind)
    path.write_bytes(path.read_bytes()[:-9])
    found = tf.python_io.tf_record_iterator(str(path), kind)
    with pytest.raises(tf.errors.DataLossError) as caught:
        list(found)
    assert str(path) in str(caught.value) and "at byte" in str(caught.value)


def test_no_such_compression(tmp_path):
    for bad in ("LZ4", 7):
        with pytest.raises(ValueError, match="compression"):
            tf.python_io.TFRecordOptions(bad)
    with pytest.raises(tf.errors.NotFoundError, match="nothing"):
        list(tf.python_io.tf_record_iterator(str(tmp_path / "nothing")))
    with pytest.raises(tf.errors.NotFoundError, match="no"):
        tf.python_io.TFRecordWriter(str(tmp_path / "no" / "folder"))


def test_a_closed_writer_says_so(tmp_path):
    writer = tf.python_io.TFRecordWriter(str(tmp_path / "r"))
    writer.flush()
    with pytest.raises(TypeError):
        writer.write(3)
    writer.close()
    writer.close()
    with pytest.raises(tf.errors.FailedPreconditionError, match="closed"):
        writer.write(b"x")
