"""Input of slim: rows of records through readers and queues, and what decoders make of features."""

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import InvalidArgumentError

slim = tf.contrib.slim
decoders = slim.tfexample_decoder


@pytest.fixture
def records(tmp_path):
    for part in range(2):
        with tf.python_io.TFRecordWriter(str(tmp_path / f"{part}.rows")) as writer:
            for row in range(3):
                feature = {
                    "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[3 * part + row])),
                    "image/encoded": tf.train.Feature(bytes_list=tf.train.BytesList(value=[bytes(range(6))])),
                    "image/format": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"raw"])),
                    "ymin": tf.train.Feature(float_list=tf.train.FloatList(value=[0.5] * row)),
                    "words": tf.train.Feature(int64_list=tf.train.Int64List(value=[1, 2])),
                }
                example = tf.train.Example(features=tf.train.Features(feature=feature))
                writer.write(example.SerializeToString())
    return str(tmp_path / "*.rows")


FEATURES = {
    "label": tf.FixedLenFeature([], tf.int64),
    "image/encoded": tf.FixedLenFeature([], tf.string),
    "image/format": tf.FixedLenFeature([], tf.string),
    "ymin": tf.VarLenFeature(tf.float32),
    "words": tf.VarLenFeature(tf.int64),
}


def test_rows_of_a_dataset(records):
    handlers = {
        "label": decoders.Tensor("label"),
        "image": decoders.Image(shape=[1, 2, 3]),
        "boxes": decoders.BoundingBox(["ymin"] * 4),
        "words": decoders.Tensor("words", shape=[2, 1]),
        "length": decoders.ItemHandlerCallback("words", lambda found: tf.size(found["words"].values)),
    }
    decoder = decoders.TFExampleDecoder(FEATURES, handlers)
    dataset = slim.dataset.Dataset(records, tf.TFRecordReader, decoder, 6, {"label": "a number"}, num_classes=6)
    provider = slim.dataset_data_provider.DatasetDataProvider(dataset, shuffle=False, num_epochs=1)
    assert (provider.num_samples(), dataset.num_classes) == (6, 6)
    assert provider.list_items() == [*handlers, "record_key"]
    tensors = provider.get(["label", "image", "boxes", "words", "length"])
    labels = []
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        with slim.queues.QueueRunners(sess):
            for _ in range(6):
                label, image, boxes, words, length = sess.run(tensors)
                labels.append(int(label))
                assert image.tolist() == [[[0, 1, 2], [3, 4, 5]]] and image.dtype == np.uint8
                assert boxes.tolist() == [[0.5] * 4] * (label % 3)
                assert (words.tolist(), length) == ([[1], [2]], 2)
    assert labels == [0, 1, 2, 3, 4, 5]


def test_what_does_not_fit_is_refused(records):
    with pytest.raises(ValueError, match="both shape_keys and shape"):
        decoders.Tensor("a", "b", [1])
    with pytest.raises(ValueError, match="4 keys"):
        decoders.BoundingBox(["a"])
    with pytest.raises(InvalidArgumentError, match="no data files found"):
        slim.parallel_reader.parallel_read(records + ".absent", tf.TFRecordReader)
    with pytest.raises(ValueError, match=r"\['b'\] are not among \['a'\]"):
        slim.data_provider.DataProvider({"a": 1}, 1).get(["b"])


def test_files_of_sources(tmp_path):
    for name in ("b.txt", "a.txt"):
        (tmp_path / name).write_text("")
    found = slim.parallel_reader.get_data_files([str(tmp_path / "*.txt"), "elsewhere"])
    assert found == [str(tmp_path / "a.txt"), str(tmp_path / "b.txt"), "elsewhere"]
    with pytest.raises(InvalidArgumentError, match="no data files found"):
        slim.parallel_reader.get_data_files(str(tmp_path / "*.csv"))
