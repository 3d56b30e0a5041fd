"""GraphDefs, meta graphs, SavedModels and event files whose messages are well formed and lie: they are refused clearly, or read."""

from __future__ import annotations

import functools
import random

import graphdock as tf
import lies
import pytest
import wire
from graphdock.errors import DataLossError
from graphdock.messages import from_bytes, to_text
from graphdock_storage.records import framed, read_records
from graphdock_tensorflow.plain_data.format import to_json

pytest.importorskip("google.protobuf")

import lying_graphs  # noqa: E402 - needs the library protobuf

pytestmark = pytest.mark.slow  # what is read does not depend on debug mode
CASES = [pytest.param(range(60), id="sample"), pytest.param(range(60, 2500), id="rest", marks=pytest.mark.exhaustive)]


def program():
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    w = tf.get_variable("w", [2, 3], tf.float32, tf.ones_initializer())
    words = tf.get_local_variable("words", [], tf.string, tf.constant_initializer("a"))
    y = tf.cond(tf.reduce_sum(x) > 0.0, lambda: tf.matmul(x, w), lambda: tf.zeros([1, 3]), name="y")
    tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * 2.0), [0, y], name="loop")
    tf.add_to_collection("numbers", 3)
    tf.add_to_collection("outputs", y)
    return x, y, words


@functools.cache
def trees():
    """Kind of file -> trees of honest ones."""
    with tf.Graph().as_default() as graph:
        x, y, _ = program()
        saver = tf.train.Saver()
        meta = tf.train.export_meta_graph(saver_def=saver.as_saver_def())
        info = {"x": tf.saved_model.build_tensor_info(x)}
        meta.signature_def["serving_default"].CopyFrom(
            tf.saved_model.build_signature_def(
                info, {"y": tf.saved_model.build_tensor_info(y)}, "tensorflow/serving/predict"
            )
        )
        meta.meta_info_def.tags.append("serve")
        asset = meta.asset_file_def.add(filename="a.txt")
        asset.tensor_info.name = "x:0"
        meta.collection_def["saved_model_assets"].any_list.value.add(type_url="x", value=asset.SerializeToString())
        graphs = [
            graph.as_graph_def(add_shapes=True),
            *(f(3) for f in lying_graphs.FAMILIES.values()),
            lying_graphs.loops(2),
        ]
        model = from_bytes("SavedModel", b"", "it")
        model.meta_graphs.add().CopyFrom(meta)
        event = tf.Event(wall_time=3.0, step=2, graph_def=graphs[0].SerializeToString())
        values = [
            tf.Summary.Value(tag="a", simple_value=2.0),
            tf.Summary.Value(tag="h", histo=tf.HistogramProto(bucket=[1.0] * 5)),
        ]
        events = [event, tf.Event(step=1, summary=tf.Summary(value=values)), tf.Event(file_version="brain.Event:2")]
    found = {"pb": graphs, "meta": [meta], "saved": [model], "events": events}
    made = {kind: [wire.tree_of(m.SerializeToString()) for m in messages] for kind, messages in found.items()}
    assert all(
        wire.bytes_of(tree) == m.SerializeToString()
        for kind in found
        for tree, m in zip(made[kind], found[kind], strict=True)
    )
    return made


def attempt(folder, kind, rng):
    """Write what lies, and read it; the error that it gives, if any."""
    data = wire.bytes_of(wire.lied(rng, rng.choice(trees()[kind])))
    if kind == "events":
        path = folder / "events"
        path.write_bytes(framed(data, data))
        assert list(read_records(path)) == [data, data]
        return lies.refused(lambda: [repr(e) + str(e.SerializeToString()) for e in tf.train.summary_iterator(path)])
    name = {"pb": "GraphDef", "meta": "MetaGraphDef", "saved": "SavedModel"}[kind]
    path = folder / {"pb": "graph.pb", "meta": "graph.meta", "saved": "saved_model.pb"}[kind]
    path.write_bytes(data)
    if rng.random() < 0.3:
        try:
            path.write_text(to_text(from_bytes(name, data, "it")))
        except DataLossError:
            return None
        if kind == "saved":
            path = path.replace(folder / "saved_model.pbtxt")
    graph = tf.Graph()
    with graph.as_default(), tf.Session() as sess:
        read = {
            "pb": lambda: tf.import_graph_def(graph_of(path), name=""),
            "meta": lambda: tf.train.import_meta_graph(str(path)),
            "saved": lambda: tf.saved_model.load(sess, ["serve"], str(folder)),
        }[kind]
        error = lies.refused(read)
        (folder / "saved_model.pbtxt").unlink(missing_ok=True)
        if error is not None:
            assert kind != "pb" or graph.get_operations() == []
            return error
    if kind == "pb":
        names = [node.name for node in graph_of(path).node]
        assert len(set(names)) == len(names), "of two nodes of one name one is lost"
    if all(op.type not in ("PyFunc",) for op in graph.get_operations()):
        with tf.Graph().as_default():
            tf.import_graph_def(to_json(graph), name="")  # what was read can be written, and read again
    return None


def graph_of(path):
    from graphdock_tensorflow.graphs.files import graph_of as read

    return read(str(path))[1]


@pytest.mark.parametrize("kind", ["pb", "meta", "saved", "events"])
@pytest.mark.parametrize("seeds", CASES)
@pytest.mark.sampled(2)
def test_messages_that_lie(tmp_path, kind, seeds):
    refused = 0
    for seed in seeds:
        try:
            refused += attempt(tmp_path, kind, random.Random(f"{kind} {seed}")) is not None
        except BaseException:
            print(f"{kind}, seed {seed}")
            raise
    assert refused > len(seeds) / (20 if kind == "events" else 4)


def test_events_take_steps_and_memory_in_proportion_to_the_file(tmp_path):
    """Records of one byte, one long record, and messages in messages."""

    def nested(n):
        tree = [[1, 0, 1]]
        for _ in range(n):
            tree = [[5, 2, tree]]
        return [wire.bytes_of(tree)]

    families = {
        "short": lambda n: [b"\x10\x01"] * n,
        "one": lambda n: [wire.bytes_of([[5, 2, [[1, 2, [[1, 2, b"t" * 50], [2, 5, b"\0" * 4]]]] * n]])],
        "numbers": lambda n: [wire.bytes_of([[5, 2, [[1, 2, [[5, 2, [[6, 2, b"\0" * 8 * n]]]]]]]])],
        "nested": nested,
    }
    path = tmp_path / "events"
    for name, family in families.items():
        costs = []
        for n in (40, 640):
            path.write_bytes(framed(*family(n)))
            size = path.stat().st_size
            read = lambda: list(tf.train.summary_iterator(path))  # noqa: E731
            lies.refused(read)
            costs.append([cost / size for cost in (lies.steps(read), lies.held(read))])
        few, many = costs
        assert many[0] <= 1.5 * few[0] and many[1] <= 2 * few[1] + 1, (name, costs)
