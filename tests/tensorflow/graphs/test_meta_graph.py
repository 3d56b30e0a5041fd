"""Meta graphs: what one program saves, another one goes on with."""

from __future__ import annotations

import logging
import os

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import InvalidArgumentError, NotFoundError, UnavailableError, UnknownOpError
from graphdock_tf1.train import saver as saver_module

pytest.importorskip("google.protobuf")
X = np.array([[1.0, -2.0], [3.0, 0.5]], np.float32)


@pytest.fixture
def graph():
    with tf.Graph().as_default() as made:
        yield made


@pytest.fixture
def trained(graph, tmp_path):
    """A trained program, saved; and what it goes on to compute."""
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    w = tf.get_variable("w", [2, 2], initializer=tf.ones_initializer(), partitioner=tf.fixed_size_partitioner(2))
    with tf.device("/cpu:0"):
        y = tf.identity(tf.tanh(tf.matmul(x, w)), name="y")
    step = tf.train.get_or_create_global_step()
    train = tf.train.AdamOptimizer(0.1).minimize(tf.reduce_mean(y**2), global_step=step, name="train")
    for key, value in (
        ("outputs", y),
        ("numbers", 3),
        ("rates", 0.5),
        ("words", b"hi"),
        ("ops", train),
        ("odd", object()),
    ):
        tf.add_to_collection(key, value)
    saver = tf.train.Saver(max_to_keep=3)
    tf.add_to_collection(tf.GraphKeys.SAVERS, saver)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train, {x: X})
        path = saver.save(sess, str(tmp_path / "m"), global_step=step)
        sess.run(train, {x: X})
        return path, sess.run(y, {x: X})


def test_another_program_goes_on(trained):
    path, expected = trained
    with tf.Graph().as_default(), tf.Session() as sess:
        saver = tf.train.import_meta_graph(path + ".meta")
        saver.restore(sess, path)
        assert (
            saver.as_saver_def().max_to_keep == 3 and tf.train.get_global_step() is tf.get_collection("global_step")[0]
        )
        sess.run("train", {"x:0": X})
        np.testing.assert_array_equal(sess.run("y:0", {"x:0": X}), expected)
        (y,), (op,) = tf.get_collection("outputs"), tf.get_collection("ops")
        assert y.name == "y:0" and op.name == "train"
        assert tf.get_collection("numbers") == [3] and tf.get_collection("rates") == [0.5]
        assert tf.get_collection("words") == [b"hi"] and tf.get_collection("odd") == []
        assert len(tf.get_collection(tf.GraphKeys.SAVERS)) == 1
        assert [v.name for v in tf.trainable_variables()] == ["w/part_0:0", "w/part_1:0"]
        assert set(tf.trainable_variables()) < set(tf.global_variables())
        again = saver.save(sess, path + "-again")
        assert os.path.exists(again + ".meta")


def test_into_a_scope_without_devices(trained):
    path, _ = trained
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        saver = tf.train.import_meta_graph(path + ".meta", clear_devices=True, import_scope="in")
        assert graph.get_operation_by_name("in/y").device == ""
        saver.restore(sess, path)
        assert sess.run("in/y:0", {"in/x:0": X}).shape == (2, 2)
        assert all(v.name.startswith("in/") for v in tf.global_variables())


def test_another_tensor_may_be_the_input(trained):
    path, _ = trained
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.train.import_meta_graph(path + ".meta", input_map={"x:0": tf.constant(X)}).restore(sess, path)
        assert sess.run("y:0").shape == (2, 2)


def test_what_is_exported(graph, tmp_path):
    with tf.name_scope("a"):
        v = tf.Variable([1.0], name="v")
        tf.add_to_collection("inside", tf.identity(v, name="y"))
    tf.add_to_collection("outside", tf.no_op("z"))
    made = tf.train.export_meta_graph(str(tmp_path / "g.meta"), as_text=True)
    assert "tensorflow_version" in (tmp_path / "g.meta").read_text() and set(made.collection_def) >= {
        "inside",
        "outside",
    }
    inner = tf.train.export_meta_graph(export_scope="a", collection_list=["variables", "inside", "outside"])
    assert {n.name for n in inner.graph_def.node} >= {"v", "y"} and "z" not in {n.name for n in inner.graph_def.node}
    assert (
        list(inner.collection_def["inside"].node_list.value) == ["y:0"]
        and "_output_shapes" in inner.graph_def.node[0].attr
    )
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.train.import_meta_graph(inner, import_scope="b")
        sess.run(tf.global_variables_initializer())
        assert sess.run("b/y:0").tolist() == [1.0]
    with tf.name_scope("c"):
        tf.negative(v, name="reads_a")
    with pytest.raises(InvalidArgumentError, match="reads .* which is not in the scope 'c'"):
        tf.train.export_meta_graph(export_scope="c")


def test_a_meta_graph_with_ops_that_are_missing(graph, tmp_path, caplog):
    tf.identity(tf.placeholder(tf.float32, [], name="x"), name="y")
    made = tf.train.export_meta_graph()
    made.graph_def.node.add(name="odd", op="NoSuchOp", input=["y"])
    made.collection_def["kept"].node_list.value.extend(["y:0", "odd:0"])
    with tf.Graph().as_default(), caplog.at_level(logging.WARNING, "graphdock"):
        assert tf.train.import_meta_graph(made) is None
        assert "NoSuchOp: odd" in caplog.text and [t.name for t in tf.get_collection("kept")] == ["y:0"]
    with tf.Graph().as_default(), pytest.raises(UnknownOpError, match="NoSuchOp"):
        tf.train.import_meta_graph(made, allow_missing=False)
    with pytest.raises(NotFoundError):
        tf.train.import_meta_graph(str(tmp_path / "none.meta"))


def test_without_protobuf_a_checkpoint_is_saved_without_its_graph(graph, tmp_path, caplog, monkeypatch):
    def refuse(*args, **kwargs):
        raise UnavailableError("not installed")

    monkeypatch.setattr(tf.Graph, "as_graph_def", refuse)
    saver_module._without_graphs.cache_clear()
    tf.get_variable("v", [1])
    saver = tf.train.Saver()
    with tf.Session() as sess, caplog.at_level(logging.WARNING, "graphdock"):
        sess.run(tf.global_variables_initializer())
        for _ in range(2):
            saver.save(sess, str(tmp_path / "m"))
    assert caplog.text.count("saved without their graphs") == 1
    assert os.path.exists(tmp_path / "m.index") and not os.path.exists(tmp_path / "m.meta")


def test_variables_in_a_collection_of_the_program_s_own_come_back_by_name(graph, tmp_path):
    """They were bytes of a message that nobody reads; TensorFlow writes names."""
    tf.add_to_collection("vars", tf.Variable(2.0, name="bias"))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(sess, str(tmp_path / "m"))
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.train.import_meta_graph(path + ".meta").restore(sess, path)
        (found,) = tf.get_collection("vars")
        assert sess.run([found, "bias:0"]) == [2.0, 2.0]


def test_a_variable_of_no_collection_comes_back_by_name_in_an_earlier_one(graph, tmp_path):
    """Collections are filled in alphabetical order: this one before that of the variables."""
    v, w = tf.Variable(5.0, name="v"), tf.Variable(6.0, name="w", collections=[])
    for item in (v, w):
        tf.add_to_collection("mine", item)
    with tf.Session() as sess:
        sess.run([v.initializer, w.initializer])
        path = tf.train.Saver([v, w]).save(sess, str(tmp_path / "m"))
    with tf.Graph().as_default() as again, tf.Session() as sess:
        tf.train.import_meta_graph(path + ".meta").restore(sess, path)
        assert sess.run(tf.get_collection("mine")) == [5.0, 6.0]
        assert sess.run(again.get_tensor_by_name("w:0")) == 6.0
    with tf.Graph().as_default() as alone:  # no collection says what is a variable
        tf.import_graph_def(graph.as_graph_def(), name="")
        assert alone.get_tensor_by_name("w:0").dtype == tf.float32


@pytest.mark.parametrize("scope", [None, "again"])
def test_queue_runners_come_back_and_start(graph, scope):
    number = tf.train.range_input_producer(6, num_epochs=1, shuffle=False).dequeue()
    tf.identity(tf.train.batch([number], 2), name="taken")
    message = tf.train.export_meta_graph()
    assert len(message.collection_def["queue_runners"].bytes_list.value) == 2
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.train.import_meta_graph(message, import_scope=scope)
        sess.run(tf.local_variables_initializer())
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coord)
        taken = [sess.run(f"{scope}/taken:0" if scope else "taken:0").tolist() for _ in range(3)]
        assert taken == [[0, 1], [2, 3], [4, 5]]
        with pytest.raises(tf.errors.OutOfRangeError):
            sess.run(f"{scope}/taken:0" if scope else "taken:0")
        coord.request_stop()
        coord.join(threads)
        assert len(tf.get_collection("queue_runners")) == 2


def test_a_queue_runner_outside_of_what_is_exported_stays_out(graph):
    queue = tf.FIFOQueue(3, tf.int32, name="q")
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(1)]))
    tf.constant(1, name="in/one")
    assert not tf.train.export_meta_graph(export_scope="in").collection_def["queue_runners"].bytes_list.value
