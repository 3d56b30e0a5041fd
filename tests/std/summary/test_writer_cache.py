"""One FileWriter per folder."""

from __future__ import annotations

import graphdock as tf


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
