"""Looking into checkpoints without a graph."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import NotFoundError


@pytest.fixture
def folder(tmp_path):
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.get_variable("a/w", initializer=np.arange(6.0).reshape(2, 3))
        tf.get_variable("p", initializer=np.arange(4), partitioner=tf.fixed_size_partitioner(2))
        tf.get_variable("n", initializer=np.int32(7))
        tf.get_variable("s", initializer=tf.constant(["x", "yz"]))
        sess.run(tf.global_variables_initializer())
        tf.train.Saver().save(sess, str(tmp_path / "m"), global_step=3)
    return str(tmp_path)


def test_a_reader(folder):
    reader = tf.train.NewCheckpointReader(folder + "/m-3")
    assert reader.get_variable_to_shape_map() == {"a/w": [2, 3], "n": [], "p": [4], "s": [2]}
    kinds = {"a/w": tf.float64, "n": tf.int32, "p": tf.int64, "s": tf.string}
    assert reader.get_variable_to_dtype_map() == kinds
    assert reader.has_tensor("p") and not reader.has_tensor("p/part_0")
    assert reader.get_tensor("p").tolist() == [0, 1, 2, 3] and reader.get_tensor("s").tolist() == [b"x", b"yz"]
    assert isinstance(reader.get_tensor("n"), np.int32)
    assert reader.debug_string().splitlines()[0] == b"a/w (float64) [2, 3]"
    with pytest.raises(NotFoundError, match="'a/v'"):
        reader.get_tensor("a/v")


@pytest.mark.parametrize("space", [tf.train, tf.contrib.framework], ids=["train", "contrib"])
def test_functions_take_a_checkpoint_or_its_folder(folder, space):
    expected = [("a/w", [2, 3]), ("n", []), ("p", [4]), ("s", [2])]
    for path in (folder, folder + "/m-3"):
        assert space.list_variables(path) == expected
        assert space.load_variable(path, "a/w:0").tolist() == [[0, 1, 2], [3, 4, 5]]
        assert space.load_checkpoint(path).has_tensor("n")


def test_a_folder_without_checkpoints(tmp_path):
    with pytest.raises(ValueError, match="names no checkpoint"):
        tf.train.load_variable(str(tmp_path), "w")
    with pytest.raises(NotFoundError):
        tf.train.NewCheckpointReader(str(tmp_path / "m"))
