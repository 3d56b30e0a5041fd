"""Report of a step to TensorBoard: times and memory by node, also within a loop."""

from __future__ import annotations

import graphdock as tf
import numpy as np
from graphdock.messages import RunMetadata
from graphdock_tensorflow.run_metadata import run_metadata_proto
from graphdock_tensorflow.step_stats import DeviceStepStats, NodeExecStats, StepStats


def test_times_are_those_of_the_events_and_memory_that_of_outputs():
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        w = tf.constant(np.ones((3, 4), np.float32))
        y = tf.matmul(x, w, name="product")
        _, z = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.tanh(a)), [0, y], name="loop")
        metadata = tf.RunMetadata()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        sess.run(z, {x: np.ones((5, 3))}, options=options, run_metadata=metadata)
    made = RunMetadata.FromString(metadata.SerializeToString())
    (device,) = (d for d in made.step_stats.dev_stats if d.device.endswith("CPU:0"))
    (product,) = (n for n in device.node_stats if n.node_name == "product")
    assert product.memory[0].total_bytes == 5 * 4 * 4 and product.all_end_rel_micros >= 1
    described = product.output[0].tensor_description
    assert described.dtype == 1 and [d.size for d in described.shape.dim] == [5, 4]
    event = next(e for e in metadata.events if e.name == "product")
    assert abs(product.all_end_rel_micros - event.seconds * 1e6) <= 1
    tanhs = [n for n in device.node_stats if n.node_name.endswith("Tanh")]
    assert len(tanhs) == 3 and all(n.memory[0].total_bytes == 80 for n in tanhs)


def test_a_step_without_a_trace_or_a_plan_tells_nothing():
    assert RunMetadata.FromString(tf.RunMetadata().SerializeToString()).step_stats.dev_stats == []
    stats = StepStats([DeviceStepStats("cpu", [NodeExecStats("n", "n = Op", 5, 0, 0, 0, 0)])])
    (device,) = run_metadata_proto(stats, None).step_stats.dev_stats
    assert device.node_stats[0].all_end_rel_micros == 1 and len(device.node_stats[0].memory) == 0
