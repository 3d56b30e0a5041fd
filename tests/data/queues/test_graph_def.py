"""Graphs of queues, tables and readers as TensorFlow's GraphDef: its ops with its attributes, and back."""

from __future__ import annotations

import graphdock as tf

#: Attributes of TensorFlow's ops.
ATTRS = {
    "FIFOQueueV2": {"component_types", "shapes", "capacity", "container", "shared_name"},
    "RandomShuffleQueueV2": {
        *("component_types", "shapes", "capacity", "min_after_dequeue", "seed", "seed2", "container", "shared_name"),
    },
    "HashTableV2": {"container", "shared_name", "use_node_name_sharing", "key_dtype", "value_dtype"},
    "MutableHashTableOfTensorsV2": {
        *("container", "shared_name", "use_node_name_sharing", "key_dtype", "value_dtype", "value_shape"),
    },
    "TextLineReaderV2": {"skip_header_lines", "container", "shared_name"},
    "ResourceConditionalAccumulator": {"dtype", "shape", "container", "shared_name", "reduction_type"},
    "QueueDequeueV2": {"component_types", "timeout_ms"},
    "ParseExample": {"Nsparse", "Ndense", "sparse_types", "Tdense", "dense_shapes"},
}


def test_a_graph_goes_there_and_back():
    lookup = tf.contrib.lookup
    queue = tf.FIFOQueue(5, [tf.float32], shapes=[[2]])
    queue.enqueue([[1.0, 2.0]], name="put")
    queue.dequeue(name="take")
    tf.RandomShuffleQueue(5, 1, [tf.float32])
    table = lookup.HashTable(lookup.KeyValueTensorInitializer(["a"], [5], tf.string, tf.int64), -1)
    table.lookup(tf.constant(["a", "b"]), name="look")
    lookup.MutableHashTable(tf.string, tf.float32, [0.0], checkpoint=False)
    tf.TextLineReader().read(tf.FIFOQueue(5, [tf.string]))
    tf.ConditionalAccumulator(tf.float32, [2])
    tf.parse_example(tf.placeholder(tf.string, [None]), {"x": tf.FixedLenFeature([2], tf.float32)})
    written = tf.get_default_graph().as_graph_def()
    found = {node.op: {a for a in node.attr if not a.startswith("_")} for node in written.node}
    assert {op: found[op] for op in ATTRS} == ATTRS
    names = ["put", "take:0", "look/LookupTableFindV2:0", "key_value_init/LookupTableImportV2"]
    with tf.Graph().as_default(), tf.Session() as session:
        put, take, look, init = tf.import_graph_def(written, name="", return_elements=names)
        session.run([put, init])
        assert session.run(take).tolist() == [1, 2] and session.run(look).tolist() == [5, -1]
