"""A step's events under TensorFlow's names."""

from __future__ import annotations

import time

import graphdock as tf
from graphdock.contracts import TraceEvent
from graphdock_tensorflow.step_stats import StepStats


def test_events_stand_under_their_device_in_order_with_times_since_1970():
    events = [
        TraceEvent("a", "cpu:0", 5.0, 2e-6, "kernel", "MatMul", "cpu.mat_mul", 12),
        TraceEvent("b", "queued:1", 6.0, 3e-6, "copy", "Transfer", "", 8),
        TraceEvent("c", "cpu:0", 7.0, 0.0, "wait"),
    ]
    cpu, queued = StepStats.of(events, 1000.0).dev_stats
    assert cpu.device == "/job:localhost/replica:0/task:0/device:CPU:0" and queued.device.endswith("device:queued:1")
    assert [n.node_name for n in cpu.node_stats] == ["a", "c"]
    a, c = cpu.node_stats
    assert (a.all_start_micros, a.op_end_rel_micros, a.all_end_rel_micros, a.nbytes) == (1_005_000_000, 2, 2, 12)
    assert (a.timeline_label, c.timeline_label) == ("a = MatMul", "c = wait")


def test_the_metadata_of_a_step_has_them():
    x = tf.placeholder(tf.float32, [2])
    metadata = tf.RunMetadata()
    before = time.time()
    with tf.Session() as sess:
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        sess.run(tf.square(x, name="squared"), {x: [1, 2]}, options, metadata)
    after = time.time()
    (device,) = [d for d in metadata.step_stats.dev_stats if d.device.endswith("CPU:0")]
    (node,) = [n for n in device.node_stats if n.node_name == "squared"]
    assert before - 1 <= node.all_start_micros / 1e6 <= after + 1
    assert tf.RunMetadata().step_stats.dev_stats == []


def test_a_program_adds_records_as_to_a_message():
    metadata = tf.RunMetadata()
    device = metadata.step_stats.dev_stats.add()
    device.device = "mine"
    device.node_stats.add(node_name="a", all_start_micros=7).timeline_label = "a = Mine"
    assert metadata.step_stats.dev_stats[0].node_stats[0].timeline_label == "a = Mine"
    assert b"mine" in metadata.SerializeToString() and b"a = Mine" in metadata.SerializeToString()
    with tf.Session() as sess:
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        sess.run(tf.constant(1) + tf.placeholder_with_default(2, []), options=options, run_metadata=metadata)
    assert "mine" not in [d.device for d in metadata.step_stats.dev_stats], "another step has stats of its own"


def test_a_record_has_the_fields_that_programs_read():
    node = tf.RunMetadata().step_stats.dev_stats.add().node_stats.add(node_name="a")
    assert (node.memory, node.output, node.referenced_tensor, node.thread_id, node.scheduled_micros) == (
        [],
        [],
        [],
        0,
        0,
    )
