"""A graph as a file: its text or its bytes, whole or not at all."""

from __future__ import annotations

import graphdock as tf
import pytest
from graphdock.errors import NotFoundError
from graphdock_tensorflow.graphs.files import read_message

pytest.importorskip("google.protobuf")


def test_text_and_bytes(tmp_path):
    with tf.Graph().as_default() as graph:
        tf.constant(1.0, name="a")
    for name, as_text in (("g.pbtxt", True), ("g.pb", False)):
        path = tf.train.write_graph(graph, str(tmp_path / "new"), name, as_text)
        assert path == str(tmp_path / "new" / name)
        assert read_message("GraphDef", path) == graph.as_graph_def()
    assert tf.io.write_graph(graph.as_graph_def(), str(tmp_path), "h.pbtxt").endswith("h.pbtxt")
    assert 'name: "a"' in (tmp_path / "h.pbtxt").read_text()
    with pytest.raises(NotFoundError):
        tf.train.write_graph(graph, str(tmp_path / "no" / "such"), "g.pb")
