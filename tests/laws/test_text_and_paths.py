"""Text without UTF-8, files of any name, and arrays that stand for more than memory has: they work, or are refused clearly."""

from __future__ import annotations

import os

import graphdock as tf
import lies
import numpy as np
import pytest
from graphdock.errors import GraphdockError, InvalidArgumentError, NotFoundError, ResourceExhaustedError

HALF = "\udcff"
#: Arrays of one element each, and what they are fed to.
HUGE = {
    "as it is": (np.float32(1), tf.float32),
    "cast": (np.float64(1), tf.float32),
    "looked at": (np.int64(1), tf.int32),
    "to bools": (np.float32(1), tf.bool),
    "text": (np.array(b"a", object), tf.string),
}
NAMES = [b"\xff\xfe", "ü".encode(), "\u2028".encode(), b"a b", b"'\"\\"]


def _fetched(value, dtype):
    x = tf.placeholder(dtype)
    with tf.Session() as sess:
        return sess.run(tf.identity(x), {x: value})


@pytest.mark.parametrize(
    "use",
    [
        lambda: tf.constant(HALF),
        lambda: tf.constant(["a", HALF]),
        lambda: tf.constant(np.array(["a", HALF])),
        lambda: tf.Variable(HALF),
        lambda: tf.placeholder_with_default(HALF, []),
        lambda: _fetched(HALF, tf.string),
        lambda: _fetched(np.array([HALF]), tf.string),
        lambda: _fetched(np.array([HALF], object), tf.string),
        lambda: tf.Session().run(tf.py_func(lambda: HALF, [], tf.string)),
    ],
)
def test_text_without_utf_8_is_refused_and_the_way_out_said(use):
    with pytest.raises(InvalidArgumentError) as error:
        use()
    assert "UTF-8" in str(error.value) and "os.fsencode" in str(error.value)
    str(error.value).encode()


@pytest.mark.parametrize("name", NAMES)
def test_a_checkpoint_may_have_any_name(tmp_path, name):
    folder = os.path.join(os.fsencode(tmp_path), name)
    os.mkdir(folder)
    prefix = os.fsdecode(os.path.join(folder, name))
    w = tf.get_variable("w", [], tf.float32, tf.constant_initializer(3.0))
    saver = tf.train.Saver()
    with tf.Session() as sess:
        sess.run(w.initializer)
        path = saver.save(sess, prefix, global_step=7)
        assert path == prefix + "-7" == tf.train.latest_checkpoint(os.fsdecode(folder))
        assert tf.train.latest_checkpoint(folder) == path
        for each in (path, os.fsencode(path)):
            sess.run(w.assign(0.0))
            saver.restore(sess, each)
            assert sess.run(w) == 3.0 == tf.train.load_variable(each, "w") and tf.train.checkpoint_exists(each)
    with tf.Graph().as_default():
        assert tf.train.import_meta_graph(os.fsencode(path + ".meta")) is not None
    with tf.summary.FileWriter(folder) as writer:
        writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="x", simple_value=1.0)]), 1)
    (events,) = [f for f in os.listdir(folder) if b"tfevents" in f]
    assert len(list(tf.train.summary_iterator(os.path.join(folder, events)))) == 2


@pytest.mark.parametrize("path", ["a\0b", b"a\0b", HALF, b"\xff", "x" * 5000])
@pytest.mark.parametrize(
    "use",
    [
        lambda p: tf.train.load_checkpoint(p),
        lambda p: tf.train.list_variables(p),
        lambda p: tf.train.import_meta_graph(p),
        lambda p: tf.saved_model.load(tf.Session(), ["serve"], p),
        lambda p: list(tf.train.summary_iterator(p)),
        lambda p: tf.SessionConfig.from_toml(p),
        lambda p: tf.load_op_library(p),
        lambda p: tf.gfile.GFile(p).read(),
        lambda p: tf.gfile.Stat(p),
        lambda p: tf.gfile.Remove(p),
        lambda p: tf.gfile.ListDirectory(p),
    ],
)
def test_a_file_that_is_not_there_is_said_to_be_missing(tmp_path, monkeypatch, use, path):
    monkeypatch.chdir(tmp_path)
    assert lies.refused(lambda: use(path)) is not None


@pytest.mark.parametrize("path", ["a\0b", b"a\0b"])
def test_no_folder_has_a_zero_in_its_name(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    assert not tf.train.checkpoint_exists(path) and not tf.saved_model.loader.maybe_saved_model_directory(path)
    assert not tf.gfile.Exists(path) and list(tf.gfile.Walk(path)) == []
    with pytest.raises(GraphdockError):
        tf.saved_model.builder.SavedModelBuilder(path).save()
    with pytest.raises(NotFoundError):
        tf.saved_model.load(tf.Session(), ["serve"], path)


@pytest.mark.parametrize(("one", "dtype"), HUGE.values(), ids=HUGE)
def test_an_array_that_is_broadcast_beyond_memory_is_refused(one, dtype):
    huge = np.broadcast_to(one, (1 << 24, 1 << 24))
    with pytest.raises(ResourceExhaustedError, match="there is no memory for the value fed to Placeholder"):
        _fetched(huge, dtype)
    with pytest.raises(ResourceExhaustedError, match="there is no memory for a constant"):
        tf.constant(huge, dtype)
    with pytest.raises(GraphdockError):
        tf.constant(one, dtype, [1 << 24, 1 << 24])
    assert _fetched(np.broadcast_to(one, (3, 2)), dtype).shape == (3, 2), "what fits is read"


def test_a_size_needs_no_values():
    """TensorFlow wraps the first of these around, to 0."""

    def ask():
        huge = [tf.zeros([65536, 65536]), tf.ones([65536, 65536]), tf.fill([65536, 65536], 1.0), tf.zeros([2**32])]
        huge += [tf.broadcast_to(1.0, [65536, 65536]), tf.zeros_like(huge[0]), huge[0] + 1.0]
        asked = [f(x) for x in huge for f in (lambda x: tf.size(x, out_type=tf.int64), tf.rank)]
        asked += [tf.shape(x, out_type=tf.int64) for x in huge]
        with tf.Session() as sess:
            found = sess.run(asked)
        assert found[0] == 2**32 and found[-1].tolist() == [65536, 65536]
        for x in huge:
            with pytest.raises(InvalidArgumentError, match=r"int32 holds[^$]*out_type=tf.int64"):
                tf.size(x)
        with pytest.raises(InvalidArgumentError, match=r"int32 does not hold[^$]*out_type=tf.int64"):
            tf.shape(huge[3])

    assert lies.held(ask) < 64 << 20
