"""Vocabularies of files and of vectors. What is expected was seen in TensorFlow 2.21's compat.v1."""

from __future__ import annotations

import graphdock as tf
import pytest

lookup = tf.contrib.lookup


@pytest.fixture
def words(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("x\ny\nz\n")
    return str(path)


def run(table, *keys, dtype=tf.string):
    with tf.Session() as session:
        session.run(tf.tables_initializer())
        return session.run(table.lookup(tf.constant(list(keys), dtype))).tolist()


def test_there_and_back(words):
    assert run(lookup.index_table_from_file(words), "y", "q") == [1, -1]
    assert run(lookup.index_table_from_file(words, vocab_size=2), "z", "x") == [-1, 0]
    assert run(lookup.index_to_string_table_from_file(words), 2, 9, dtype=tf.int64) == [b"z", b"UNK"]
    assert run(lookup.index_to_string_table_from_tensor(["x", "y"], "?"), 1, 9, dtype=tf.int64) == [b"y", b"?"]
    numbers = lookup.index_table_from_tensor([42, 1, -1000], dtype=tf.int32, num_oov_buckets=1)
    assert run(numbers, 1, 42, 7, dtype=tf.int32) == [1, 0, 3]


def test_old_functions():
    strings, places = tf.constant(["b", "q"]), tf.constant([1], tf.int64)
    out = [lookup.string_to_index(strings, ["a", "b"]), lookup.index_to_string(places, ["a", "b"])]
    with tf.Session() as session:
        session.run(tf.tables_initializer())
        assert [o.tolist() for o in session.run(out)] == [[1, -1], [b"b"]]


def test_columns(tmp_path):
    path = tmp_path / "columns.txt"
    path.write_text("x 1\ny q\n")

    def table(value_index, **kwargs):
        init = lookup.TextFileInitializer(str(path), tf.string, 0, tf.int64, value_index, delimiter=" ", **kwargs)
        return lookup.HashTable(init, -1)

    with tf.Session() as session:
        for bad, words in ((table(1), "line 1 of .*columns.txt.*'q' is no int64"), (table(3), "line 0.*columns")):
            with pytest.raises(tf.errors.InvalidArgumentError, match=words):
                session.run(bad.initializer)
        session.run(table(1, vocab_size=1).initializer)
    assert [t.op.type for t in tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS)] == ["Const"] * 3


def test_what_is_wrong_is_told(words):
    with tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match="expected 5 but got 3"):
            session.run(lookup.index_table_from_file(words, vocab_size=5).initializer)
        with open(words, "a") as file:
            file.write("\nlast\n")
        with pytest.raises(tf.errors.InvalidArgumentError, match="words.txt.*empty line found at position 3"):
            session.run(lookup.index_table_from_file(words).initializer)
        with pytest.raises(tf.errors.NotFoundError, match="none.txt"):
            session.run(lookup.index_table_from_file("none.txt").initializer)
    for kwargs in ({"vocabulary_file": ""}, {"vocabulary_file": words, "num_oov_buckets": -1}):
        with pytest.raises(ValueError, match="vocabulary_file|num_oov_buckets"):
            lookup.index_table_from_file(**kwargs)
    with pytest.raises(ValueError, match="vocab_size"):
        lookup.index_table_from_file(words, vocab_size=0)
    with pytest.raises(ValueError, match="vocabulary_list"):
        lookup.index_table_from_tensor(None)
    with pytest.raises(TypeError, match="integer and string"):
        lookup.index_table_from_file(words, key_dtype=tf.float32)
    with pytest.raises(ValueError, match="Invalid dtype"):
        lookup.index_table_from_tensor([1, 2])
