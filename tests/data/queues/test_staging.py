"""Staging areas: their order, their bounds, looking and clearing."""

from __future__ import annotations

import graphdock as tf
import pytest

StagingArea = tf.contrib.staging.StagingArea


def test_first_in_first_out():
    area = StagingArea([tf.float32, tf.int32], shapes=[[2], []], names=["x", "n"])
    put, got = area.put({"x": [1.0, 2.0], "n": 3}), area.get()
    assert got["x"].shape == [2] and (area.dtypes, area.names) == ([tf.float32, tf.int32], ["x", "n"])
    with tf.Session() as session:
        session.run(put)
        session.run(put)
        assert session.run(area.size()) == 2
        assert session.run(area.peek(1))["n"] == 3 and session.run(area.size()) == 2
        assert session.run(got)["x"].tolist() == [1, 2]
        session.run(area.clear())
        assert session.run(area.size()) == 0


def test_bounds(start):
    few = StagingArea([tf.int32], capacity=1)
    small = StagingArea([tf.float32], memory_limit=20)
    put, take, peek = small.put([tf.zeros([3])]), small.get(), small.peek(0)
    with tf.Session() as session:
        session.run(few.put([1]))
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(few.put([2]), options=tf.RunOptions(timeout_in_ms=20))
        with pytest.raises(tf.errors.ResourceExhaustedError, match="20 bytes"):
            session.run(small.put([tf.zeros([6])]))
        look = start(lambda: session.run(peek))
        session.run(put)
        assert look.join().result[0].shape == (3,)
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(put, options=tf.RunOptions(timeout_in_ms=20))
        assert session.run(take)[0].tolist() == [0, 0, 0]
        session.run(put)


def test_what_cannot_be():
    with pytest.raises(TypeError, match="shared_name"):
        StagingArea([tf.int32], shared_name=3)
