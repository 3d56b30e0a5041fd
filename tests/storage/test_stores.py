"""Files by URL: fsspec's ``memory://`` is the store, and what others do not bring is an error that names it."""

from __future__ import annotations

import sys
from pathlib import Path

import graphdock as tf
import numpy as np
import pytest
from graphdock import errors
from graphdock_storage.stores import is_url, local_path, system

fsspec = pytest.importorskip("fsspec")
gfile = tf.gfile


@pytest.fixture
def store():
    files = fsspec.filesystem("memory")
    yield files
    files.store.clear()
    files.pseudo_dirs[:] = [""]


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as sess:
        yield sess


def test_what_a_url_is():
    assert is_url("s3://bucket/x") and is_url(b"memory://x") and not is_url("/tmp/s3://x") and not is_url("file:///x")
    assert local_path("file:///x/y") == "/x/y" and local_path(Path("/x")) == "/x"
    assert system("/x") is system("file:///x")


def test_gfile(store, tmp_path):
    gfile.MakeDirs("memory://a/b")
    with gfile.GFile("memory://a/b/x.txt", "w") as file:
        file.write("one\ntwo\n")
    assert store.cat("/a/b/x.txt") == b"one\ntwo\n"
    assert gfile.GFile("memory://a/b/x.txt").readlines() == ["one\n", "two\n"]
    with gfile.GFile("memory://a/b/x.txt", "a") as file:
        file.write("three\n")
    assert gfile.Stat("memory://a/b/x.txt").length == 14 and gfile.IsDirectory("memory://a/b")
    gfile.Copy("memory://a/b/x.txt", str(tmp_path / "x.txt"))
    assert (tmp_path / "x.txt").read_text().endswith("three\n")
    gfile.Copy(tmp_path / "x.txt", "memory://a/y.txt")
    with pytest.raises(errors.AlreadyExistsError, match=r"memory://a/y\.txt"):
        gfile.Copy("memory://a/b/x.txt", "memory://a/y.txt")
    gfile.Rename("memory://a/y.txt", "memory://a/z.txt")
    assert gfile.ListDirectory("memory://a") == ["b", "z.txt"]
    assert gfile.Glob("memory://a/*/x*") == ["memory://a/b/x.txt"]
    assert list(gfile.Walk("memory://a")) == [("memory://a", ["b"], ["z.txt"]), ("memory://a/b", [], ["x.txt"])]
    gfile.Remove("memory://a/z.txt")
    gfile.DeleteRecursively("memory://a")
    assert not gfile.Exists("memory://a/b/x.txt")


def test_refusals_name_the_url(store):
    for call in (
        lambda: gfile.GFile("memory://no/file").read(),
        lambda: gfile.Remove("memory://no/file"),
        lambda: gfile.ListDirectory("memory://no"),
        lambda: gfile.Stat("memory://no/file"),
        lambda: gfile.Rename("memory://no/file", "memory://other"),
    ):
        with pytest.raises(errors.NotFoundError, match="memory://no"):
            call()


def test_packages_that_are_missing(monkeypatch):
    with pytest.raises(errors.UnimplementedError, match=r"(?s)'nowhere'.*nowhere://b/x") as scheme:
        gfile.Exists("nowhere://b/x")
    assert "copy the files" in str(scheme.value)
    for name in ("gcsfs", "fsspec"):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(errors.UnimplementedError, match=r"gs://bucket/x") as missing:
            gfile.Exists("gs://bucket/x")
        assert ("pip install gcsfs" if name == "gcsfs" else "pip install 'graphdock[remote]'") in str(missing.value)


def test_a_client_that_fails_is_an_error_with_the_url(store, monkeypatch):
    def refuse(*args, **kwargs):
        raise RuntimeError("no credentials")

    monkeypatch.setattr(type(store), "exists", refuse)
    with pytest.raises(errors.UnavailableError, match=r"memory://x.*RuntimeError: no credentials"):
        gfile.Exists("memory://x")


@pytest.mark.parametrize("sharded", [False, True])
def test_a_saver(store, session, sharded):
    v = tf.get_variable("v", initializer=np.arange(6.0, dtype=np.float32).reshape(2, 3))
    w = tf.get_variable("w", initializer=[b"words"], dtype=tf.string)
    session.run(tf.global_variables_initializer())
    saver = tf.train.Saver(max_to_keep=2, sharded=sharded)
    for step in range(3):
        session.run(v.assign_add(tf.ones([2, 3])))
        path = saver.save(session, "memory://models/m", step)
    assert path == "memory://models/m-2" == tf.train.latest_checkpoint("memory://models")
    names = sorted(name.rpartition("/")[2] for name in store.find("/models"))
    kinds = [name.partition("-0")[0] for name in names]
    assert kinds == ["checkpoint", *[f"m-{n}.{kind}" for n in (1, 2) for kind in ("data", "index", "meta")]]
    session.run([v.assign(tf.zeros([2, 3])), w.assign([b""])])
    saver.restore(session, path)
    np.testing.assert_array_equal(session.run(v), np.arange(6.0).reshape(2, 3) + 3)
    assert session.run(w).tolist() == [b"words"]
    assert tf.train.load_variable("memory://models", "v").shape == (2, 3)
    assert tf.train.checkpoint_exists("memory://models/m-1") and not tf.train.checkpoint_exists("memory://models/m-0")
    assert len(tf.train.get_checkpoint_mtimes([path])) == 1
    with tf.Graph().as_default(), tf.Session() as other:
        again = tf.train.import_meta_graph(path + ".meta")
        again.restore(other, path)
        assert other.run("w:0").tolist() == [b"words"]
    with pytest.raises(errors.NotFoundError, match="memory://models/n"):
        saver.restore(session, "memory://models/n")


def test_a_save_that_fails_leaves_what_was_there(store, session, monkeypatch):
    v = tf.get_variable("v", initializer=1.0)
    session.run(v.initializer)
    saver = tf.train.Saver()
    path = saver.save(session, "memory://models/m")
    before = {name: store.cat(name) for name in store.find("/models")}
    put = type(store).put_file
    calls = []

    def fail(self, source, target, **kwargs):
        calls.append(target)
        if target.endswith(".index"):
            raise OSError("the store is full")
        put(self, source, target, **kwargs)

    monkeypatch.setattr(type(store), "put_file", fail)
    session.run(v.assign(2.0))
    with pytest.raises(errors.UnavailableError, match=r"memory://models/m\.index.*the store is full"):
        saver.save(session, "memory://models/m")
    assert len(calls) == 2 and {name: store.cat(name) for name in store.find("/models")} == before
    saver.restore(session, path)
    assert session.run(v) == 1.0


def test_event_files_grow_by_copies(store):
    writer = tf.summary.FileWriter("memory://logs/run", max_queue=1)
    writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="loss", simple_value=1.0)]), 1)
    writer.flush()
    (name,) = store.find("/logs/run")
    assert [e.step for e in tf.train.summary_iterator(f"memory:/{name}")] == [0, 1]
    writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="loss", simple_value=2.0)]), 2)
    writer.close()
    assert [e.step for e in tf.train.summary_iterator(f"memory:/{name}")] == [0, 1, 2]


@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_records_and_datasets(store, session, compression):
    kind = {"": tf.python_io.TFRecordCompressionType.NONE, "GZIP": tf.python_io.TFRecordCompressionType.GZIP}
    with tf.python_io.TFRecordWriter("memory://d/0.rec", tf.python_io.TFRecordOptions(kind[compression])) as writer:
        writer.write(b"first")
        writer.write(b"second")
    found = tf.data.Dataset.list_files("memory://d/*.rec").flat_map(
        lambda name: tf.data.TFRecordDataset(name, compression)
    )
    element = found.make_one_shot_iterator().get_next()
    assert [session.run(element) for _ in range(2)] == [b"first", b"second"]
    options = tf.python_io.TFRecordOptions(kind[compression])
    assert list(tf.python_io.tf_record_iterator("memory://d/0.rec", options)) == [b"first", b"second"]


def test_files_of_text(store, session):
    session.run(tf.write_file("memory://t/words.txt", "a\nb\n"))
    assert session.run(tf.read_file("memory://t/words.txt")) == b"a\nb\n"
    line = tf.data.TextLineDataset("memory://t/words.txt").make_one_shot_iterator().get_next()
    assert session.run(line) == b"a"
    table = tf.contrib.lookup.index_table_from_file("memory://t/words.txt")
    session.run(tf.tables_initializer())
    assert session.run(table.lookup(tf.constant(["b", "a"]))).tolist() == [1, 0]


def test_paths_of_pathlib(session, tmp_path):
    record = tmp_path / "x.rec"
    with tf.python_io.TFRecordWriter(record) as writer:
        writer.write(b"one")
    element = tf.data.TFRecordDataset([record]).make_one_shot_iterator().get_next()
    assert session.run(element) == b"one" and session.run(tf.read_file(record)) == record.read_bytes()
    assert next(iter(tf.python_io.tf_record_iterator(record))) == b"one"
    v = tf.get_variable("v", initializer=1.0)
    session.run(v.initializer)
    saver = tf.train.Saver()
    saver.restore(session, Path(saver.save(session, tmp_path / "m" / "model", 1)))
    assert tf.train.latest_checkpoint(tmp_path / "m") == str(tmp_path / "m" / "model-1")
    tf.summary.FileWriter(tmp_path / "logs").close()
    tf.train.write_graph(session.graph, tmp_path / "graph", "g.pb", as_text=False)
    assert gfile.Exists(tmp_path / "graph" / "g.pb") and len(gfile.Glob(tmp_path / "logs" / "*")) == 1
    assert session.run(tf.constant(tmp_path)) == str(tmp_path).encode()
