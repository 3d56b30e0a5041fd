"""Modules of TensorFlow's inside that programs use and that are more than other names for public ones."""

from __future__ import annotations

import json

import graphdock as tf
import numpy as np
import pytest
from graphdock_tensorflow.run import control_flow_ops, device_lib, file_io, mnist, mnist_network, stand_ins, timeline


def test_files(tmp_path):
    path = str(tmp_path / "a" / "b.txt")
    file_io.recursive_create_dir(str(tmp_path / "a"))
    file_io.write_string_to_file(path, "é")
    assert file_io.read_file_to_string(path) == "é"
    assert file_io.read_file_to_string(path, binary_mode=True) == "é".encode()
    file_io.write_string_to_file(path, b"\0")
    assert file_io.file_exists(path) and file_io.get_matching_files(str(tmp_path / "a" / "*")) == [path]
    file_io.delete_file(path)
    assert not file_io.file_exists(path)


def test_devices():
    names = [(d.name, d.device_type) for d in device_lib.list_local_devices()]
    assert [name for name, _ in names] == tf.Session().list_devices()
    assert ("CPU" in {kind for _, kind in names}) and all(kind in name.upper() for name, kind in names)


def test_a_traced_step_as_a_file_of_chromes():
    metadata = tf.RunMetadata()
    with tf.Session() as sess:
        x = tf.placeholder(tf.float32, [2, 2])
        sess.run(tf.matmul(x, x, name="product"), {x: np.eye(2)}, tf.RunOptions(trace_level=3), metadata)
    events = json.loads(timeline.Timeline(metadata.step_stats).generate_chrome_trace_format())["traceEvents"]
    found = [e for e in events if e["name"] == "product"]
    assert found and all(e["ph"] == "X" and e["dur"] >= 0 for e in found)
    assert {e["pid"] for e in found} <= {e["pid"] for e in events if e["ph"] == "M"}


def test_the_network_of_the_tutorials_learns():
    rng = np.random.default_rng(0)
    x, y = rng.random((20, 784), np.float32) - 0.5, np.arange(20) % 10
    tf.set_random_seed(1)
    images, labels = tf.placeholder(tf.float32, [20, 784]), tf.placeholder(tf.int32, [20])
    logits = mnist_network.inference(images, 32, 16)
    loss = mnist_network.loss(logits, labels)
    step, right = mnist_network.training(loss, 0.1), mnist_network.evaluation(logits, labels)
    assert [v.op.name for v in tf.trainable_variables()][:2] == ["hidden1/weights", "hidden1/biases"]
    feeds = {images: x, labels: y}
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        before = sess.run(loss, feeds)
        for _ in range(300):
            sess.run(step, feeds)
        assert sess.run(loss, feeds) < before / 2 and sess.run(right, feeds) > 10
        assert sess.run("global_step:0") == 300


def test_an_average_that_begins_at_zero_is_corrected():
    """TensorFlow 2.21 gives these: what the variable held does not count, and the first value is the average of itself."""
    average, value = tf.get_variable("average", initializer=5.0), tf.placeholder(tf.float32, [])
    update = stand_ins.assign_moving_average(average, value, 0.9)
    assert [v.op.name for v in tf.global_variables()] == ["average", "average/biased", "average/local_step"]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        got = [sess.run(update, {value: x}) for x in (2.0, 4.0, -1.0)]
        assert sess.run(average) == got[-1]
    want, total = [], 0.0
    for step, x in enumerate((2.0, 4.0, -1.0), 1):
        total = 0.9 * total + 0.1 * x
        want.append(total / (1 - 0.9**step))
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_the_graph_of_inputs():
    with tf.Graph().as_default() as other:
        x = tf.constant(1.0)
    assert stand_ins.graph_of_inputs([2.0, x]) is other
    assert stand_ins.graph_of_inputs([2.0]) is tf.get_default_graph()


def test_there_are_no_resources_beside_variables_and_tables():
    with tf.Session() as sess:
        assert sess.run(stand_ins.initialize_resources(stand_ins.shared_resources())) is None


def test_a_tensor_waits_for_its_dependencies():
    v = tf.get_variable("v", [3], initializer=tf.zeros_initializer())
    add = tf.assign_add(v, tf.ones([3]))
    x = control_flow_ops.with_dependencies([add], tf.constant(2.0))
    rows = control_flow_ops.with_dependencies([add], tf.IndexedSlices(tf.ones([1]), tf.constant([2]), tf.constant([3])))
    assert x.op.name == "control_dependency" and x.op.control_inputs == [add.op]
    with tf.Session() as sess:
        sess.run(v.initializer)
        assert sess.run(x) == 2.0 and sess.run(v).tolist() == [1.0] * 3
        assert sess.run(rows).indices.tolist() == [2] and sess.run(v).tolist() == [2.0] * 3


def test_shapes_of_which_little_is_known():
    assert stand_ins.unknown_shape().rank is None and stand_ins.unknown_shape(2).as_list() == [None, None]


def test_an_events_file_of_a_writer_of_the_inside(tmp_path):
    writer = stand_ins.EventsWriter(str(tmp_path / "events").encode())
    value = tf.Summary(value=[tf.Summary.Value(tag="loss", simple_value=0.5)])
    writer.WriteEvent(tf.Event(wall_time=1.0, step=3, summary=value))
    assert writer.Flush() and writer.Close()
    assert writer.FileName().startswith(str(tmp_path / "events.out.tfevents.").encode())
    first, second = tf.train.summary_iterator(writer.FileName().decode())
    assert first.file_version == "brain.Event:2"
    assert (second.step, second.summary.value[0].tag, second.summary.value[0].simple_value) == (3, "loss", 0.5)


def test_words_of_boolean_flags():
    read = stand_ins.BooleanParser().Parse
    assert [read(word) for word in ("true", "T", "1", True)] == [True] * 4
    assert [read(word) for word in ("False", "f", "0")] == [False] * 3
    with pytest.raises(ValueError, match="Non-boolean"):
        read("yes")


def test_a_file_of_mnist_is_where_it_is_or_said_to_be_missing(tmp_path):
    name = "train-images-idx3-ubyte.gz"
    with pytest.raises(tf.errors.NotFoundError, match=f"put https.*{name} there"):
        mnist.maybe_download(name, str(tmp_path / "new"))
    (tmp_path / "new" / name).write_bytes(b"")
    assert mnist.maybe_download(name, str(tmp_path / "new")) == str(tmp_path / "new" / name)
