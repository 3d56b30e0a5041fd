"""One FileWriter per folder."""

from __future__ import annotations

import shutil

import graphdock as tf
import pytest
from graphdock.errors import GraphdockError


def test_a_folder_has_one_writer_until_the_cache_is_cleared(tmp_path):
    cache = tf.summary.FileWriterCache
    one, other = cache.get(str(tmp_path / "a")), cache.get(str(tmp_path / "b"))
    assert cache.get(tmp_path / "a") is one is not other
    one.add_summary(tf.Summary(), 3)
    cache.clear()
    (path,) = (tmp_path / "a").iterdir()
    assert [e.step for e in tf.train.summary_iterator(str(path))] == [0, 3]
    again = cache.get(str(tmp_path / "a"))
    assert again is not one
    cache.clear()


def test_a_writer_that_can_not_end_keeps_no_other_one_from_it(tmp_path):
    cache = tf.summary.FileWriterCache
    gone, other = cache.get(str(tmp_path / "gone")), cache.get(str(tmp_path / "other"))
    for writer in (gone, other):
        writer.add_summary(tf.Summary(), 3)
    shutil.rmtree(tmp_path / "gone")
    (tmp_path / "gone").write_text("no folder")
    for _ in range(2):
        with pytest.raises(GraphdockError, match="gone"):
            cache.clear()
        (path,) = (tmp_path / "other").iterdir()
        assert [e.step for e in tf.train.summary_iterator(str(path))] == [0, 3]
        assert cache.get(str(tmp_path / "gone")) is gone, "with what waits"
    (tmp_path / "gone").unlink()
    cache.clear()
    (path,) = (tmp_path / "gone").iterdir()
    assert [e.step for e in tf.train.summary_iterator(str(path))] == [0, 3]
