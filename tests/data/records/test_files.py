"""Files as a whole, by operations."""

from __future__ import annotations

import graphdock as tf
import pytest


def test_a_file_is_written_read_and_found(tmp_path):
    inner = tmp_path / "a" / "b"
    with tf.Session() as session:
        for name in ("two.txt", "one.txt"):
            session.run(tf.write_file(str(inner / name), name.encode()))
        assert (inner / "one.txt").read_bytes() == b"one.txt"
        assert session.run(tf.read_file(str(inner / "two.txt"))) == b"two.txt"
        found = session.run(tf.matching_files([str(inner / "*.txt"), str(inner / "o*")]))
        assert found.tolist() == [str(inner / name).encode() for name in ("one.txt", "two.txt")]
        with pytest.raises(tf.errors.NotFoundError, match="three"):
            session.run(tf.read_file(str(inner / "three")))
        with pytest.raises(tf.errors.NotFoundError, match="nowhere"):
            session.run(tf.matching_files(str(tmp_path / "nowhere" / "*")))


def test_match_filenames_once(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"")
    names = tf.train.match_filenames_once(str(tmp_path / "*"))
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        (tmp_path / "c").write_bytes(b"")
        assert session.run(names).tolist() == [str(tmp_path / n).encode() for n in "ab"]
