"""Lookup tables: what they give, when they are ready, in checkpoints. What is expected was seen in TensorFlow 2.21's compat.v1."""

from __future__ import annotations

import threading
from pathlib import Path

import graphdock as tf
import numpy as np
import pytest

lookup = tf.contrib.lookup


def pairs(keys=("a", "b"), values=(0, 1)):
    return lookup.KeyValueTensorInitializer(list(keys), list(values), tf.string, tf.int64)


def test_a_table_is_initialised_once():
    table = lookup.HashTable(pairs(), -1)
    found = table.lookup(tf.constant([["a", "z"]]))
    assert (table.name, found.name) == ("hash_table", "hash_table_Lookup/LookupTableFindV2:0")
    assert table.initializer.name == "key_value_init/LookupTableImportV2" and found.shape == [1, 2]
    with tf.Session() as session:
        with pytest.raises(tf.errors.FailedPreconditionError, match="Table not initialized"):
            session.run(found)
        session.run(tf.tables_initializer())
        session.run(table.initializer)  # the same rows again
        assert session.run([found, table.size()])[0].tolist() == [[0, -1]]
        keys, values = session.run(table.export())
        assert dict(zip(keys, values, strict=True)) == {b"a": 0, b"b": 1}
        sparse = tf.SparseTensor([[0, 1]], ["b"], [1, 2])
        assert session.run(table.lookup(sparse)).values.tolist() == [1]


def test_a_key_of_two_values_is_refused():
    table = lookup.HashTable(pairs(("a", "a")), -1)
    with (
        tf.Session() as session,
        pytest.raises(tf.errors.FailedPreconditionError, match="different value for same key.*b'a' has 0"),
    ):
        session.run(table.initializer)


def test_dtypes_are_held_to():
    table = lookup.HashTable(pairs(), -1)
    with pytest.raises(TypeError, match="string"):
        table.lookup(tf.constant([1]))
    with pytest.raises(TypeError):
        lookup.HashTable(pairs(), "text")


def test_sessions_of_one_container_share_a_table():
    with tf.container("tables"):
        first = lookup.HashTable(pairs(), -1, shared_name="mine")
        second = lookup.HashTable(pairs(), -1, shared_name="mine")
    with tf.Session() as one, tf.Session() as two:
        one.run(first.initializer)
        assert two.run(second.lookup(tf.constant("b"))) == 1
        tf.Session.reset(containers=["tables"])


@pytest.mark.parametrize(
    ("keys", "values", "default", "asked", "expected"),
    [
        (["a", "b"], [1.5, 2.5], -1.0, ["b", "c"], [2.5, -1.0]),
        ([1, 2], [[1, 2], [3, 4]], [0, 0], [2, 7], [[3, 4], [0, 0]]),
        ([1, 2], ["x", "y"], "?", [2, 3], [b"y", b"?"]),
    ],
)
def test_rows_change(keys, values, default, asked, expected):
    keys, values = tf.constant(keys), tf.constant(values)
    table = lookup.MutableHashTable(keys.dtype, values.dtype, default)
    found = table.lookup(tf.constant(asked))
    with tf.Session() as session:
        assert session.run(table.size()) == 0
        session.run(table.insert(keys, values))
        np.testing.assert_array_equal(session.run(found), np.array(expected))
        assert session.run(table.size()) == 2
        session.run(table.remove(keys[:1]))
        assert session.run(table.size()) == 1
        session.run(table.remove(keys))
        assert session.run(table.export()[0]).shape == (0,)


def test_values_of_another_shape_are_refused():
    table = lookup.MutableHashTable(tf.string, tf.int64, -1)
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="Expected shape"):
        session.run(table.insert(["a"], [1, 2]))


def test_updates_and_reads_of_one_step_are_in_the_order_of_the_program():
    table = lookup.MutableHashTable(tf.int64, tf.int64, 0)
    one = tf.constant([1], tf.int64)
    with tf.control_dependencies([table.insert(one, one)]):
        first = table.lookup(one)
    with tf.control_dependencies([first, table.insert(one, one * 2)]):
        second = table.lookup(one)
    with tf.Session() as session:
        assert [v.tolist() for v in session.run([first, second])] == [[1], [2]]


def test_a_saver_saves_and_restores_rows(tmp_path):
    table = lookup.MutableHashTable(tf.string, tf.float32, [0.0, 0.0], name="rows")
    saver = tf.train.Saver()
    found = table.lookup(tf.constant(["a", "c"]))
    with tf.Session() as session:
        session.run(table.insert(["a", "b"], [[1, 2], [3, 4]]))
        path = saver.save(session, str(tmp_path / "model"))
    with tf.Session() as session:
        session.run(table.insert(["c"], [[9, 9]]))
        saver.restore(session, path)
        assert session.run(found).tolist() == [[1, 2], [0, 0]] and session.run(table.size()) == 2
    assert {name for name, _ in tf.train.list_variables(path)} == {"rows-keys", "rows-values"}


def test_threads_insert_and_read():
    table = lookup.MutableHashTable(tf.int64, tf.int64, -1)
    key = tf.placeholder(tf.int64, [None])
    insert, found, size = table.insert(key, key * 10), table.lookup(key), table.size()
    with tf.Session() as session:

        def work(number):
            for i in range(50):
                mine = [number * 1000 + i]
                session.run(insert, {key: mine})
                wrong.extend(v for v in session.run(found, {key: mine}) if v != mine[0] * 10)

        wrong: list[int] = []
        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong and session.run(size) == 400


def test_buckets_behind_a_table():
    """Buckets are FarmHash's, so that ids are TensorFlow's."""
    table = lookup.index_table_from_tensor(["x", "y"], num_oov_buckets=3)
    strong = lookup.IdTableWithHashBuckets(None, 5, lookup.StrongHashSpec([1, 2]))
    with tf.Session() as session:
        session.run(tf.tables_initializer())
        assert session.run(table.lookup(tf.constant(["y", "q", "r", "s"]))).tolist() == [1, 4, 3, 3]
        assert session.run([table.size(), strong.size()]) == [5, 5]
        expected = tf.string_to_hash_bucket_strong(tf.constant(["q"]), 5, key=[1, 2])
        assert session.run(strong.lookup(tf.constant(["q"]))).tolist() == session.run(expected).tolist()
    with pytest.raises(ValueError, match="oov_buckets"):
        lookup.IdTableWithHashBuckets(None, 0)
    static = tf.lookup.StaticVocabularyTable(pairs(), 2)
    assert static.key_dtype is tf.string and static.value_dtype is tf.int64


def test_a_dense_table_has_no_row_of_its_reserved_keys():
    k, v = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.float32, [None])
    table = lookup.MutableDenseHashTable(tf.int64, tf.float32, -1.0, empty_key=0, deleted_key=-9, checkpoint=False)
    insert, look, erase = table.insert(k, v), table.lookup(k), table.erase(k)
    refused = tf.errors.InvalidArgumentError
    with tf.Session() as session:
        session.run(insert, {k: [1, 2], v: [1, 2]})
        assert session.run(look, {k: [1, 2, 3]}).tolist() == [1, 2, -1]
        for key, what in ((0, "empty_key"), (-9, "deleted_key")):
            for fetch, more in ((insert, {v: [1, 2]}), (look, {}), (erase, {})):
                with pytest.raises(refused, match=f"Using the {what} as a table key is not allowed"):
                    session.run(fetch, {k: [1, key], **more})
        assert session.run(table.size()) == 2
        imported = tf.get_default_graph().create_op(
            "LookupTableImportV2", [table.resource_handle, tf.constant([0, 7], tf.int64), tf.constant([5.0, 6.0])]
        )
        session.run(imported)  # as of TensorFlow's checkpoints, which have its empty rows
        assert session.run(table.export()[0]).tolist() == [7]
    texts = lookup.MutableDenseHashTable(tf.string, tf.int64, -1, empty_key="", checkpoint=False)
    with tf.Session() as session, pytest.raises(refused, match="empty_key"):
        session.run(texts.lookup(tf.constant(["a", ""])))


def test_a_dense_table_whose_keys_are_vectors():
    """Values that TensorFlow 2.21 gives; of its export, the rows that hold something."""
    table = lookup.MutableDenseHashTable(
        tf.int64, tf.int64, [-1, -2], empty_key=[0, 1], deleted_key=[-1, -1], initial_num_buckets=8
    )
    k, v = tf.placeholder(tf.int64, [None, 2]), tf.placeholder(tf.int64, [None, 2])
    insert, look, erase, export = table.insert(k, v), table.lookup(k), table.erase(k), table.export()
    assert look.shape.as_list() == [None, 2] and export[0].shape.as_list() == [None, 2]
    refused = (tf.errors.InvalidArgumentError, ValueError)
    with tf.Session() as session:
        session.run(insert, {k: [[0, 2], [11, 12], [13, 14]], v: [[1, 2], [3, 4], [5, 6]]})
        assert session.run(look, {k: [[11, 12], [13, 14], [5, 6]]}).tolist() == [[3, 4], [5, 6], [-1, -2]]
        session.run(erase, {k: [[11, 12], [7, 7]]})
        assert session.run(table.size()) == 2
        assert [part.tolist() for part in session.run(export)] == [[[0, 2], [13, 14]], [[1, 2], [5, 6]]]
        for key in ([0, 1], [-1, -1]):
            for fetch, more in ((insert, {v: [[1, 2]]}), (look, {}), (erase, {})):
                with pytest.raises(refused, match="_key as a table key is not allowed"):
                    session.run(fetch, {k: [key], **more})
        for wrong in ([[1, 2, 3]], [[[11, 12], [13, 14]]], [11, 12]):
            with pytest.raises(refused):
                session.run(table.lookup(tf.constant(wrong, tf.int64)))
        with pytest.raises(refused):
            session.run(table.insert(tf.constant([[4, 1]], tf.int64), tf.constant([1, 2], tf.int64)))


#: Written by TensorFlow 2.21: a dense table of vectors of int64 and one of strings, each with an insert and a lookup.
DENSE = Path(__file__).with_name("dense_tables.pb")


def test_dense_tables_of_tensorflow_and_there_and_back():
    message = tf.GraphDef.FromString(DENSE.read_bytes())
    names = ["ins/LookupTableInsertV2", "out:0", "n/LookupTableSizeV2:0", "k:0", "v:0"]
    names += ["uins/LookupTableInsertV2", "uout:0", "w:0", "wv:0"]
    for _ in range(2):
        with tf.Graph().as_default() as graph, tf.Session() as session:
            insert, out, size, k, v, put, look, w, values = tf.import_graph_def(message, name="", return_elements=names)
            session.run(insert, {k: [[1, 2], [3, 4]], v: [10, 20]})
            assert session.run(out, {k: [[3, 4], [9, 9]]}).tolist() == [20, -1] and session.run(size) == 2
            session.run(put, {w: ["a"], values: [[1.0, 2.0]]})
            assert session.run(look, {w: ["b", "a"]}).tolist() == [[-1, -2], [1, 2]]
            for fetch, feed in ((out, {k: [[0, 1]]}), (out, {k: [[-1, -1]]}), (look, {w: [""]}), (look, {w: ["$"]})):
                with pytest.raises(tf.errors.InvalidArgumentError, match="not allowed"):
                    session.run(fetch, feed)
            message = graph.as_graph_def()
    written = {node.name: node for node in message.node}
    assert written["vec"].op == written["txt"].op == "MutableDenseHashTableV2"
    assert [written[name].op for name in written["vec"].input] == ["Const", "Const"]
    assert {"key_dtype", "value_dtype", "value_shape", "initial_num_buckets", "max_load_factor"} <= set(
        written["vec"].attr
    )
    assert not {"mutable", "key_shape", "reserved"} & set(written["vec"].attr)


@pytest.mark.parametrize(
    ("keys", "match"),
    [
        ({"empty_key": 0, "deleted_key": 0}, "cannot be equal"),
        ({"empty_key": [[0, 1]]}, "known scalar or vector"),
        ({"empty_key": [0, 1], "deleted_key": 5}, "same shape"),
        ({"empty_key": [0, 1], "deleted_key": [0, 1]}, "cannot be equal"),
        ({"empty_key": None}, "known scalar"),
        ({"empty_key": 0, "deleted_key": 0.5}, "int64"),
        ({"empty_key": 0, "initial_num_buckets": 12}, "power of 2"),
        ({"empty_key": 0, "initial_num_buckets": 0}, "power of 2"),
        ({"empty_key": 0.0, "key_dtype": tf.float32}, "int32, int64 or string"),
    ],
)
def test_no_dense_table(keys, match):
    with pytest.raises((ValueError, TypeError), match=match):
        lookup.MutableDenseHashTable(**{"key_dtype": tf.int64, "value_dtype": tf.float32, "default_value": -1.0} | keys)


def test_rows_of_a_table_are_vectors_of_one_length_above_0():
    for keys, values in ((["a"], [0, 1]), ([["a"]], [[0]]), ("a", 0)):
        with pytest.raises(ValueError, match="vectors of one length"):
            lookup.KeyValueTensorInitializer(keys, values, tf.string, tf.int64)
    lookup.index_table_from_tensor(np.array([], np.str_), num_oov_buckets=1)
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="cannot be empty"):
        session.run(tf.tables_initializer())


def test_a_mutable_tables_default_is_a_scalar_or_a_vector():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Default value must be.*\n.*\[1, 2\]"):
        lookup.MutableHashTable(tf.string, tf.int64, [[-1, -1]])


def test_a_constant_file_name_is_an_asset():
    for name in ("words.txt", tf.constant("words.txt"), tf.placeholder(tf.string, [])):
        lookup.index_table_from_file(name)
    assert len(tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS)) == 2
