"""What a FileWriter puts into its file."""

from __future__ import annotations

import contextlib
import time
import warnings

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import (
    AlreadyExistsError,
    ArgumentTypeError,
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    UnimplementedError,
)
from graphdock.messages import GraphDef, RunMetadata


def events(folder):
    return [e for path in sorted(folder.iterdir()) for e in tf.train.summary_iterator(str(path))][1:]


def test_summaries_of_a_training_loop(tmp_path):
    with tf.Graph().as_default() as graph, tf.Session() as sess, tf.summary.FileWriter(str(tmp_path), graph) as writer:
        x = tf.placeholder(tf.float32, [], name="x")
        tf.summary.scalar("twice", x * 2.0)
        summaries = tf.summary.merge_all()
        before = time.time()
        for step in range(25):
            writer.add_summary(sess.run(summaries, {x: step}), step)
        writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="by hand", simple_value=1)]), np.int64(30))
        writer.add_summary(tf.Summary())
        writer.flush()
        assert len(events(tmp_path)) == 28, "flushed, so it can be read"
        assert writer.get_logdir() == str(tmp_path)
    graph_event, *found = events(tmp_path)
    assert [n.name for n in GraphDef.FromString(graph_event.graph_def).node] == []
    assert [e.step for e in found] == [*range(25), 30, 0]
    assert [e.summary.value[0].simple_value for e in found[:25]] == [2.0 * i for i in range(25)]
    assert all(before - 1 <= e.wall_time <= time.time() + 1 for e in found)


def test_metadata_is_told_once_for_each_tag(tmp_path):
    with tf.Graph().as_default(), tf.Session() as sess, tf.summary.FileWriter(str(tmp_path)) as writer:
        made = tf.summary.merge([tf.summary.text("t", tf.constant("x")), tf.summary.scalar("Jump J", 1.0)])
        for step in range(3):
            writer.add_summary(sess.run(made), step)
        by_hand = tf.Summary(value=[{"tag": "u", "simple_value": 1, "metadata": {"display_name": "U"}}])
        writer.add_summary(by_hand)
        writer.add_summary(by_hand)
    found = events(tmp_path)
    assert [e.summary.value[0].HasField("metadata") for e in found] == [True, False, False, True, False]
    assert by_hand.value[0].HasField("metadata"), "what was given stays as it is"
    assert found[2].summary.value[0].tensor.string_val == [b"x"] and found[2].summary.value[1].tag == "Jump_J"


def test_graphs_and_what_steps_reported(tmp_path):
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        x = tf.placeholder(tf.float32, [1, 2], name="x")
        y = tf.identity(tf.reduce_sum(x), name="y")
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        metadata = tf.RunMetadata()
        sess.run(y, {x: [[1.0, 2.0]]}, options=options, run_metadata=metadata)
        with tf.summary.FileWriter(str(tmp_path), graph_def=graph) as writer:
            writer.add_run_metadata(metadata, "step 1", 1)
            with pytest.raises(AlreadyExistsError, match="step 1"):
                writer.add_run_metadata(metadata, "step 1", 2)
            writer.add_session_log(tf.SessionLog(status=tf.SessionLog.CHECKPOINT, checkpoint_path="p"), 5)
            writer.add_event(tf.Event(wall_time=7.0, step=6, log_message={"message": "hello"}))
            writer.add_graph(tf.Graph(), 8)
            writer.add_meta_graph(tf.Summary(value=[{"tag": "anything that serializes itself"}]), 9)
    first, reported, log, event, empty, meta = events(tmp_path)
    assert {"x", "y"} <= {n.name for n in GraphDef.FromString(first.graph_def).node}
    assert reported.step == 1 and reported.tagged_run_metadata.tag == "step 1"
    stats = RunMetadata.FromString(reported.tagged_run_metadata.run_metadata).step_stats.dev_stats
    assert any(n.node_name == "Sum" and n.all_end_rel_micros > 0 for d in stats for n in d.node_stats)
    assert log.session_log.status == tf.SessionLog.CHECKPOINT and log.session_log.checkpoint_path == "p"
    assert event == tf.Event(wall_time=7.0, step=6, log_message={"message": "hello"})
    assert empty.HasField("graph_def") and empty.step == 8 and meta.step == 9 and meta.HasField("meta_graph_def")


def test_wrong_arguments(tmp_path):
    with tf.summary.FileWriter(str(tmp_path)) as writer:
        for add in (
            writer.add_session_log,
            writer.add_event,
            writer.add_summary,
            writer.add_graph,
            writer.add_meta_graph,
        ):
            with pytest.raises(ArgumentTypeError):
                add(3)
        with pytest.raises(ArgumentTypeError):
            writer.add_graph(tf.Summary)
        with pytest.raises(DataLossError, match="no Summary"):
            writer.add_summary(b"junk")
        with pytest.raises(InvalidArgumentError, match="one argument"):
            writer.add_graph(tf.Graph(), graph_def=tf.Graph())
    assert events(tmp_path) == []
    with pytest.raises(UnimplementedError, match="session"):
        tf.summary.FileWriter(str(tmp_path), session=object())
    for wrong in ({"max_queue": -1}, {"flush_secs": "2"}, {"flush_secs": float("nan")}):
        with pytest.raises(InvalidArgumentError, match=next(iter(wrong))):
            tf.summary.FileWriter(str(tmp_path), **wrong)
    (tmp_path / "file").write_text("")
    with pytest.raises(FailedPreconditionError):
        tf.summary.FileWriter(str(tmp_path / "file"))


def test_a_closed_writer_warns_and_takes_nothing(tmp_path):
    writer = tf.summary.FileWriter(str(tmp_path / "a"), filename_suffix=".mine")
    writer.close()
    for call in (lambda: writer.add_summary(tf.Summary(), 1), writer.flush, lambda: writer.add_event(tf.Event())):
        with pytest.warns(UserWarning, match="closed FileWriter"):
            call()
    writer.reopen()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        writer.add_summary(tf.Summary(), 2)
    writer.close()
    paths = sorted((tmp_path / "a").iterdir())
    assert len(paths) == 2 and all(p.name.endswith(".mine") for p in paths)
    found = [e.step for p in paths for e in tf.train.summary_iterator(str(p)) if e.HasField("summary")]
    assert found == [2]


def test_an_exception_within_the_block_closes_it(tmp_path):
    with contextlib.suppress(KeyError), tf.summary.FileWriter(str(tmp_path)) as writer:
        writer.add_summary(tf.Summary(), 1)
        raise KeyError
    assert [e.step for e in events(tmp_path)] == [1]
