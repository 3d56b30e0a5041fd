"""Reports of variables without values are ordinary operations, which graphs on disk hold too."""

from __future__ import annotations

import graphdock as tf
import pytest


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def test_a_report_is_read_back_with_its_graph(graph):
    pytest.importorskip("google.protobuf")
    first, second = tf.get_variable("first", initializer=1.0), tf.get_variable("second", initializer=2.0)
    report = tf.report_uninitialized_variables([first, second])
    assert report.op.name.startswith("report_uninitialized_variables/boolean_mask"), "as TensorFlow's"
    assert not [op.type for op in graph.get_operations() if op.type == "PyFunc"]
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.import_graph_def(graph.as_graph_def(), name="")
        sess.run("first/Assign")
        assert sess.run(report.name).tolist() == [b"second"]
