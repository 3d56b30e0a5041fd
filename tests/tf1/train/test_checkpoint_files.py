"""Which checkpoints are there, since when, and removing them."""

from __future__ import annotations

import os

import graphdock as tf
import pytest


@pytest.fixture
def folder(tmp_path):
    with tf.Graph().as_default(), tf.Session() as sess:
        v = tf.get_variable("v", initializer=[1.0])
        sess.run(v.initializer)
        saver = tf.train.Saver()
        for step in (1, 2, 10):
            saver.save(sess, str(tmp_path / "m"), global_step=step)
    return str(tmp_path)


def test_exists_and_times(folder):
    for step, when in ((1, 100.0), (2, 200.0)):
        os.utime(f"{folder}/m-{step}.index", (when, when))
    assert tf.train.checkpoint_exists(folder + "/m-1") and not tf.train.checkpoint_exists(folder + "/m-3")
    assert tf.train.checkpoint_exists(folder + "/m-?") and not tf.train.checkpoint_exists(folder + "/x-*")
    assert not tf.train.checkpoint_exists(folder) and not tf.train.checkpoint_exists("a\0b")
    assert tf.train.get_checkpoint_mtimes([folder + "/m-2", folder + "/m-3", folder + "/m-1"]) == [200.0, 100.0]


def test_an_old_one_in_a_folder_with_brackets(tmp_path):
    folder = tmp_path / "run[1]"
    folder.mkdir()
    (folder / "old").touch()
    assert (
        tf.train.checkpoint_exists(str(folder / "old"))
        and len(tf.train.get_checkpoint_mtimes([str(folder / "old")])) == 1
    )


def test_removing(folder):
    open(folder + "/m-1.meta", "w").close()
    open(folder + "/m-1.graph", "w").close()
    tf.train.remove_checkpoint(folder + "/m-1")
    assert not [n for n in os.listdir(folder) if n.startswith("m-1.") and n != "m-1.graph"]
    assert tf.train.checkpoint_exists(folder + "/m-10")
    tf.train.remove_checkpoint(folder + "/m-1", meta_graph_suffix="graph")
    open(folder + "/old", "w").close()
    tf.train.remove_checkpoint(folder + "/old", 1)
    assert not os.path.exists(folder + "/old") and not os.path.exists(folder + "/m-1.graph")
